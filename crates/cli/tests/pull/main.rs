//! Pull workers against the real server: the example in Python, run as a user would run it.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

#[path = "../common/node.rs"]
mod node;

mod forgetful;

use node::{Place, Watcher, until};

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

fn worker(place: &Place) -> Watcher {
    place.program("python3", &[EXAMPLE, "--handler", "convert", "--handler", "archive", "--lease", "1"])
}

/// Uploads a document and answers its task.
fn upload(place: &Place, value: &str) -> String {
    let emitted = place.json(&["emit", "document.uploaded", "--key", "document:1", "--value", value]);
    emitted["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

fn task(place: &Place, id: &str) -> serde_json::Value {
    place.json(&["tasks", "show", id])
}

fn ends_as(place: &Place, id: &str, status: &str) -> serde_json::Value {
    until(&format!("{id} ends as {status}"), || task(place, id)["status"] == status);
    task(place, id)
}

/// Waits until a worker says that it begins an attempt of a task.
fn begins(worker: &Watcher, id: &str, attempt: u32) {
    let wanted = format!("working on {id}, attempt {attempt}");
    worker.lines.find(&wanted, |line| (line == wanted).then_some(()));
}

#[test]
fn a_worker_does_what_it_fetches_and_its_emits_commit_with_it() {
    let mut place = Place::new(CONFIG);
    let _node = place.serve();
    let worker = worker(&place);

    let id = upload(&place, r#"{"pages": 2}"#);
    let done = ends_as(&place, &id, "SUCCESS");
    assert_eq!((&done["result"]["pages"], &done["attempt"]), (&2.into(), &1.into()));
    let log = place.ok(&["tasks", "logs", &id]);
    assert!(log.contains("page 1 of 2") && log.contains("page 2 of 2"), "{log}");
    let watch = place.watch(&["-o", "json", "--since-start", "--return", "document.converted"]);
    let converted = watch.lines.json("the event it emitted", |_| true);
    assert_eq!((&converted["key"], &converted["value"]["pages"]), (&"document:1".into(), &2.into()));

    let log = place.ok(&["run", "archive/letters", "--wait"]);
    assert!(log.contains("reading letters of archive"), "{log}");
    assert!(worker.stop().success(), "told to stop, it ends well");
}

#[test]
fn a_failure_for_good_is_one_and_a_snooze_costs_nothing() {
    let mut place = Place::new(CONFIG);
    let _node = place.serve();
    let _worker = worker(&place);

    let failed = ends_as(&place, &upload(&place, r#"{"pages": 0}"#), "FAILED");
    assert!(failed["error"].as_str().unwrap().contains("a document without pages"), "{failed}");
    assert_eq!(failed["attempts"].as_array().unwrap().len(), 1);

    let snoozed = ends_as(&place, &upload(&place, r#"{"pages": 1, "uploading": true}"#), "SUCCESS");
    assert_eq!((&snoozed["attempt"], &snoozed["retries"]), (&2.into(), &0.into()));
    assert_eq!(snoozed["attempts"][0]["end"], "snoozed");
}

#[test]
fn the_task_of_a_killed_worker_goes_on_with_another() {
    let mut place = Place::new(CONFIG);
    let _node = place.serve();
    let first = worker(&place);
    let id = upload(&place, r#"{"pages": 10}"#);
    begins(&first, &id, 1);
    let running = task(&place, &id);
    assert_eq!((&running["status"], &running["running"]["number"]), (&"RUNNING".into(), &1.into()));
    first.kill();

    let second = worker(&place);
    begins(&second, &id, 2);
    let done = ends_as(&place, &id, "SUCCESS");
    // The handler forgives no failure at all: the death of a worker is none.
    assert_eq!((&done["attempts"][0]["end"], &done["retries"]), (&"crashed".into(), &0.into()));
}

#[test]
fn a_cancel_reaches_the_worker_and_it_goes_on_with_the_next() {
    let mut place = Place::new(CONFIG);
    let _node = place.serve();
    let worker = worker(&place);
    let id = upload(&place, r#"{"pages": 100000}"#);
    begins(&worker, &id, 1);
    place.ok(&["tasks", "cancel", &id]);
    worker.lines.find("that it was lost", |line| line.starts_with(&format!("lost {id}")).then_some(()));
    assert_eq!(task(&place, &id)["status"], "CANCELED");
    ends_as(&place, &upload(&place, r#"{"pages": 1}"#), "SUCCESS");
}

#[test]
fn a_worker_waits_for_a_server_that_is_away() {
    let mut place = Place::new(CONFIG);
    let node = place.serve();
    let worker = worker(&place);
    ends_as(&place, &upload(&place, r#"{"pages": 1}"#), "SUCCESS");
    assert!(node.stop().success());
    let _node = place.serve();
    let id = upload(&place, r#"{"pages": 1}"#);
    begins(&worker, &id, 1);
    ends_as(&place, &id, "SUCCESS");
}

#[test]
fn an_end_whose_answer_was_lost_is_asked_about_again() {
    let mut place = Place::new(CONFIG);
    let _node = place.serve();
    let url = format!("POINTSMAN_URL=http://{}", forgetful::before(place.address(), "/done"));
    let words = [&url, "python3", EXAMPLE, "--handler", "convert", "--lease", "10"];
    let worker = place.program("env", &words);
    let id = upload(&place, r#"{"pages": 1}"#);
    let told = format!("reported {id} done; the response was lost");
    let line =
        worker.lines.find("what became of it", |line| line.starts_with(&told).then(|| line.to_owned()));
    assert!(line.contains("`done`"), "{line}");
    assert_eq!(ends_as(&place, &id, "SUCCESS")["attempt"], 1);
}

#[test]
fn a_worker_without_a_token_says_so_in_one_line() {
    let mut command = std::process::Command::new("python3");
    let output =
        command.args([EXAMPLE, "--handler", "convert"]).env_remove("POINTSMAN_TOKEN").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), told.lines().count()), (Some(1), 1), "{told}");
    assert!(told.contains("POINTSMAN_TOKEN is not set"), "{told}");
}
