//! `pointsman work`: runs a limited number of tasks, or for a limited time.

use crate::test_server::{ServerFixture, wait_until};

/// A server that runs no tasks, and a handler that counts its runs in a file.
const IDLE_SERVER_CONFIG: &str = r#"
services: [http]
handlers:
  keep: {run: {command: ["sh", "-c", "echo x >> kept"]}}
  other: {run: {command: ["false"]}}
  far: {run: pull}
event_handlers:
  record.published: [keep]
  record.spoilt: [other]
"#;

fn count_runs(pointsman: &ServerFixture) -> usize {
    std::fs::read_to_string(pointsman.file_path("kept")).unwrap_or_default().lines().count()
}

#[test]
fn work_ends_after_max_events_and_leaves_the_rest() {
    let mut pointsman = ServerFixture::new(IDLE_SERVER_CONFIG);
    let node = pointsman.serve();
    for _ in 0..5 {
        pointsman.run_ok(&["emit", "record.published"]);
    }
    pointsman.run_ok(&["emit", "record.spoilt"]);
    let in_use = pointsman.run_command(&["work", "--handler", "keep"]);
    let stderr = String::from_utf8_lossy(&in_use.stderr).into_owned();
    assert_eq!(in_use.status.code(), Some(75), "{stderr}");
    assert!(stderr.contains("Stop the server") && stderr.contains("pull worker"), "{stderr}");
    assert!(node.stop().success());
    assert_eq!(count_runs(&pointsman), 0);

    let without_time = pointsman.run_json(&["work", "--handler", "keep", "--ttl", "0s"]);
    assert_eq!((&without_time["attempts"], &without_time["ended"]), (&0.into(), &"time".into()));
    assert_eq!(count_runs(&pointsman), 0, "without time no task starts");
    let done = pointsman.run_ok(&["work", "--handler", "keep", "--max-events", "3"]);
    assert_eq!(done, "3 attempts: 3 succeeded, 0 failed; reached --max-events");
    assert_eq!(count_runs(&pointsman), 3);
    let rest = pointsman.run_json(&["work", "--handler", "keep", "--max-events", "2"]);
    assert_eq!((&rest["succeeded"], &rest["ended"]), (&2.into(), &"events".into()));
    assert_eq!(count_runs(&pointsman), 5);

    let _node = pointsman.serve();
    let counts = || pointsman.run_json(&["handlers", "show", "other"])["counts"].clone();
    wait_until("the other handler's task waits still", || counts()["ready"] == 1 || counts()["waiting"] == 1);
}

#[test]
fn work_refuses_unknown_handlers_pull_handlers_and_stores_without_tasks() {
    let pointsman = ServerFixture::new(IDLE_SERVER_CONFIG);
    for (arguments, expected) in [
        (&["work", "--handler", "kepe"][..], "keep"),
        (&["work", "--handler", "far"], "is a pull handler"),
        (&["work", "--store", "sqlite::memory:"], "in memory"),
    ] {
        let output = pointsman.run_command(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    let missing = pointsman.run_command(&["work"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no store"));
}

#[test]
fn work_with_another_configuration_is_refused_and_changes_nothing() {
    let mut pointsman = ServerFixture::new(IDLE_SERVER_CONFIG);
    let without_store = pointsman.run_command(&["work"]);
    assert_eq!(without_store.status.code(), Some(1));
    let node = pointsman.serve();
    pointsman.run_ok(&["emit", "record.published"]);
    let other =
        pointsman.run_json(&["emit", "record.spoilt"])["events"][0]["tasks"][0].as_str().unwrap().to_owned();
    assert!(node.stop().success());
    for (file, config, expected) in [
        ("new.yml", r#"handlers: {new: {run: {command: ["true"]}}}"#, "handler new is not registered"),
        (
            "changed.yml",
            r#"handlers: {keep: {run: {command: ["true"]}, retry: {max: 9}}}"#,
            "with other settings",
        ),
    ] {
        std::fs::write(pointsman.file_path(file), config).unwrap();
        let refused = pointsman.run_command(&["work", "--config", file]);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(78), "{stderr}");
        assert!(stderr.contains(expected) && stderr.contains("pointsman serve"), "{stderr}");
    }
    // A configuration with fewer handlers runs those and leaves the others and the routes unchanged.
    let keep = r#"handlers: {keep: {run: {command: ["sh", "-c", "echo x >> kept"]}}}"#;
    std::fs::write(pointsman.file_path("fewer_handlers.yml"), keep).unwrap();
    let done = pointsman.run_json(&["work", "--config", "fewer_handlers.yml", "--max-events", "1"]);
    assert_eq!((&done["succeeded"], count_runs(&pointsman)), (&1.into(), 1));
    let _node = pointsman.serve();
    assert_eq!(pointsman.run_json(&["tasks", "show", &other])["state"], "new");
    pointsman.run_ok(&["emit", "record.published"]);
    wait_until("the emitted event waits for its handler", || {
        let counts = pointsman.run_json(&["handlers", "show", "keep"])["counts"].clone();
        counts["ready"] == 1 || counts["waiting"] == 1
    });
}

#[test]
fn work_releases_tasks_that_still_run_at_the_end_of_the_ttl() {
    // A server would wait for the task.
    let slow = r#"
services: [http]
server: {drain: 60s}
handlers:
  slow: {run: {command: ["sh", "-c", "exec sleep 30"]}, retry: {max: 0}}
event_handlers: {record.published: [slow]}
"#;
    let mut pointsman = ServerFixture::new(slow);
    let node = pointsman.serve();
    let id = pointsman.run_json(&["emit", "record.published"])["events"][0]["tasks"][0]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(node.stop().success());
    let done = pointsman.run_json(&["work", "--ttl", "4s"]);
    assert_eq!((&done["attempts"], &done["other"], &done["ended"]), (&1.into(), &1.into(), &"time".into()));
    let _node = pointsman.serve();
    let task = pointsman.run_json(&["tasks", "show", &id]);
    assert_eq!((&task["state"], &task["retries"]), (&"new".into(), &0.into()), "{task}");
}
