//! Pull workers with the real server: the Python example.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "../common/test_server.rs"]
mod test_server;

mod lossy_proxy;

use test_server::{RunningTestCommand, ServerFixture, wait_until};

const CONFIG: &str = r#"
handlers:
  convert: {run: pull, retry: {max: 0}}
event_handlers:
  document.uploaded: [convert]
sources:
  archive:
    collections: [{name: letters}]
"#;

const EXAMPLE_WORKER_PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python/worker.py");

fn start_worker(pointsman: &ServerFixture) -> RunningTestCommand {
    pointsman.start_program(
        "python3",
        &[EXAMPLE_WORKER_PATH, "--handler", "convert", "--handler", "archive", "--lease", "1"],
    )
}

/// Emits an upload event and returns its task.
fn emit_upload_and_get_task_id(pointsman: &ServerFixture, value: &str) -> String {
    let emitted = pointsman.run_json(&["emit", "document.uploaded", "--key", "document:1", "--value", value]);
    emitted["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

fn show_task(pointsman: &ServerFixture, id: &str) -> serde_json::Value {
    pointsman.run_json(&["tasks", "show", id])
}

fn wait_for_status(pointsman: &ServerFixture, id: &str, status: &str) -> serde_json::Value {
    wait_until(&format!("{id} ends as {status}"), || show_task(pointsman, id)["status"] == status);
    show_task(pointsman, id)
}

/// Waits until the worker prints that it starts an attempt.
fn wait_for_attempt(worker: &RunningTestCommand, id: &str, attempt: u32) {
    let wanted = format!("working on {id}, attempt {attempt}");
    worker.lines.wait_for_match(&wanted, |line| (line == wanted).then_some(()));
}

#[test]
fn a_worker_completes_tasks_with_a_result_log_lines_and_an_emitted_event() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let worker = start_worker(&pointsman);

    let id = emit_upload_and_get_task_id(&pointsman, r#"{"pages": 2}"#);
    let done = wait_for_status(&pointsman, &id, "SUCCESS");
    assert_eq!((&done["result"]["pages"], &done["attempt"]), (&2.into(), &1.into()));
    let log = pointsman.run_ok(&["tasks", "logs", &id]);
    assert!(log.contains("page 1 of 2") && log.contains("page 2 of 2"), "{log}");
    let watch = pointsman.start_watch(&["-o", "json", "--since-start", "--return", "document.converted"]);
    let converted = watch.lines.wait_for_json("the event it emitted", |_| true);
    assert_eq!((&converted["key"], &converted["value"]["pages"]), (&"document:1".into(), &2.into()));

    let log = pointsman.run_ok(&["run", "archive/letters", "--wait"]);
    assert!(log.contains("reading letters of archive"), "{log}");
    assert!(worker.stop().success(), "it stops gracefully");
}

#[test]
fn a_permanent_failure_is_not_retried_and_a_snooze_uses_no_retry() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let _worker = start_worker(&pointsman);

    let failed =
        wait_for_status(&pointsman, &emit_upload_and_get_task_id(&pointsman, r#"{"pages": 0}"#), "FAILED");
    assert!(failed["error"].as_str().unwrap().contains("a document without pages"), "{failed}");
    assert_eq!(failed["attempts"].as_array().unwrap().len(), 1);

    let snoozed = wait_for_status(
        &pointsman,
        &emit_upload_and_get_task_id(&pointsman, r#"{"pages": 1, "uploading": true}"#),
        "SUCCESS",
    );
    assert_eq!((&snoozed["attempt"], &snoozed["retries"]), (&2.into(), &0.into()));
    assert_eq!(snoozed["attempts"][0]["end"], "snoozed");
}

#[test]
fn the_task_of_a_killed_worker_is_taken_over_by_another() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let first = start_worker(&pointsman);
    let id = emit_upload_and_get_task_id(&pointsman, r#"{"pages": 10}"#);
    wait_for_attempt(&first, &id, 1);
    let running = show_task(&pointsman, &id);
    assert_eq!((&running["status"], &running["running"]["number"]), (&"RUNNING".into(), &1.into()));
    first.kill();

    let second = start_worker(&pointsman);
    wait_for_attempt(&second, &id, 2);
    let done = wait_for_status(&pointsman, &id, "SUCCESS");
    // The handler has no retries: the end of a worker does not count as a failure.
    assert_eq!((&done["attempts"][0]["end"], &done["retries"]), (&"crashed".into(), &0.into()));
}

#[test]
fn a_canceled_task_is_dropped_and_the_worker_continues_with_the_next() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let worker = start_worker(&pointsman);
    let id = emit_upload_and_get_task_id(&pointsman, r#"{"pages": 100000}"#);
    wait_for_attempt(&worker, &id, 1);
    pointsman.run_ok(&["tasks", "cancel", &id]);
    worker
        .lines
        .wait_for_match("that it was lost", |line| line.starts_with(&format!("lost {id}")).then_some(()));
    assert_eq!(show_task(&pointsman, &id)["status"], "CANCELED");
    wait_for_status(&pointsman, &emit_upload_and_get_task_id(&pointsman, r#"{"pages": 1}"#), "SUCCESS");
}

#[test]
fn a_worker_reconnects_after_a_server_restart() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let node = pointsman.serve();
    let worker = start_worker(&pointsman);
    wait_for_status(&pointsman, &emit_upload_and_get_task_id(&pointsman, r#"{"pages": 1}"#), "SUCCESS");
    assert!(node.stop().success());
    let _node = pointsman.serve();
    let id = emit_upload_and_get_task_id(&pointsman, r#"{"pages": 1}"#);
    wait_for_attempt(&worker, &id, 1);
    wait_for_status(&pointsman, &id, "SUCCESS");
}

#[test]
fn a_worker_reads_the_outcome_of_its_task_after_a_lost_response() {
    let mut pointsman = ServerFixture::new(CONFIG);
    let _node = pointsman.serve();
    let url = format!(
        "POINTSMAN_URL=http://{}",
        lossy_proxy::start_proxy_dropping_one_response(pointsman.address(), "/done")
    );
    let words = [&url, "python3", EXAMPLE_WORKER_PATH, "--handler", "convert", "--lease", "10"];
    let worker = pointsman.start_program("env", &words);
    let id = emit_upload_and_get_task_id(&pointsman, r#"{"pages": 1}"#);
    let report = format!("reported {id} done; the response was lost");
    let line = worker
        .lines
        .wait_for_match("what became of it", |line| line.starts_with(&report).then(|| line.to_owned()));
    assert!(line.contains("`done`"), "{line}");
    assert_eq!(wait_for_status(&pointsman, &id, "SUCCESS")["attempt"], 1);
}

#[test]
fn a_worker_without_a_token_reports_it_in_one_line() {
    let mut command = std::process::Command::new("python3");
    let output = command
        .args([EXAMPLE_WORKER_PATH, "--handler", "convert"])
        .env_remove("POINTSMAN_TOKEN")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(1), 1), "{stderr}");
    assert!(stderr.contains("POINTSMAN_TOKEN is not set"), "{stderr}");
}
