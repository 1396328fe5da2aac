//! `pointsman move`, as people run it: from a file to PostgreSQL, to Redis and back, killed in the middle, and refused.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

#[path = "common/node.rs"]
mod node;

use std::process::{Output, Stdio};

use pointsman_core::store::{Emission, Journal, Store};
use pointsman_core::{HandlingKey, NewEvent, Timestamp};
use pointsman_store_sqlite::Sqlite;
use pointsman_testing::{Admin, fresh_prefix, shared, shared_redis};

use node::{Place, until};

const CONFIG: &str = r#"
handlers:
  keep: {run: {command: ["true"]}}
  fail: {run: {command: ["false"]}, retry: {max: 0}}
event_handlers:
  record.published: [keep]
  record.spoilt: [fail]
"#;

/// A fresh database, and its name.
fn database() -> (&'static Admin, String, String) {
    let server = shared().unwrap();
    let url = server.create_database().unwrap();
    let name = url.rsplit('/').next().unwrap().to_owned();
    (server, name, url)
}

fn moving(place: &Place, from: &str, to: &str, words: &[&str]) -> Output {
    place.run(&[&["move", "--from", from, "--to", to], words].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// What a move that must work prints.
fn moved(place: &Place, from: &str, to: &str, words: &[&str]) -> String {
    let output = moving(place, from, to, words);
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// What one that must not work says.
fn refused(code: i32, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    said(output)
}

fn with_store(url: &str) -> String {
    format!("store: \"{url}\"\n{CONFIG}")
}

#[test]
fn a_store_goes_to_postgresql_and_back_and_servers_go_on_with_it() {
    let (_, _, url) = database();
    let mut place = Place::new(CONFIG);
    let node = place.serve();
    let first = place.ok(&["emit", "record.published", "--key", "record:1"]);
    place.ok(&["emit", "record.spoilt", "--key", "record:1"]);
    until("both have ended", || {
        let tasks = place.json(&["tasks", "list"]);
        tasks.to_string().contains("SUCCESS") && tasks.to_string().contains("FAILED")
    });
    let tasks = place.json(&["tasks", "list"]);
    let error = refused(75, &moving(&place, "sqlite:pointsman.db", &url, &[]));
    assert!(error.contains("is in use by another process; stop that process first"), "{error}");
    assert!(node.stop().success());

    let table = moved(&place, "sqlite:pointsman.db", &url, &[]);
    assert!(table.contains("journal") && table.contains("moved, and found equal"), "{table}");
    let mut there = Place::new(&with_store(&url));
    let node = there.serve();
    assert_eq!(there.json(&["tasks", "list"])["tasks"], tasks["tasks"]);
    let next = there.ok(&["emit", "record.published", "--key", "record:1"]);
    assert!(next.parse::<u64>().unwrap() > first.parse().unwrap());
    let error = refused(75, &moving(&place, &url, "sqlite:back.db", &[]));
    assert!(
        error.contains("stop the servers first") && error.contains("was killed counts as gone"),
        "{error}"
    );
    let error = refused(75, &moving(&place, "sqlite:pointsman.db", &url, &[]));
    assert!(error.contains("stop the servers first") && !error.contains("DROP SCHEMA"), "{error}");
    assert!(node.stop().success());

    let back: serde_json::Value =
        serde_json::from_str(&moved(&place, &url, "sqlite:back.db", &["-o", "json"])).unwrap();
    assert_eq!((&back["equal"], &back["to"]), (&true.into(), &"sqlite:back.db".into()));
    let journal =
        back["sections"].as_array().unwrap().iter().find(|one| one["section"] == "journal").unwrap();
    assert_eq!(journal["source"], journal["target"]);
    assert_eq!(moved(&place, &url, "sqlite:back.db", &["--verify-only", "-o", "json"]), format!("{back}\n"));

    let mut home = Place::new(&with_store(&format!("sqlite:{}", place.path("back.db").display())));
    let node = home.serve();
    let last = home.ok(&["emit", "record.published", "--key", "record:1"]);
    assert_eq!(home.json(&["events", "show", &last])["event"]["prev"].to_string(), next);
    assert!(node.stop().success());
}

#[test]
fn a_store_goes_to_redis_to_postgresql_and_back_and_servers_go_on_with_it() {
    let (_, _, database) = database();
    let (first, second) = (fresh_prefix(), fresh_prefix());
    let redis = |prefix: &str| shared_redis().unwrap().url_under(prefix);
    let mut place = Place::new(CONFIG);
    let node = place.serve();
    let emitted = place.ok(&["emit", "record.published", "--key", "record:1"]);
    place.ok(&["emit", "record.spoilt", "--key", "record:1"]);
    until("both have ended", || {
        let tasks = place.json(&["tasks", "list"]);
        tasks.to_string().contains("SUCCESS") && tasks.to_string().contains("FAILED")
    });
    let tasks = place.json(&["tasks", "list"]);
    assert!(node.stop().success());

    let table = moved(&place, "sqlite:pointsman.db", &redis(&first), &[]);
    assert!(table.contains("journal") && table.contains("moved, and found equal"), "{table}");
    let mut there = Place::new(&with_store(&redis(&first)));
    let node = there.serve();
    assert_eq!(there.json(&["tasks", "list"])["tasks"], tasks["tasks"]);
    let next = there.ok(&["emit", "record.published", "--key", "record:1"]);
    assert!(next.parse::<u64>().unwrap() > emitted.parse().unwrap());
    for (from, to) in
        [(redis(&first), "sqlite:back.db".into()), ("sqlite:pointsman.db".into(), redis(&first))]
    {
        let error = refused(75, &moving(&place, &from, &to, &[]));
        assert!(error.contains("stop the servers first"), "{error}");
    }
    until("it has ended", || !there.json(&["tasks", "list"]).to_string().contains("RUNNING"));
    assert!(node.stop().success());

    let mut from = redis(&first);
    for to in [database, redis(&second), "sqlite:back.db".into()] {
        moved(&place, &from, &to, &[]);
        let same = moved(&place, &from, &to, &["--verify-only"]);
        assert!(same.contains("Both hold the same"), "{same}");
        from = to;
    }
    let mut home = Place::new(&with_store(&format!("sqlite:{}", place.path("back.db").display())));
    let node = home.serve();
    let last = home.ok(&["emit", "record.published", "--key", "record:1"]);
    assert_eq!(home.json(&["events", "show", &last])["event"]["prev"].to_string(), next);
    assert!(node.stop().success());
}

#[test]
fn what_lies_in_outboxes_on_redis_is_told() {
    let (prefix, place) = (fresh_prefix(), Place::new(CONFIG));
    let url = shared_redis().unwrap().url_under(&prefix);
    fill(&place, 5_000);
    moved(&place, "sqlite:many.db", &url, &[]);
    let say = |words: &[&str]| shared_redis().unwrap().command(words).unwrap();
    let (events, aside) = (format!("{prefix}order:1:events"), format!("{prefix}events.set.aside"));
    say(&["LPUSH", &events, r#"{"type": "a"}"#, r#"{"type": "b"}"#]);
    say(&["LPUSH", &aside, "no event"]);
    let error = refused(75, &moving(&place, &url, "sqlite:copy.db", &[]));
    let way_out = format!("LPUSH {prefix}objects.with.events order:1");
    assert!(error.contains("holds 2 events without an id") && error.contains(&way_out), "{error}");
    say(&way_out.split(' ').collect::<Vec<_>>());
    let error = refused(75, &moving(&place, &url, "sqlite:copy.db", &[]));
    assert!(error.contains("holds 2 events without an id; let a server run until it is empty"), "{error}");
    say(&["DEL", &events]);
    let output = moving(&place, &url, "sqlite:copy.db", &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("warning: 1 thing set aside in the outbox of the source"),
        "{}",
        said(&output)
    );
}

/// Fills a file with so many events.
fn fill(place: &Place, events: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let now = Timestamp::from_millis(1_700_000_000_000);
    let store = Sqlite::open(place.path("many.db"), now).unwrap();
    for _ in 0..events / 5000 {
        let event = NewEvent::of(HandlingKey::new("bulk").unwrap());
        let emission = Emission { events: vec![event; 5000], idempotency: None };
        runtime.block_on(store.append(vec![emission], None, now)).unwrap();
    }
    store.close();
}

#[test]
fn a_move_that_is_killed_goes_on_where_it_was() {
    let (server, name, url) = database();
    let place = Place::new(&with_store(&url));
    fill(&place, 60_000);
    let words = ["move", "--from", "sqlite:many.db", "--to", &url];
    let mut child = place.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let note = || {
        let rows = server.query(&name, "SELECT text FROM pointsman.meta WHERE name = 'move'").ok()?;
        rows.first()?.first()?.clone()
    };
    until("the journal is being copied", || note().is_some_and(|note| note.contains("journal")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(note().is_some(), "it was killed before its end");

    let error = refused(1, &place.run(&["serve", "--listen", "127.0.0.1:0"]));
    assert!(error.contains("a move to it has not ended"), "{error}");
    let error = refused(1, &moving(&place, "sqlite:many.db", &url, &["--verify-only"]));
    assert!(
        error.contains("a move to it has not ended") && error.contains("without --verify-only goes on"),
        "{error}"
    );
    let output = moving(&place, "sqlite:many.db", &url, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("An earlier move was cut off"), "{}", said(&output));
    assert_eq!(note(), None);
    let count = server.query(&name, "SELECT count(*), max(number) FROM pointsman.journal").unwrap();
    assert_eq!(count, [[Some("60000".into()), Some("60000".into())]]);
}

#[test]
fn a_move_to_redis_that_is_killed_goes_on_where_it_was() {
    let prefix = fresh_prefix();
    let url = shared_redis().unwrap().url_under(&prefix);
    let place = Place::new(&with_store(&url));
    fill(&place, 60_000);
    let words = ["move", "--from", "sqlite:many.db", "--to", &url];
    let mut child = place.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let texts = format!("{prefix}pointsman:texts");
    let note = || shared_redis().unwrap().command(&["HGET", &texts, "move"]).unwrap().text();
    until("the journal is being copied", || note().is_some_and(|note| note.contains("journal")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(note().is_some(), "it was killed before its end");

    let error = refused(1, &place.run(&["serve", "--listen", "127.0.0.1:0"]));
    assert!(error.contains("a move to it has not ended"), "{error}");
    let output = moving(&place, "sqlite:many.db", &url, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("An earlier move was cut off"), "{}", said(&output));
    assert_eq!(note(), None);
    let journal = format!("{prefix}pointsman:journal");
    assert_eq!(shared_redis().unwrap().command(&["XLEN", &journal]).unwrap().number(), Some(60_000));
}

#[test]
fn two_that_differ_are_named_and_end_with_1() {
    let (server, name, url) = database();
    let place = Place::new(CONFIG);
    fill(&place, 5_000);
    moved(&place, "sqlite:many.db", &url, &[]);
    let alter = "UPDATE pointsman.journal SET depth = 1 WHERE number = 77";
    server.query(&name, alter).unwrap();
    let error = refused(1, &moving(&place, "sqlite:many.db", &url, &["--verify-only"]));
    assert!(
        error.contains("the two differ in: journal") && error.contains("differs: the target has"),
        "{error}"
    );
    let json = moving(&place, "sqlite:many.db", &url, &["--verify-only", "-o", "json"]);
    assert_eq!(json.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["equal"], false);

    let error = refused(1, &moving(&place, "sqlite:many.db", &url, &[]));
    assert!(error.contains("the target holds this store already"), "{error}");
    std::fs::copy(place.path("many.db"), place.path("other.db")).unwrap();
    fill_anew(&place);
    let error = refused(1, &moving(&place, "sqlite:fresh.db", "sqlite:other.db", &[]));
    assert!(error.contains("the target is not empty: it holds journal (5000)"), "{error}");
}

/// Another file, whose store is another one.
fn fill_anew(place: &Place) {
    let now = Timestamp::from_millis(1_700_000_000_000);
    Sqlite::open(place.path("fresh.db"), now).unwrap().close();
}

#[test]
fn what_cannot_be_reached_is_said_without_a_password() {
    let place = Place::new(CONFIG);
    fill(&place, 5_000);
    let words = ["move", "--from", "sqlite:many.db"];
    let mut command = place.command(&words);
    command.env("POINTSMAN_TO", "postgres://ann:s3cret@127.0.0.1:1/bus");
    let error = refused(75, &command.stdin(Stdio::null()).output().unwrap());
    assert!(error.contains("cannot connect to PostgreSQL at 127.0.0.1:1"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    let output = moving(&place, "sqlite:many.db", "postgres://ann:s3cret@127.0.0.1:1/bus", &[]);
    assert!(said(&output).contains("warning: whoever lists the processes"), "{}", said(&output));
    assert!(!said(&output).contains("s3cret"), "{}", said(&output));
}
