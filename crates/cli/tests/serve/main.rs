//! The real binary, from end to end: a server, a producer, a handler and an observer, each a process.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

#[path = "../common/node.rs"]
mod node;

mod failures;
mod messages;
mod orders;
mod processes;
mod sources;
mod work;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use node::{Place, exists};

/// A command handler that keeps what it was given, and says something about it.
const KEEPER: &str = r#"
handlers:
  keep: {run: {command: ["sh", "-c", "cat > seen.json; echo kept $POINTSMAN_KEY"]}}
  fail: {run: {command: ["sh", "-c", "echo no good >&2; exit 3"]}, retry: {max: 0}}
event_handlers:
  record.published: [keep]
  record.spoilt: [fail]
"#;

/// A command handler that tells that it has begun, and goes on until it is told to.
const WAITER: &str = r#"
server: {drain: 600s}
handlers:
  wait:
    run: {command: ["sh", "-c", "echo $$ > pid; mv pid begun; while [ ! -e go ]; do sleep 0.05; done"]}
event_handlers:
  job.asked: [wait]
"#;

#[test]
fn an_event_reaches_its_handler_and_watch_shows_both() {
    let mut place = Place::new(KEEPER);
    let node = place.serve();
    let watch = place.watch(&["-o", "json", "--since-start"]);
    // Once an event is seen, task changes are listened to as well.
    place.ok(&["emit", "probe"]);
    watch.lines.json("the probe", |line| line["TYPE"] == "probe");

    let value = r#"{"title":"Hello"}"#;
    let id =
        place.ok(&["emit", "record.published", "--key", "record:1", "--value", value, "--context", "ip=::1"]);
    let event = watch.lines.json("the event", |line| line["TYPE"] == "record.published");
    assert_eq!(event["eventId"].to_string(), id);
    assert_eq!(event["value"]["title"], "Hello");
    let done = watch.lines.json("the end of the task", |line| line["status"] == "SUCCESS");
    assert_eq!((&done["handler"], &done["event_id"]), (&"keep".into(), &event["eventId"]));

    let seen: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("seen.json")).unwrap()).unwrap();
    assert_eq!(seen, event, "the handler is given the event as the stream shows it");
    let task = done["id"].as_str().unwrap();
    assert!(place.ok(&["tasks", "logs", task]).ends_with("kept record:1"));
    assert!(place.ok(&["tasks", "logs", "--follow", task]).ends_with("kept record:1"));
    assert_eq!(place.json(&["tasks", "show", task])["attempts"].as_array().unwrap().len(), 1);
    let object = place.json(&["objects", "show", "record:1"]);
    assert_eq!(object["last"], event["eventId"]);
    assert!(node.stop().success());
}

