//! The messages that commands print besides their result: suggestions and explanations.

use std::process::Output;

use crate::test_server::{ServerFixture, wait_until};

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
const HALTING_HANDLER_CONFIG: &str = r#"
handlers:
  strict: {run: {command: ["false"]}, retry: {max: 0}, on_error: halt}
  far: {run: pull}
event_handlers:
  record.spoilt: [strict]
  record.kept: [far]
"#;

/// The texts on standard output and on standard error.
fn stdout_and_stderr_texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn emit_and_get_task_id(pointsman: &ServerFixture, event_type: &str) -> String {
    pointsman.run_json(&["emit", event_type])["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

#[test]
fn emit_suggests_a_routed_event_type_for_a_mistyped_one() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let (id, stderr) = stdout_and_stderr_texts(&pointsman.run_command(&["emit", "record.publishd"]));
    assert!(id.parse::<u64>().is_ok(), "standard output contains only the id: {id}");
    assert_eq!(
        stderr,
        "no handler or chain is configured for record.publishd; did you mean `record.published`?"
    );
    assert_eq!(stdout_and_stderr_texts(&pointsman.run_command(&["emit", "record.published"])).1, "");
}

#[test]
fn emit_from_a_file_names_the_line_of_an_invalid_event() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let lines = "{\"type\":\"record.published\"}\n\n{\"type\":\"no blanks\"}\n";
    std::fs::write(pointsman.file_path("events.jsonl"), lines).unwrap();
    let output = pointsman.run_command(&["emit", "--file", "events.jsonl"]);
    let (_, stderr) = stdout_and_stderr_texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.starts_with("error: events.jsonl, line 3: ") && stderr.ends_with("(at `type`)"),
        "{stderr}"
    );
}

#[test]
fn tasks_cancel_tries_all_given_ids_and_tasks_show_accepts_the_end_of_an_id() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let (first, second) =
        (emit_and_get_task_id(&pointsman, "record.kept"), emit_and_get_task_id(&pointsman, "record.kept"));
    let unknown = "far_x_00000000-0000-8000-8000-000000000000";
    let output = pointsman.run_command(&["tasks", "cancel", &first, unknown, &second]);
    let (done, stderr) = stdout_and_stderr_texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert_eq!(done, format!("CANCELED  {first}\nCANCELED  {second}"));
    assert!(stderr.contains(unknown) && stderr.contains("1 of 3 tasks"), "{stderr}");

    let end = &first[first.len() - 36..];
    assert_eq!(pointsman.run_json(&["tasks", "show", end])["id"], first.as_str());
    let (_, stderr) = stdout_and_stderr_texts(&pointsman.run_command(&["tasks", "why", "abcdefabcdef"]));
    assert!(stderr.contains("ends in abcdefabcdef"), "{stderr}");
}

