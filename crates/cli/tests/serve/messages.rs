//! What people are told beside an answer: what was perhaps meant, and what stands in the way.

use std::process::Output;

use crate::test_server::{TestServer, wait_until};

const CONFIG: &str = r#"
handlers:
  notify: {run: {command: ["true"]}, order: none}
  far: {run: pull}
event_handlers:
  record.published: [notify]
  record.kept: [far]
sources:
  shop: {run: {command: ["true"]}, collections: [{name: orders}]}
schedules:
  nightly: {cron: "0 3 * * *", emit: {type: report.due}}
"#;

/// A handler that fails for good and halts its lane, and one whose tasks wait.
const HALTING: &str = r#"
handlers:
  strict: {run: {command: ["false"]}, retry: {max: 0}, on_error: halt}
  far: {run: pull}
event_handlers:
  record.spoilt: [strict]
  record.kept: [far]
"#;

/// The words on standard output, and those beside it.
fn both(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn emit(pointsman: &TestServer, kind: &str) -> String {
    pointsman.run_json(&["emit", kind])["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

#[test]
fn an_unrouted_event_type_gets_a_suggestion() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let (id, told) = both(&pointsman.run(&["emit", "record.publishd"]));
    assert!(id.parse::<u64>().is_ok(), "standard output has the id alone: {id}");
    assert_eq!(told, "no handler gets record.publishd; did you mean `record.published`?");
    assert_eq!(both(&pointsman.run(&["emit", "record.published"])).1, "");
}

#[test]
fn an_invalid_event_in_a_file_is_reported_with_its_line() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let lines = "{\"type\":\"record.published\"}\n\n{\"type\":\"no blanks\"}\n";
    std::fs::write(pointsman.path("events.jsonl"), lines).unwrap();
    let output = pointsman.run(&["emit", "--file", "events.jsonl"]);
    let (_, told) = both(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.starts_with("error: events.jsonl, line 3: ") && told.ends_with("(at `type`)"), "{told}");
}

#[test]
fn all_given_ids_are_tried_and_the_end_of_an_id_is_enough() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let (first, second) = (emit(&pointsman, "record.kept"), emit(&pointsman, "record.kept"));
    let unknown = "far_x_00000000-0000-8000-8000-000000000000";
    let output = pointsman.run(&["tasks", "cancel", &first, unknown, &second]);
    let (done, told) = both(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(done, format!("CANCELED  {first}\nCANCELED  {second}"));
    assert!(told.contains(unknown) && told.contains("1 of 3 tasks"), "{told}");

    let end = &first[first.len() - 36..];
    assert_eq!(pointsman.run_json(&["tasks", "show", end])["id"], first.as_str());
    let (_, told) = both(&pointsman.run(&["tasks", "why", "abcdefabcdef"]));
    assert!(told.contains("ends in abcdefabcdef"), "{told}");
}

#[test]
fn an_object_is_shown_with_its_lanes_and_how_to_release_a_halted_one() {
    let mut pointsman = TestServer::new(HALTING);
    let _node = pointsman.serve();
    let emit = |kind: &str| pointsman.run_json(&["emit", kind, "--key", "record:1"]);
    let [first, second] = [emit("record.spoilt"), emit("record.spoilt")].map(|emitted| {
        let task = &emitted["events"][0]["tasks"][0];
        task.as_str().unwrap().to_owned()
    });
    emit("record.kept");
    let show = ["objects", "show", "record:1"];
    wait_until("the lane stands still", || pointsman.run_ok(&show).contains("HALTED"));
    let shown = pointsman.run_ok(&show);
    let line =
        |of: &str| shown.lines().find(|line| line.starts_with(of)).unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(
        line("HANDLER").split_whitespace().collect::<Vec<_>>(),
        ["HANDLER", "STATUS", "WAITING", "ERROR", "HEAD"]
    );
    assert!(line("far ").contains("SCHEDULED  0"), "{shown}");
    assert!(line("strict ").contains("HALTED     1") && line("strict ").ends_with(&first), "{shown}");
    let way_out = format!("    pointsman tasks retry {first}\n    pointsman tasks cancel {first}\n");
    assert!(shown.contains("strict stands still") && shown.contains(&way_out), "{shown}");
    assert!(shown.find("EVENT").unwrap() > shown.find("HANDLER").unwrap(), "{shown}");

    pointsman.run_ok(&["tasks", "cancel", &first]);
    wait_until("the next one halts it", || {
        pointsman.run_json(&show)["lanes"][1]["head"]["id"] == second.as_str()
    });
    wait_until("it stands still", || pointsman.run_json(&show)["lanes"][1]["halted"] == true);
    pointsman.run_ok(&["tasks", "cancel", &second]);
    assert!(!pointsman.run_ok(&show).contains("HALTED"));

    pointsman.run_ok(&["emit", "nobody.cares", "--key", "record:2"]);
    assert!(
        !pointsman.run_ok(&["objects", "show", "record:2"]).contains("HANDLER"),
        "nothing is to be done for it"
    );
    let output = pointsman.run(&["objects", "show", "Record:1", "--tenant", "shop"]);
    let (_, told) = both(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("nothing has happened to \"Record:1\" of the tenant shop"), "{told}");
    assert!(told.contains("--tenant") && told.contains("spelling"), "{told}");
}

#[test]
fn a_mistyped_handler_gets_a_suggestion() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    assert_eq!(
        pointsman.run_ok(&["tasks", "--handler", "notfy"]),
        "No tasks. There is no handler or source notfy; did you mean `notify`?"
    );
    assert_eq!(pointsman.run_ok(&["tasks", "--handler", "notify", "--status", "failed"]), "No tasks.");
}

