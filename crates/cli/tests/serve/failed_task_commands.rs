//! Commands for failed and waiting tasks: `tasks why`, `tasks redrive` and `handlers adopt`.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::test_server::{ServerFixture, wait_until};

/// A configuration with a handler that fails until the file `patched` exists.
const FAILING_UNTIL_PATCHED_CONFIG: &str = r#"
handlers:
  fix: {run: {command: ["sh", "-c", "test -e patched"]}, order: none, retry: {max: 0}}
event_handlers:
  record.spoilt: [fix]
"#;

/// Emits events and waits until all their tasks have failed.
fn emit_and_wait_for_failures(pointsman: &ServerFixture, count: usize) {
    for _ in 0..count {
        pointsman.run_ok(&["emit", "record.spoilt"]);
    }
    wait_until("all have failed", || count_tasks(pointsman, "FAILED") == count);
}

fn count_tasks(pointsman: &ServerFixture, status: &str) -> usize {
    let list = pointsman.run_json(&["tasks", "list", "--status", status, "--handler", "fix"]);
    list["tasks"].as_array().unwrap().len()
}

/// The total number of attempts of the handler's tasks.
fn count_attempts(pointsman: &ServerFixture) -> u64 {
    let list = pointsman.run_json(&["tasks", "list", "--handler", "fix"]);
    list["tasks"].as_array().unwrap().iter().map(|task| task["attempt"].as_u64().unwrap()).sum()
}

#[test]
fn a_redrive_counts_its_tasks_asks_for_confirmation_and_retries() {
    let mut pointsman = ServerFixture::new(FAILING_UNTIL_PATCHED_CONFIG);
    let _node = pointsman.serve();
    emit_and_wait_for_failures(&pointsman, 3);
    let redrive = ["tasks", "redrive", "--handler", "fix"];
    assert!(
        pointsman.run_ok(&[&redrive[..], &["--dry-run"]].concat()).starts_with("3 tasks would be retried")
    );

    // Without a terminal and without --yes.
    let unconfirmed = pointsman.run_command(&redrive);
    assert_eq!(unconfirmed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unconfirmed.stderr).contains("--yes"));
    assert_eq!(count_tasks(&pointsman, "FAILED"), 3);

    std::fs::write(pointsman.file_path("patched"), "").unwrap();
    let done = pointsman.run_ok(&[&redrive[..], &["--yes", "--rate", "100/s"]].concat());
    assert_eq!(done, "3 of 3 tasks queued again");
    wait_until("all have succeeded", || count_tasks(&pointsman, "SUCCESS") == 3);
    assert!(pointsman.run_ok(&[&redrive[..], &["--yes"]].concat()).starts_with("No tasks match"));
    assert!(pointsman.run_ok(&["tasks", "redrive", "--all", "--yes"]).starts_with("No tasks match"));

    let unknown = pointsman.run_command(&["tasks", "redrive", "--handler", "fxi", "--yes"]);
    let stderr = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert_eq!(unknown.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("there is no handler fxi") && stderr.contains("did you mean `fix`"), "{stderr}");
}

#[test]
fn a_canary_that_fails_stops_the_redrive() {
    let mut pointsman = ServerFixture::new(FAILING_UNTIL_PATCHED_CONFIG);
    let _node = pointsman.serve();
    emit_and_wait_for_failures(&pointsman, 4);
    let output = pointsman.run_command(&["tasks", "redrive", "--handler", "fix", "--canary", "1", "--yes"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the redrive stopped") && stderr.contains("1 of 4 tasks"), "{stderr}");
    assert_eq!(count_attempts(&pointsman), 5, "only the canary ran again");
}

#[test]
fn an_interrupt_stops_the_redrive() {
    let mut pointsman = ServerFixture::new(FAILING_UNTIL_PATCHED_CONFIG);
    let _node = pointsman.serve();
    emit_and_wait_for_failures(&pointsman, 4);
    let mut redrive = pointsman.command(&["tasks", "redrive", "--handler", "fix", "--rate", "1/h", "--yes"]);
    let redrive = redrive.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the first has run again", || count_attempts(&pointsman) == 5);
    kill(Pid::from_raw(redrive.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = redrive.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("1 of 4 tasks queued again"), "{stderr}");
    assert!(pointsman.run_ok(&["audit"]).contains("stop_redrive"));
}

#[test]
fn past_events_are_replayed_to_a_new_handler() {
    let mut pointsman = ServerFixture::new("");
    let node = pointsman.serve();
    let first = pointsman.run_ok(&["emit", "record.spoilt"]);
    pointsman.run_ok(&["emit", "record.spoilt"]);
    pointsman.run_ok(&["emit", "other"]);
    assert!(node.stop().success());
    std::fs::write(pointsman.file_path("pointsman.yml"), FAILING_UNTIL_PATCHED_CONFIG).unwrap();
    std::fs::write(pointsman.file_path("patched"), "").unwrap();

    let _node = pointsman.serve();
    let replay = ["handlers", "adopt", "fix", "--from", &first];
    let adopted = pointsman.run_json(&replay);
    assert_eq!((&adopted["replayed"], &adopted["more"]), (&2.into(), &false.into()));
    wait_until("both have run", || count_tasks(&pointsman, "SUCCESS") == 2);
    assert!(pointsman.run_ok(&replay).ends_with("0 events replayed"), "no task is created twice");
}

#[test]
fn tasks_why_and_the_audit_log_show_the_pause_that_blocks_a_task() {
    let mut pointsman = ServerFixture::new(FAILING_UNTIL_PATCHED_CONFIG);
    let _node = pointsman.serve();
    pointsman.run_ok(&["pause", "fix", "--reason", "a test of why"]);
    let emitted = pointsman.run_json(&["emit", "record.spoilt"]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    let why = pointsman.run_ok(&["tasks", "why", id]);
    let closed: Vec<&str> = why.lines().filter(|line| line.contains('✗')).collect();
    assert_eq!(closed.len(), 1, "{why}");
    assert!(closed[0].contains("rule") && closed[0].contains("a test of why"), "{why}");
    assert!(why.lines().any(|line| line.contains('✓') && line.contains("handler")), "{why}");

    let audit = pointsman.run_ok(&["audit"]);
    assert!(audit.contains("pause") && audit.contains("a test of why"), "{audit}");
    let nodes = pointsman.run_json(&["nodes"]);
    assert_eq!(
        (&nodes["nodes"][0]["alive"], &nodes["nodes"][0]["handlers"][0]),
        (&true.into(), &"fix".into())
    );
}