#[test]
fn objects_show_prints_the_lanes_and_the_commands_that_release_a_halted_lane() {
    let mut pointsman = ServerFixture::new(HALTING_HANDLER_CONFIG);
    let _node = pointsman.serve();
    let emit = |event_type: &str| pointsman.run_json(&["emit", event_type, "--key", "record:1"]);
    let [first, second] = [emit("record.spoilt"), emit("record.spoilt")].map(|emitted| {
        let task = &emitted["events"][0]["tasks"][0];
        task.as_str().unwrap().to_owned()
    });
    emit("record.kept");
    let show = ["objects", "show", "record:1"];
    wait_until("the lane is halted", || pointsman.run_ok(&show).contains("HALTED"));
    let shown = pointsman.run_ok(&show);
    let line =
        |of: &str| shown.lines().find(|line| line.starts_with(of)).unwrap_or_else(|| panic!("{shown}"));
    assert_eq!(
        line("HANDLER").split_whitespace().collect::<Vec<_>>(),
        ["HANDLER", "STATUS", "WAITING", "ERROR", "FIRST", "TASK"]
    );
    assert!(line("far ").contains("SCHEDULED  0"), "{shown}");
    assert!(line("strict ").contains("HALTED     1") && line("strict ").ends_with(&first), "{shown}");
    let release = format!("    pointsman tasks retry {first}\n    pointsman tasks cancel {first}\n");
    assert!(shown.contains("The lane of strict is halted") && shown.contains(&release), "{shown}");
    assert!(shown.find("EVENT").unwrap() > shown.find("HANDLER").unwrap(), "{shown}");

    pointsman.run_ok(&["tasks", "cancel", &first]);
    wait_until("the next one halts it", || {
        pointsman.run_json(&show)["lanes"][1]["head"]["id"] == second.as_str()
    });
    wait_until("the lane is halted", || pointsman.run_json(&show)["lanes"][1]["halted"] == true);
    pointsman.run_ok(&["tasks", "cancel", &second]);
    assert!(!pointsman.run_ok(&show).contains("HALTED"));

    pointsman.run_ok(&["emit", "record.unrouted", "--key", "record:2"]);
    assert!(
        !pointsman.run_ok(&["objects", "show", "record:2"]).contains("HANDLER"),
        "it has no unfinished tasks"
    );
    let output = pointsman.run_command(&["objects", "show", "Record:1", "--tenant", "shop"]);
    let (_, stderr) = stdout_and_stderr_texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("there is no object \"Record:1\" of the tenant shop"), "{stderr}");
    assert!(stderr.contains("--tenant") && stderr.contains("spelling"), "{stderr}");
}

#[test]
fn tasks_list_suggests_a_handler_for_a_mistyped_one() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    assert_eq!(
        pointsman.run_ok(&["tasks", "--handler", "notfy"]),
        "No tasks. There is no handler or source notfy; did you mean `notify`?"
    );
    assert_eq!(pointsman.run_ok(&["tasks", "--handler", "notify", "--status", "failed"]), "No tasks.");
}

#[test]
fn pausing_and_resuming_print_a_sentence() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let paused = pointsman.run_ok(&["pause", "notify", "--reason", "a test"]);
    assert!(paused.starts_with("notify is paused.\n\nRULE") && paused.ends_with("a test"), "{paused}");
    assert_eq!(pointsman.run_ok(&["resume", "notify"]), "notify is no longer paused.");
    assert_eq!(pointsman.run_ok(&["resume", "notify"]), "notify was not paused.");
    pointsman.run_ok(&["block", "shop/orders"]);
    assert_eq!(pointsman.run_ok(&["unblock", "shop/orders"]), "shop/orders is no longer blocked.");

    let (_, stderr) = stdout_and_stderr_texts(&pointsman.run_command(&["pause", "nightly"]));
    assert!(stderr.contains("--schedule nightly"), "{stderr}");
    let paused_schedule = pointsman.run_ok(&["pause", "--schedule", "nightly"]);
    assert!(paused_schedule.starts_with("Schedule nightly is paused."), "{paused_schedule}");
    let (_, stderr) = stdout_and_stderr_texts(&pointsman.run_command(&["schedules", "run", "shop/orders"]));
    assert!(stderr.contains("`pointsman run shop/orders`"), "{stderr}");
}

#[test]
fn run_wait_explains_why_the_task_waits() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let node = pointsman.serve();
    pointsman.run_ok(&["pause", "shop", "--reason", "a test of waiting"]);
    let script = r#"exec "$0" run shop/orders --wait 2>&1"#;
    let run = pointsman.start_program("sh", &["-c", script, env!("CARGO_BIN_EXE_pointsman")]);
    let reason = run.lines.wait_for_match("why it waits", |line| {
        line.strip_prefix("The task has not started: ").map(String::from)
    });
    assert!(reason.contains("a test of waiting"), "{reason}");
    assert!(node.stop().success());

    let (done, stderr) =
        stdout_and_stderr_texts(&pointsman.run_command(&["work", "--handler", "shop", "--ttl", "1s"]));
    assert!(done.starts_with("0 attempts"), "{done}");
    assert!(stderr.contains("1 task is waiting: pause of shop by "), "{stderr}");
}
