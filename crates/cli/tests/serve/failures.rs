//! Tools for what went wrong: why a task waits, and running many again.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::node::{Place, until};

/// A handler that fails until a file is there.
const PATCHED: &str = r#"
handlers:
  fix: {run: {command: ["sh", "-c", "test -e patched"]}, order: none, retry: {max: 0}}
event_handlers:
  record.spoilt: [fix]
"#;

/// Emits events and waits until all their tasks have failed.
fn fail(place: &Place, many: usize) {
    for _ in 0..many {
        place.ok(&["emit", "record.spoilt"]);
    }
    until("all have failed", || count(place, "FAILED") == many);
}

fn count(place: &Place, status: &str) -> usize {
    let list = place.json(&["tasks", "list", "--status", status, "--handler", "fix"]);
    list["tasks"].as_array().unwrap().len()
}

/// How often tasks of the handler were begun, all together.
fn attempts(place: &Place) -> u64 {
    let list = place.json(&["tasks", "list", "--handler", "fix"]);
    list["tasks"].as_array().unwrap().iter().map(|task| task["attempt"].as_u64().unwrap()).sum()
}

#[test]
fn a_redrive_is_counted_then_agreed_to_then_done() {
    let mut place = Place::new(PATCHED);
    let _node = place.serve();
    fail(&place, 3);
    let redrive = ["tasks", "redrive", "--handler", "fix"];
    assert!(place.ok(&[&redrive[..], &["--dry-run"]].concat()).starts_with("3 tasks would be run again"));

    // Nobody sits at a terminal here, and nobody has said yes.
    let unasked = place.run(&redrive);
    assert_eq!(unasked.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unasked.stderr).contains("--yes"));
    assert_eq!(count(&place, "FAILED"), 3);

    std::fs::write(place.path("patched"), "").unwrap();
    let done = place.ok(&[&redrive[..], &["--yes", "--rate", "100/s"]].concat());
    assert_eq!(done, "3 of 3 tasks queued again");
    until("all have succeeded", || count(&place, "SUCCESS") == 3);
    assert!(place.ok(&[&redrive[..], &["--yes"]].concat()).starts_with("No tasks match"));
    assert!(place.ok(&["tasks", "redrive", "--all", "--yes"]).starts_with("No tasks match"));

    let unknown = place.run(&["tasks", "redrive", "--handler", "fxi", "--yes"]);
    let told = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert_eq!(unknown.status.code(), Some(1), "{told}");
    assert!(told.contains("there is no handler fxi") && told.contains("did you mean `fix`"), "{told}");
}

#[test]
fn a_canary_that_fails_stops_the_redrive() {
    let mut place = Place::new(PATCHED);
    let _node = place.serve();
    fail(&place, 4);
    let output = place.run(&["tasks", "redrive", "--handler", "fix", "--canary", "1", "--yes"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("the redrive stopped") && told.contains("1 of 4 tasks"), "{told}");
    assert_eq!(attempts(&place), 5, "only the canary ran again");
}

#[test]
fn an_interrupt_stops_the_redrive() {
    let mut place = Place::new(PATCHED);
    let _node = place.serve();
    fail(&place, 4);
    let mut redrive = place.command(&["tasks", "redrive", "--handler", "fix", "--rate", "1/h", "--yes"]);
    let redrive = redrive.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the first has run again", || attempts(&place) == 5);
    kill(Pid::from_raw(redrive.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = redrive.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("1 of 4 tasks queued again"), "{told}");
    assert!(place.ok(&["audit"]).contains("stop_redrive"));
}

#[test]
fn a_new_handler_is_given_its_history() {
    let mut place = Place::new("");
    let node = place.serve();
    let first = place.ok(&["emit", "record.spoilt"]);
    place.ok(&["emit", "record.spoilt"]);
    place.ok(&["emit", "other"]);
    assert!(node.stop().success());
    std::fs::write(place.path("pointsman.yml"), PATCHED).unwrap();
    std::fs::write(place.path("patched"), "").unwrap();

    let _node = place.serve();
    let replay = ["handlers", "adopt", "fix", "--from", &first];
    let adopted = place.json(&replay);
    assert_eq!((&adopted["replayed"], &adopted["more"]), (&2.into(), &false.into()));
    until("both have run", || count(&place, "SUCCESS") == 2);
    assert!(place.ok(&replay).ends_with("0 events replayed"), "none is made twice");
}

#[test]
fn why_names_what_holds_a_task_and_the_audit_who_did_it() {
    let mut place = Place::new(PATCHED);
    let _node = place.serve();
    place.ok(&["pause", "fix", "--reason", "a test of why"]);
    let emitted = place.json(&["emit", "record.spoilt"]);
    let id = emitted["events"][0]["tasks"][0].as_str().unwrap();
    let why = place.ok(&["tasks", "why", id]);
    let shut: Vec<&str> = why.lines().filter(|line| line.contains('✗')).collect();
    assert_eq!(shut.len(), 1, "{why}");
    assert!(shut[0].contains("rule") && shut[0].contains("a test of why"), "{why}");
    assert!(why.lines().any(|line| line.contains('✓') && line.contains("handler")), "{why}");

    let audit = place.ok(&["audit"]);
    assert!(audit.contains("pause") && audit.contains("a test of why"), "{audit}");
    let nodes = place.json(&["nodes"]);
    assert_eq!(
        (&nodes["nodes"][0]["alive"], &nodes["nodes"][0]["handlers"][0]),
        (&true.into(), &"fix".into())
    );
}
