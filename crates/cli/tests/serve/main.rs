//! The real binary from end to end: server, producer, handler and observer as separate processes.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "../common/test_server.rs"]
mod test_server;

mod command_processes;
mod failed_task_commands;
mod hint_messages;
mod orders;
mod sources_and_schedules;
mod work;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use test_server::{ServerFixture, wait_for_file};

/// A command handler that stores its input in a file and logs a line, and one that fails.
const STORING_HANDLER_CONFIG: &str = r#"
handlers:
  keep: {run: {command: ["sh", "-c", "cat > input.json; echo kept $POINTSMAN_KEY"]}}
  fail: {run: {command: ["sh", "-c", "echo no good >&2; exit 3"]}, retry: {max: 0}}
event_handlers:
  record.published: [keep]
  record.spoilt: [fail]
"#;

/// A command handler that creates a file when it starts, and runs until another file exists.
const WAITING_HANDLER_CONFIG: &str = r#"
server: {drain: 600s}
handlers:
  wait:
    run: {command: ["sh", "-c", "echo $$ > pid; mv pid started; while [ ! -e finish ]; do sleep 0.05; done"]}
event_handlers:
  job.requested: [wait]
"#;

#[test]
fn an_event_reaches_its_handler_and_watch_prints_event_and_task() {
    let mut pointsman = ServerFixture::new(STORING_HANDLER_CONFIG);
    let node = pointsman.serve();
    let watch = pointsman.start_watch(&["-o", "json", "--since-start"]);
    // Once the event arrives, task changes are streamed as well.
    pointsman.run_ok(&["emit", "probe"]);
    watch.lines.wait_for_json("the probe", |line| line["TYPE"] == "probe");

    let value = r#"{"title":"Hello"}"#;
    let id = pointsman.run_ok(&[
        "emit",
        "record.published",
        "--key",
        "record:1",
        "--value",
        value,
        "--context",
        "ip=::1",
    ]);
    let event = watch.lines.wait_for_json("the event", |line| line["TYPE"] == "record.published");
    assert_eq!(event["eventId"].to_string(), id);
    assert_eq!(event["value"]["title"], "Hello");
    let done = watch.lines.wait_for_json("the end of the task", |line| line["status"] == "SUCCESS");
    assert_eq!((&done["handler"], &done["event_id"]), (&"keep".into(), &event["eventId"]));

    let handler_input: serde_json::Value =
        serde_json::from_slice(&std::fs::read(pointsman.file_path("input.json")).unwrap()).unwrap();
    assert_eq!(handler_input, event, "the handler gets the event as the stream shows it");
    let task = done["id"].as_str().unwrap();
    assert!(pointsman.run_ok(&["tasks", "logs", task]).ends_with("kept record:1"));
    assert!(pointsman.run_ok(&["tasks", "logs", "--follow", task]).ends_with("kept record:1"));
    assert_eq!(pointsman.run_json(&["tasks", "show", task])["attempts"].as_array().unwrap().len(), 1);
    let object = pointsman.run_json(&["objects", "show", "record:1"]);
    assert_eq!(object["last"], event["eventId"]);
    assert!(node.stop().success());
}