#[test]
fn a_failed_task_is_listed_and_retried() {
    let mut place = Place::new(KEEPER);
    let _node = place.serve();
    let emitted = place.json(&["emit", "record.spoilt"]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    let failed = || place.json(&["tasks", "list", "--status", "FAILED", "--handler", "fail"]);
    node::until("the task has failed", || {
        failed()["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty())
    });
    assert!(place.ok(&["tasks"]).contains(id));
    assert!(place.ok(&["tasks", "logs", id]).contains("no good"));

    place.ok(&["tasks", "retry", id]);
    node::until("it has failed again", || {
        place.json(&["tasks", "show", id])["attempts"].as_array().is_some_and(|attempts| attempts.len() == 2)
    });

    let unknown = place.run(&["tasks", "show", "keep_x_00000000-0000-8000-8000-000000000000"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("pointsman tasks list"));
}

#[test]
fn what_is_emitted_during_a_pause_runs_after_it() {
    let mut place = Place::new(KEEPER);
    let _node = place.serve();
    let paused = place.json(&["pause", "keep", "--reason", "a test"]);
    assert_eq!(
        (&paused["rules"][0]["kind"], &paused["rules"][0]["reason"]),
        (&"pause".into(), &"a test".into())
    );
    let emitted = place.json(&["emit", "record.published", "--key", "record:1"]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    assert_eq!(place.json(&["tasks", "show", id])["status"], "SCHEDULED");
    assert!(place.ok(&["handlers"]).contains("pause"));

    assert_eq!(place.json(&["resume", "keep"])["rules"], serde_json::json!([]));
    node::until("it has run", || place.json(&["tasks", "show", id])["status"] == "SUCCESS");
}

#[test]
fn many_events_come_from_a_file_and_a_repeat_adds_none() {
    let mut place = Place::new("");
    let _node = place.serve();
    let lines: Vec<String> =
        (0..2500).map(|n| format!(r#"{{"type":"line.read","key":"k","value":{n}}}"#)).collect();
    std::fs::write(place.path("events.jsonl"), lines.join("\n")).unwrap();
    let send = ["emit", "--file", "events.jsonl", "--idempotency-key", "import-1"];
    let first = place.ok(&send);
    assert!(first.starts_with("2500 events, the last is "), "{first}");
    assert_eq!(place.ok(&send), first, "a repeat answers the same");

    let watch = place.watch(&["-o", "json", "--since-start", "--no-tasks", "--return", "line"]);
    for n in 0..2500 {
        let event = watch.lines.json("the next event", |_| true);
        assert_eq!(event["value"], n, "each once, in order");
    }
}

#[test]
fn a_server_told_to_stop_lets_its_tasks_end() {
    let mut place = Place::new(WAITER);
    let node = place.serve_elsewhere();
    let emitted = place.json(&["emit", "job.asked"]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    exists(&place.path("begun"));
    node.signal(Signal::SIGTERM);
    let told = "stopping: waiting for 1 running task, at most 600 s; another signal stops at once";
    node::until("it tells what it waits for", || place.log().contains(told));
    std::fs::write(place.path("go"), "").unwrap();
    assert!(node.ended().success());
    assert!(place.log().trim_end().ends_with("stopped"), "{}", place.log());

    let _node = place.serve();
    let task = place.json(&["tasks", "show", id]);
    assert_eq!((&task["status"], &task["attempt"]), (&"SUCCESS".into(), &1.into()));
}

#[test]
fn a_second_signal_ends_it_at_once_with_all_it_started() {
    let mut place = Place::new(WAITER);
    let node = place.serve();
    place.ok(&["emit", "job.asked"]);
    exists(&place.path("begun"));
    let program = std::fs::read_to_string(place.path("begun")).unwrap().trim().parse().unwrap();
    node.signal(Signal::SIGTERM);
    node::until("it takes no requests", || !place.run(&["handlers"]).status.success());
    node.signal(Signal::SIGINT);
    assert_eq!(node.ended().code(), Some(1));
    node::until("the handler's program is gone", || kill(Pid::from_raw(program), None).is_err());
}

#[test]
fn watch_goes_on_where_it_was_when_the_server_comes_back() {
    let mut place = Place::new("");
    let node = place.serve();
    let watch = place.watch(&["-o", "json", "--since-start"]);
    let mut emitted: Vec<String> = vec![place.ok(&["emit", "first"])];
    watch.lines.json("the first event", |line| line["TYPE"] == "first");
    assert!(node.stop().success());

    let _node = place.serve();
    emitted.push(place.ok(&["emit", "second"]));
    emitted.push(place.ok(&["emit", "third"]));
    for (id, kind) in emitted[1..].iter().zip(["second", "third"]) {
        // Between them the server tells of its own end and start.
        let event = watch.lines.json(kind, |event| event["tenant"] == "default");
        assert_eq!((event["eventId"].to_string(), &event["TYPE"]), (id.clone(), &kind.into()));
    }
}

#[test]
fn a_cursor_that_is_foreign_is_told_as_torn() {
    let mut place = Place::new("");
    let _node = place.serve();
    let watch = place.watch(&["--after", "9007199254740991"]);
    watch.lines.find("the tear", |line| line.starts_with("TORN: ").then_some(()));
    // Told, it goes on with what comes now.
    place.ok(&["emit", "after.all"]);
    watch.lines.find("the next event", |line| line.contains("after.all").then_some(()));
}

#[test]
fn an_event_is_not_taken_for_a_tear_or_a_task_because_of_its_type() {
    let mut place = Place::new("");
    let _node = place.serve();
    let watch = place.watch(&["--since-start"]);
    for kind in ["Torn", "task"] {
        let refused = place.run(&["emit", kind]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && said.contains("is the name of a frame of the event stream"),
            "{said}"
        );
    }
    for kind in ["Torn.page", "task.done", "last"] {
        place.ok(&["emit", kind]);
    }
    // Before what lies back stands its day.
    watch.lines.find("the day", |line| line.starts_with("── 20").then_some(()));
    for kind in ["Torn.page", "task.done", "last"] {
        let line = watch.lines.find(kind, |line| (!line.contains("Scheduler")).then(|| line.to_owned()));
        assert!(line.contains(&format!("  event      {kind}  ")), "{line}");
    }
}

#[test]
fn without_the_token_one_is_told_where_it_comes_from() {
    let mut place = Place::new("");
    let _node = place.serve();
    let output = place.command(&["emit", "a.b"]).env("POINTSMAN_TOKEN", "").output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("HTTP 401") && told.contains("POINTSMAN_TOKEN_FILE"), "{told}");
}

#[test]
fn what_keeps_a_server_from_starting_has_its_exit_code() {
    let bad = Place::new("workres: 3\n");
    let output = bad.run(&["serve", "--listen", "127.0.0.1:0"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(78), "{told}");
    assert!(told.contains("pointsman.yml:1:1") && told.contains("`workers`"), "{told}");

    let place = Place::new("");
    let output = place.run(&["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:no/such/folder/a.db"]);
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
}