#[test]
fn pausing_and_resuming_print_a_sentence() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let paused = pointsman.run_ok(&["pause", "notify", "--reason", "a test"]);
    assert!(paused.starts_with("notify is paused.\n\nRULE") && paused.ends_with("a test"), "{paused}");
    assert_eq!(pointsman.run_ok(&["resume", "notify"]), "notify is no longer paused.");
    assert_eq!(pointsman.run_ok(&["resume", "notify"]), "notify was not paused.");
    pointsman.run_ok(&["block", "shop/orders"]);
    assert_eq!(pointsman.run_ok(&["unblock", "shop/orders"]), "shop/orders is no longer blocked.");

    let (_, told) = both(&pointsman.run(&["pause", "nightly"]));
    assert!(told.contains("--schedule nightly"), "{told}");
    let held = pointsman.run_ok(&["pause", "--schedule", "nightly"]);
    assert!(held.starts_with("The schedule nightly is paused."), "{held}");
    let (_, told) = both(&pointsman.run(&["schedules", "run", "shop/orders"]));
    assert!(told.contains("`pointsman run shop/orders`"), "{told}");
}

#[test]
fn run_wait_explains_why_the_task_waits() {
    let mut pointsman = TestServer::new(CONFIG);
    let node = pointsman.serve();
    pointsman.run_ok(&["pause", "shop", "--reason", "a test of waiting"]);
    let both_ways = r#"exec "$0" run shop/orders --wait 2>&1"#;
    let run = pointsman.start_program("sh", &["-c", both_ways, env!("CARGO_BIN_EXE_pointsman")]);
    let told =
        run.lines.find("what holds it", |line| line.strip_prefix("It has not begun: ").map(String::from));
    assert!(told.contains("a test of waiting"), "{told}");
    assert!(node.stop().success());

    let (done, told) = both(&pointsman.run(&["work", "--handler", "shop", "--ttl", "1s"]));
    assert!(done.starts_with("0 attempts"), "{done}");
    assert!(told.contains("1 task is held back: a pause of shop by "), "{told}");
}