#[test]
fn a_failed_task_is_listed_and_retried() {
    let mut pointsman = ServerFixture::new(STORING_HANDLER_CONFIG);
    let _node = pointsman.serve();
    let emitted = pointsman.run_json(&["emit", "record.spoilt"]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    let failed = || pointsman.run_json(&["tasks", "list", "--status", "FAILED", "--handler", "fail"]);
    test_server::wait_until("the task has failed", || {
        failed()["tasks"].as_array().is_some_and(|tasks| !tasks.is_empty())
    });
    assert!(pointsman.run_ok(&["tasks"]).contains(id));
    assert!(pointsman.run_ok(&["tasks", "logs", id]).contains("no good"));

    pointsman.run_ok(&["tasks", "retry", id]);
    test_server::wait_until("it has failed again", || {
        pointsman.run_json(&["tasks", "show", id])["attempts"]
            .as_array()
            .is_some_and(|attempts| attempts.len() == 2)
    });

    let unknown = pointsman.run_command(&["tasks", "show", "keep_x_00000000-0000-8000-8000-000000000000"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("pointsman tasks list"));
}

#[test]
fn tasks_created_during_a_pause_run_after_resume() {
    let mut pointsman = ServerFixture::new(STORING_HANDLER_CONFIG);
    let _node = pointsman.serve();
    let paused = pointsman.run_json(&["pause", "keep", "--reason", "a test"]);
    assert_eq!(
        (&paused["rules"][0]["kind"], &paused["rules"][0]["reason"]),
        (&"pause".into(), &"a test".into())
    );
    let emitted = pointsman.run_json(&["emit", "record.published", "--key", "record:1"]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    assert_eq!(pointsman.run_json(&["tasks", "show", id])["status"], "SCHEDULED");
    assert!(pointsman.run_ok(&["handlers"]).contains("pause"));

    assert_eq!(pointsman.run_json(&["resume", "keep"])["rules"], serde_json::json!([]));
    test_server::wait_until("it has run", || {
        pointsman.run_json(&["tasks", "show", id])["status"] == "SUCCESS"
    });
}

#[test]
fn events_are_emitted_from_a_file_and_a_repeat_adds_none() {
    let mut pointsman = ServerFixture::new("");
    let _node = pointsman.serve();
    let lines: Vec<String> =
        (0..2500).map(|n| format!(r#"{{"type":"line.read","key":"k","value":{n}}}"#)).collect();
    std::fs::write(pointsman.file_path("events.jsonl"), lines.join("\n")).unwrap();
    let send = ["emit", "--file", "events.jsonl", "--idempotency-key", "import-1"];
    let first = pointsman.run_ok(&send);
    assert!(first.starts_with("2500 events emitted, the last id is "), "{first}");
    assert_eq!(pointsman.run_ok(&send), first, "a repeat prints the same");

    let watch = pointsman.start_watch(&["-o", "json", "--since-start", "--no-tasks", "--return", "line"]);
    for n in 0..2500 {
        let event = watch.lines.wait_for_json("the next event", |_| true);
        assert_eq!(event["value"], n, "each once, in order");
    }
}

#[test]
fn a_stopping_server_waits_for_its_running_tasks() {
    let mut pointsman = ServerFixture::new(WAITING_HANDLER_CONFIG);
    let node = pointsman.serve_on_new_port();
    let emitted = pointsman.run_json(&["emit", "job.requested"]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    wait_for_file(&pointsman.file_path("started"));
    node.send_signal(Signal::SIGTERM);
    let message =
        "stopping the server: waiting for 1 running task, at most 600 s; another signal stops it immediately";
    test_server::wait_until("it logs what it waits for", || pointsman.read_server_log().contains(message));
    std::fs::write(pointsman.file_path("finish"), "").unwrap();
    assert!(node.wait_for_exit().success());
    assert!(
        pointsman.read_server_log().trim_end().ends_with("server stopped; unfinished tasks stay queued"),
        "{}",
        pointsman.read_server_log()
    );

    let _node = pointsman.serve();
    let task = pointsman.run_json(&["tasks", "show", id]);
    assert_eq!((&task["status"], &task["attempt"]), (&"SUCCESS".into(), &1.into()));
}

#[test]
fn a_second_signal_stops_the_server_and_its_commands_immediately() {
    let mut pointsman = ServerFixture::new(WAITING_HANDLER_CONFIG);
    let node = pointsman.serve();
    pointsman.run_ok(&["emit", "job.requested"]);
    wait_for_file(&pointsman.file_path("started"));
    let program = std::fs::read_to_string(pointsman.file_path("started")).unwrap().trim().parse().unwrap();
    node.send_signal(Signal::SIGTERM);
    test_server::wait_until("it takes no requests", || {
        !pointsman.run_command(&["handlers"]).status.success()
    });
    node.send_signal(Signal::SIGINT);
    assert_eq!(node.wait_for_exit().code(), Some(1));
    test_server::wait_until("the handler's program is gone", || kill(Pid::from_raw(program), None).is_err());
}

#[test]
fn watch_resumes_after_a_server_restart() {
    let mut pointsman = ServerFixture::new("");
    let node = pointsman.serve();
    let watch = pointsman.start_watch(&["-o", "json", "--since-start"]);
    let mut emitted: Vec<String> = vec![pointsman.run_ok(&["emit", "first"])];
    watch.lines.wait_for_json("the first event", |line| line["TYPE"] == "first");
    assert!(node.stop().success());

    let _node = pointsman.serve();
    emitted.push(pointsman.run_ok(&["emit", "second"]));
    emitted.push(pointsman.run_ok(&["emit", "third"]));
    for (id, event_type) in emitted[1..].iter().zip(["second", "third"]) {
        // In between, the server records its own stop and start.
        let event = watch.lines.wait_for_json(event_type, |event| event["tenant"] == "default");
        assert_eq!((event["eventId"].to_string(), &event["TYPE"]), (id.clone(), &event_type.into()));
    }
}

#[test]
fn watch_prints_torn_for_a_cursor_of_another_journal_and_continues() {
    let mut pointsman = ServerFixture::new("");
    let _node = pointsman.serve();
    let watch = pointsman.start_watch(&["--after", "9007199254740991"]);
    watch.lines.wait_for_match("the gap", |line| line.starts_with("TORN: ").then_some(()));
    // Then it continues with new events.
    pointsman.run_ok(&["emit", "after.all"]);
    watch.lines.wait_for_match("the next event", |line| line.contains("after.all").then_some(()));
}

#[test]
fn an_event_type_cannot_be_confused_with_a_stream_frame() {
    let mut pointsman = ServerFixture::new("");
    let _node = pointsman.serve();
    let watch = pointsman.start_watch(&["--since-start"]);
    for event_type in ["Torn", "task"] {
        let refused = pointsman.run_command(&["emit", event_type]);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && stderr.contains("is the name of a frame of the event stream"),
            "{stderr}"
        );
    }
    for event_type in ["Torn.page", "task.done", "last"] {
        pointsman.run_ok(&["emit", event_type]);
    }
    // Past events have a line with their day above.
    watch.lines.wait_for_match("the day", |line| line.starts_with("── 20").then_some(()));
    for event_type in ["Torn.page", "task.done", "last"] {
        let line = watch
            .lines
            .wait_for_match(event_type, |line| (!line.contains("Scheduler")).then(|| line.to_owned()));
        assert!(line.contains(&format!("  event      {event_type}  ")), "{line}");
    }
}

#[test]
fn emit_without_a_token_explains_how_to_set_it() {
    let mut pointsman = ServerFixture::new("");
    let _node = pointsman.serve();
    let output = pointsman.command(&["emit", "a.b"]).env("POINTSMAN_TOKEN", "").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("HTTP 401") && stderr.contains("POINTSMAN_TOKEN_FILE"), "{stderr}");
}

#[test]
fn start_errors_have_their_exit_codes() {
    let bad = ServerFixture::new("workres: 3\n");
    let output = bad.run_command(&["serve", "--listen", "127.0.0.1:0"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(78), "{stderr}");
    assert!(stderr.contains("pointsman.yml:1:1") && stderr.contains("`workers`"), "{stderr}");

    let pointsman = ServerFixture::new("");
    let output =
        pointsman.run_command(&["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:no/such/folder/a.db"]);
    assert_eq!(output.status.code(), Some(75), "{}", String::from_utf8_lossy(&output.stderr));
}
