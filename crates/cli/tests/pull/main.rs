//! Pull workers against the real server: the example in Python, run as a user would run it.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "../common/test_server.rs"]
mod test_server;

mod lossy_proxy;

use test_server::{RunningCommand, TestServer, wait_until};

const CONFIG: &str = r#"
handlers:
  convert: {run: pull, retry: {max: 0}}
event_handlers:
  document.uploaded: [convert]
sources:
  archive:
    collections: [{name: letters}]
"#;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python/worker.py");

fn worker(pointsman: &TestServer) -> RunningCommand {
    pointsman
        .start_program("python3", &[EXAMPLE, "--handler", "convert", "--handler", "archive", "--lease", "1"])
}

/// Uploads a document and answers its task.
fn upload(pointsman: &TestServer, value: &str) -> String {
    let emitted = pointsman.run_json(&["emit", "document.uploaded", "--key", "document:1", "--value", value]);
    emitted["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

fn task(pointsman: &TestServer, id: &str) -> serde_json::Value {
    pointsman.run_json(&["tasks", "show", id])
}

fn ends_as(pointsman: &TestServer, id: &str, status: &str) -> serde_json::Value {
    wait_until(&format!("{id} ends as {status}"), || task(pointsman, id)["status"] == status);
    task(pointsman, id)
}

/// Waits until a worker says that it begins an attempt of a task.
fn begins(worker: &RunningCommand, id: &str, attempt: u32) {
    let wanted = format!("working on {id}, attempt {attempt}");
    worker.lines.find(&wanted, |line| (line == wanted).then_some(()));
}

#[test]
fn a_worker_completes_claimed_tasks_and_its_emits_commit_with_them() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let worker = worker(&pointsman);

    let id = upload(&pointsman, r#"{"pages": 2}"#);
    let done = ends_as(&pointsman, &id, "SUCCESS");
    assert_eq!((&done["result"]["pages"], &done["attempt"]), (&2.into(), &1.into()));
    let log = pointsman.run_ok(&["tasks", "logs", &id]);
    assert!(log.contains("page 1 of 2") && log.contains("page 2 of 2"), "{log}");
    let watch = pointsman.start_watch(&["-o", "json", "--since-start", "--return", "document.converted"]);
    let converted = watch.lines.find_json("the event it emitted", |_| true);
    assert_eq!((&converted["key"], &converted["value"]["pages"]), (&"document:1".into(), &2.into()));

    let log = pointsman.run_ok(&["run", "archive/letters", "--wait"]);
    assert!(log.contains("reading letters of archive"), "{log}");
    assert!(worker.stop().success(), "told to stop, it ends well");
}

#[test]
fn a_permanent_failure_is_not_retried_and_a_snooze_uses_no_retry() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let _worker = worker(&pointsman);

    let failed = ends_as(&pointsman, &upload(&pointsman, r#"{"pages": 0}"#), "FAILED");
    assert!(failed["error"].as_str().unwrap().contains("a document without pages"), "{failed}");
    assert_eq!(failed["attempts"].as_array().unwrap().len(), 1);

    let snoozed = ends_as(&pointsman, &upload(&pointsman, r#"{"pages": 1, "uploading": true}"#), "SUCCESS");
    assert_eq!((&snoozed["attempt"], &snoozed["retries"]), (&2.into(), &0.into()));
    assert_eq!(snoozed["attempts"][0]["end"], "snoozed");
}

#[test]
fn the_task_of_a_killed_worker_is_taken_over_by_another() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let first = worker(&pointsman);
    let id = upload(&pointsman, r#"{"pages": 10}"#);
    begins(&first, &id, 1);
    let running = task(&pointsman, &id);
    assert_eq!((&running["status"], &running["running"]["number"]), (&"RUNNING".into(), &1.into()));
    first.kill();

    let second = worker(&pointsman);
    begins(&second, &id, 2);
    let done = ends_as(&pointsman, &id, "SUCCESS");
    // The handler forgives no failure at all: the death of a worker is none.
    assert_eq!((&done["attempts"][0]["end"], &done["retries"]), (&"crashed".into(), &0.into()));
}

#[test]
fn a_canceled_task_is_dropped_and_the_worker_continues_with_the_next() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let worker = worker(&pointsman);
    let id = upload(&pointsman, r#"{"pages": 100000}"#);
    begins(&worker, &id, 1);
    pointsman.run_ok(&["tasks", "cancel", &id]);
    worker.lines.find("that it was lost", |line| line.starts_with(&format!("lost {id}")).then_some(()));
    assert_eq!(task(&pointsman, &id)["status"], "CANCELED");
    ends_as(&pointsman, &upload(&pointsman, r#"{"pages": 1}"#), "SUCCESS");
}

#[test]
fn a_worker_reconnects_after_a_server_restart() {
    let mut pointsman = TestServer::new(CONFIG);
    let node = pointsman.serve();
    let worker = worker(&pointsman);
    ends_as(&pointsman, &upload(&pointsman, r#"{"pages": 1}"#), "SUCCESS");
    assert!(node.stop().success());
    let _node = pointsman.serve();
    let id = upload(&pointsman, r#"{"pages": 1}"#);
    begins(&worker, &id, 1);
    ends_as(&pointsman, &id, "SUCCESS");
}

#[test]
fn a_worker_asks_for_the_outcome_after_a_lost_response() {
    let mut pointsman = TestServer::new(CONFIG);
    let _node = pointsman.serve();
    let url = format!("POINTSMAN_URL=http://{}", lossy_proxy::start_before(pointsman.address(), "/done"));
    let words = [&url, "python3", EXAMPLE, "--handler", "convert", "--lease", "10"];
    let worker = pointsman.start_program("env", &words);
    let id = upload(&pointsman, r#"{"pages": 1}"#);
    let told = format!("told {id} done; the answer was lost");
    let line =
        worker.lines.find("what became of it", |line| line.starts_with(&told).then(|| line.to_owned()));
    assert!(line.contains("`done`"), "{line}");
    assert_eq!(ends_as(&pointsman, &id, "SUCCESS")["attempt"], 1);
}

#[test]
fn a_worker_without_a_token_reports_it_in_one_line() {
    let mut command = std::process::Command::new("python3");
    let output =
        command.args([EXAMPLE, "--handler", "convert"]).env_remove("POINTSMAN_TOKEN").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), told.lines().count()), (Some(1), 1), "{told}");
    assert!(told.contains("POINTSMAN_TOKEN is not set"), "{told}");
}
