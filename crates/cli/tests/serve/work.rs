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

    let done = place.ok(&["work", "--handler", "keep", "--max-events", "3"]);
    assert_eq!(done, "3 attempts: 3 succeeded, 0 failed; as many as were to be begun");
    assert_eq!(kept(&place), 3);
    let rest = place.json(&["work", "--handler", "keep", "--max-events", "2"]);
    assert_eq!((&rest["succeeded"], &rest["ended"]), (&2.into(), &"events".into()));
    assert_eq!(kept(&place), 5);
    let none = place.json(&["work", "--handler", "keep", "--ttl", "0s"]);
    assert_eq!((&none["attempts"], &none["ended"]), (&0.into(), &"time".into()));

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
