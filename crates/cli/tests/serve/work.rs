//! `pointsman work`: a run that ends by itself.

use crate::node::{Place, until};

/// Keeps count of its runs. The server itself runs nothing.
const IDLE: &str = r#"
rooms: [http]
handlers:
  keep: {run: {command: ["sh", "-c", "echo x >> kept"]}}
  other: {run: {command: ["false"]}}
  far: {run: pull}
event_handlers:
  record.published: [keep]
  record.spoilt: [other]
"#;

fn kept(place: &Place) -> usize {
    std::fs::read_to_string(place.path("kept")).unwrap_or_default().lines().count()
}

#[test]
fn work_ends_after_so_many_attempts_and_leaves_the_rest() {
    let mut place = Place::new(IDLE);
    let node = place.serve();
    for _ in 0..5 {
        place.ok(&["emit", "record.published"]);
    }
    place.ok(&["emit", "record.spoilt"]);
    let in_use = place.run(&["work", "--handler", "keep"]);
    let told = String::from_utf8_lossy(&in_use.stderr).into_owned();
    assert_eq!(in_use.status.code(), Some(75), "{told}");
    assert!(told.contains("stop the server") && told.contains("pull worker"), "{told}");
    assert!(node.stop().success());
    assert_eq!(kept(&place), 0);

    let none = place.json(&["work", "--handler", "keep", "--ttl", "0s"]);
    assert_eq!((&none["attempts"], &none["ended"]), (&0.into(), &"time".into()));
    assert_eq!(kept(&place), 0, "without time nothing begins");
    let done = place.ok(&["work", "--handler", "keep", "--max-events", "3"]);
    assert_eq!(done, "3 attempts: 3 succeeded, 0 failed; as many as were to be begun");
    assert_eq!(kept(&place), 3);
    let rest = place.json(&["work", "--handler", "keep", "--max-events", "2"]);
    assert_eq!((&rest["succeeded"], &rest["ended"]), (&2.into(), &"events".into()));
    assert_eq!(kept(&place), 5);

    let _node = place.serve();
    let counts = || place.json(&["handlers", "show", "other"])["counts"].clone();
    until("the other handler's task waits still", || counts()["ready"] == 1 || counts()["waiting"] == 1);
}

#[test]
fn work_that_cannot_be_done_is_told_before_anything_begins() {
    let place = Place::new(IDLE);
    for (words, said) in [
        (&["work", "--handler", "kepe"][..], "keep"),
        (&["work", "--handler", "far"], "is pulled"),
        (&["work", "--store", "sqlite::memory:"], "in memory"),
    ] {
        let output = place.run(words);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains(said), "{words:?}: {told}");
    }
    let missing = place.run(&["work"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("there is no store"));
}

#[test]
fn a_run_of_another_mind_changes_nothing_and_says_so() {
    let mut place = Place::new(IDLE);
    let untold = place.run(&["work"]);
    assert_eq!(untold.status.code(), Some(1));
    let node = place.serve();
    place.ok(&["emit", "record.published"]);
    let other = place.json(&["emit", "record.spoilt"])["events"][0]["tasks"][0].as_str().unwrap().to_owned();
    assert!(node.stop().success());
    for (file, config, said) in [
        ("new.yml", r#"handlers: {new: {run: {command: ["true"]}}}"#, "no handler new"),
        ("changed.yml", r#"handlers: {keep: {run: {command: ["true"]}, retry: {max: 9}}}"#, "otherwise"),
    ] {
        std::fs::write(place.path(file), config).unwrap();
        let refused = place.run(&["work", "--config", file]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(78), "{told}");
        assert!(told.contains(said) && told.contains("pointsman serve"), "{told}");
    }
    // One that knows less runs what it knows and leaves the rest as it is, routes and all.
    let keep = r#"handlers: {keep: {run: {command: ["sh", "-c", "echo x >> kept"]}}}"#;
    std::fs::write(place.path("narrow.yml"), keep).unwrap();
    let done = place.json(&["work", "--config", "narrow.yml", "--max-events", "1"]);
    assert_eq!((&done["succeeded"], kept(&place)), (&1.into(), 1));
    let _node = place.serve();
    assert_eq!(place.json(&["tasks", "show", &other])["state"], "new");
    place.ok(&["emit", "record.published"]);
    until("what was emitted waits for its handler", || {
        let counts = place.json(&["handlers", "show", "keep"])["counts"].clone();
        counts["ready"] == 1 || counts["waiting"] == 1
    });
}

#[test]
fn what_runs_when_the_time_is_up_is_given_back() {
    // A server would let it end.
    let slow = r#"
rooms: [http]
server: {drain: 60s}
handlers:
  slow: {run: {command: ["sh", "-c", "exec sleep 30"]}, retry: {max: 0}}
event_handlers: {record.published: [slow]}
"#;
    let mut place = Place::new(slow);
    let node = place.serve();
    let id = place.json(&["emit", "record.published"])["events"][0]["tasks"][0].as_str().unwrap().to_owned();
    assert!(node.stop().success());
    let done = place.json(&["work", "--ttl", "4s"]);
    assert_eq!((&done["attempts"], &done["other"], &done["ended"]), (&1.into(), &1.into(), &"time".into()));
    let _node = place.serve();
    let task = place.json(&["tasks", "show", &id]);
    assert_eq!((&task["state"], &task["retries"]), (&"new".into(), &0.into()), "{task}");
}
