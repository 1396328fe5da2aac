//! `pointsman move` between SQLite, PostgreSQL and Redis: complete, killed and resumed, and refused.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "common/test_server.rs"]
mod test_server;

use std::process::{Output, Stdio};

use pointsman_core::store::{EmitBatch, Journal, Store};
use pointsman_core::{EventType, NewEvent, Timestamp};
use pointsman_store_sqlite::Sqlite;
use pointsman_testing::{PostgresAdmin, shared_postgres, shared_redis, unique_key_prefix};

use test_server::{ServerFixture, wait_until};

const CONFIG: &str = r#"
handlers:
  keep: {run: {command: ["true"]}}
  fail: {run: {command: ["false"]}, retry: {max: 0}}
event_handlers:
  record.published: [keep]
  record.spoilt: [fail]
"#;

/// A new database: its server, name and URL.
fn create_postgres_database() -> (&'static PostgresAdmin, String, String) {
    let server = shared_postgres().unwrap();
    let url = server.create_database().unwrap();
    let name = url.rsplit('/').next().unwrap().to_owned();
    (server, name, url)
}

fn run_move(pointsman: &ServerFixture, from: &str, to: &str, words: &[&str]) -> Output {
    pointsman.run_command(&[&["move", "--from", from, "--to", to], words].concat())
}

fn stdout_and_stderr(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Runs a move that must succeed, and returns its output.
fn run_move_ok(pointsman: &ServerFixture, from: &str, to: &str, words: &[&str]) -> String {
    let output = run_move(pointsman, from, to, words);
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Checks the exit code of a failed command, and returns its output.
fn assert_fails_with(code: i32, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", stdout_and_stderr(output));
    stdout_and_stderr(output)
}

fn config_with_store(url: &str) -> String {
    format!("store: \"{url}\"\n{CONFIG}")
}

#[test]
fn a_store_moves_to_postgres_and_back_and_servers_continue_on_it() {
    let (_, _, url) = create_postgres_database();
    let mut pointsman = ServerFixture::new(CONFIG);
    let node = pointsman.serve();
    let first = pointsman.run_ok(&["emit", "record.published", "--key", "record:1"]);
    pointsman.run_ok(&["emit", "record.spoilt", "--key", "record:1"]);
    wait_until("both have ended", || {
        let tasks = pointsman.run_json(&["tasks", "list"]);
        tasks.to_string().contains("SUCCESS") && tasks.to_string().contains("FAILED")
    });
    let tasks = pointsman.run_json(&["tasks", "list"]);
    let error = assert_fails_with(75, &run_move(&pointsman, "sqlite:pointsman.db", &url, &[]));
    assert!(error.contains("is in use by another process; stop that process first"), "{error}");
    assert!(node.stop().success());

    let table = run_move_ok(&pointsman, "sqlite:pointsman.db", &url, &[]);
    assert!(table.contains("journal") && table.contains("copied and verified"), "{table}");
    let mut moved = ServerFixture::new(&config_with_store(&url));
    let node = moved.serve();
    assert_eq!(moved.run_json(&["tasks", "list"])["tasks"], tasks["tasks"]);
    let next = moved.run_ok(&["emit", "record.published", "--key", "record:1"]);
    assert!(next.parse::<u64>().unwrap() > first.parse().unwrap());
    let error = assert_fails_with(75, &run_move(&pointsman, &url, "sqlite:back.db", &[]));
    assert!(
        error.contains("stop the servers first") && error.contains("a killed server counts as gone"),
        "{error}"
    );
    let error = assert_fails_with(75, &run_move(&pointsman, "sqlite:pointsman.db", &url, &[]));
    assert!(error.contains("stop the servers first") && !error.contains("DROP SCHEMA"), "{error}");
    assert!(node.stop().success());

    let back: serde_json::Value =
        serde_json::from_str(&run_move_ok(&pointsman, &url, "sqlite:back.db", &["-o", "json"])).unwrap();
    assert_eq!((&back["equal"], &back["to"]), (&true.into(), &"sqlite:back.db".into()));
    let journal =
        back["sections"].as_array().unwrap().iter().find(|section| section["section"] == "journal").unwrap();
    assert_eq!(journal["source"], journal["target"]);
    assert_eq!(
        run_move_ok(&pointsman, &url, "sqlite:back.db", &["--verify-only", "-o", "json"]),
        format!("{back}\n")
    );

    let mut moved_back = ServerFixture::new(&config_with_store(&format!(
        "sqlite:{}",
        pointsman.file_path("back.db").display()
    )));
    let node = moved_back.serve();
    let last = moved_back.run_ok(&["emit", "record.published", "--key", "record:1"]);
    assert_eq!(moved_back.run_json(&["events", "show", &last])["event"]["prev"].to_string(), next);
    assert!(node.stop().success());
}

#[test]
fn a_store_moves_to_redis_to_postgres_and_back_and_servers_continue_on_it() {
    let (_, _, database) = create_postgres_database();
    let (first, second) = (unique_key_prefix(), unique_key_prefix());
    let redis = |prefix: &str| shared_redis().unwrap().url_with_prefix(prefix);
    let mut pointsman = ServerFixture::new(CONFIG);
    let node = pointsman.serve();
    let emitted = pointsman.run_ok(&["emit", "record.published", "--key", "record:1"]);
    pointsman.run_ok(&["emit", "record.spoilt", "--key", "record:1"]);
    wait_until("both have ended", || {
        let tasks = pointsman.run_json(&["tasks", "list"]);
        tasks.to_string().contains("SUCCESS") && tasks.to_string().contains("FAILED")
    });
    let tasks = pointsman.run_json(&["tasks", "list"]);
    assert!(node.stop().success());

    let table = run_move_ok(&pointsman, "sqlite:pointsman.db", &redis(&first), &[]);
    assert!(table.contains("journal") && table.contains("copied and verified"), "{table}");
    let mut moved = ServerFixture::new(&config_with_store(&redis(&first)));
    let node = moved.serve();
    assert_eq!(moved.run_json(&["tasks", "list"])["tasks"], tasks["tasks"]);
    let next = moved.run_ok(&["emit", "record.published", "--key", "record:1"]);
    assert!(next.parse::<u64>().unwrap() > emitted.parse().unwrap());
    for (from, to) in
        [(redis(&first), "sqlite:back.db".into()), ("sqlite:pointsman.db".into(), redis(&first))]
    {
        let error = assert_fails_with(75, &run_move(&pointsman, &from, &to, &[]));
        assert!(error.contains("stop the servers first"), "{error}");
    }
    wait_until("it has ended", || !moved.run_json(&["tasks", "list"]).to_string().contains("RUNNING"));
    assert!(node.stop().success());

    let mut from = redis(&first);
    for to in [database, redis(&second), "sqlite:back.db".into()] {
        run_move_ok(&pointsman, &from, &to, &[]);
        let same = run_move_ok(&pointsman, &from, &to, &["--verify-only"]);
        assert!(same.contains("Both stores contain the same"), "{same}");
        from = to;
    }
    let mut moved_back = ServerFixture::new(&config_with_store(&format!(
        "sqlite:{}",
        pointsman.file_path("back.db").display()
    )));
    let node = moved_back.serve();
    let last = moved_back.run_ok(&["emit", "record.published", "--key", "record:1"]);
    assert_eq!(moved_back.run_json(&["events", "show", &last])["event"]["prev"].to_string(), next);
    assert!(node.stop().success());
}

#[test]
fn a_move_from_redis_fails_while_outboxes_have_events_and_warns_of_invalid_entries() {
    let (prefix, pointsman) = (unique_key_prefix(), ServerFixture::new(CONFIG));
    let url = shared_redis().unwrap().url_with_prefix(&prefix);
    create_filled_sqlite_store(&pointsman, 5_000);
    run_move_ok(&pointsman, "sqlite:many.db", &url, &[]);
    let redis_command = |words: &[&str]| shared_redis().unwrap().run_command(words).unwrap();
    let (events, aside) = (format!("{prefix}order:1:events"), format!("{prefix}events.set.aside"));
    redis_command(&["LPUSH", &events, r#"{"type": "a"}"#, r#"{"type": "b"}"#]);
    redis_command(&["LPUSH", &aside, "no event"]);
    let error = assert_fails_with(75, &run_move(&pointsman, &url, "sqlite:copy.db", &[]));
    let command = format!("LPUSH {prefix}objects.with.events order:1");
    assert!(error.contains("contains 2 events without an id") && error.contains(&command), "{error}");
    redis_command(&command.split(' ').collect::<Vec<_>>());
    let error = assert_fails_with(75, &run_move(&pointsman, &url, "sqlite:copy.db", &[]));
    assert!(error.contains("contains 2 events without an id; let a server run until it is empty"), "{error}");
    redis_command(&["DEL", &events]);
    let output = run_move(&pointsman, &url, "sqlite:copy.db", &[]);
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    assert!(
        stdout_and_stderr(&output).contains("warning: 1 invalid entry in the source's outbox"),
        "{}",
        stdout_and_stderr(&output)
    );
}

/// Fills a SQLite store with this many events.
fn create_filled_sqlite_store(pointsman: &ServerFixture, events: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let now = Timestamp::from_millis(1_700_000_000_000);
    let store = Sqlite::open(pointsman.file_path("many.db"), now).unwrap();
    for _ in 0..events / 5000 {
        let event = NewEvent::new(EventType::new("bulk").unwrap());
        let emission = EmitBatch { events: vec![event; 5000], idempotency_key: None };
        runtime.block_on(store.append(vec![emission], None, now)).unwrap();
    }
    store.close();
}

#[test]
fn a_killed_move_to_postgres_resumes_where_it_stopped() {
    let (server, name, url) = create_postgres_database();
    let pointsman = ServerFixture::new(&config_with_store(&url));
    create_filled_sqlite_store(&pointsman, 60_000);
    let words = ["move", "--from", "sqlite:many.db", "--to", &url];
    let mut child = pointsman.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let note = || {
        let rows = server.query(&name, "SELECT text FROM pointsman.meta WHERE name = 'move'").ok()?;
        rows.first()?.first()?.clone()
    };
    wait_until("the journal is being copied", || note().is_some_and(|note| note.contains("journal")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(note().is_some(), "it was killed before its end");

    let error = assert_fails_with(1, &pointsman.run_command(&["serve", "--listen", "127.0.0.1:0"]));
    assert!(error.contains("a move to it has not ended"), "{error}");
    let error = assert_fails_with(1, &run_move(&pointsman, "sqlite:many.db", &url, &["--verify-only"]));
    assert!(
        error.contains("a move to it has not ended") && error.contains("without --verify-only to continue"),
        "{error}"
    );
    let output = run_move(&pointsman, "sqlite:many.db", &url, &[]);
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    assert!(
        stdout_and_stderr(&output).contains("Continuing an interrupted move"),
        "{}",
        stdout_and_stderr(&output)
    );
    assert_eq!(note(), None);
    let count = server.query(&name, "SELECT count(*), max(number) FROM pointsman.journal").unwrap();
    assert_eq!(count, [[Some("60000".into()), Some("60000".into())]]);
}

#[test]
fn a_killed_move_to_redis_resumes_where_it_stopped() {
    let prefix = unique_key_prefix();
    let url = shared_redis().unwrap().url_with_prefix(&prefix);
    let pointsman = ServerFixture::new(&config_with_store(&url));
    create_filled_sqlite_store(&pointsman, 60_000);
    let words = ["move", "--from", "sqlite:many.db", "--to", &url];
    let mut child = pointsman.command(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let texts = format!("{prefix}pointsman:texts");
    let note = || shared_redis().unwrap().run_command(&["HGET", &texts, "move"]).unwrap().text();
    wait_until("the journal is being copied", || note().is_some_and(|note| note.contains("journal")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(note().is_some(), "it was killed before its end");

    let error = assert_fails_with(1, &pointsman.run_command(&["serve", "--listen", "127.0.0.1:0"]));
    assert!(error.contains("a move to it has not ended"), "{error}");
    let output = run_move(&pointsman, "sqlite:many.db", &url, &[]);
    assert!(output.status.success(), "{}", stdout_and_stderr(&output));
    assert!(
        stdout_and_stderr(&output).contains("Continuing an interrupted move"),
        "{}",
        stdout_and_stderr(&output)
    );
    assert_eq!(note(), None);
    let journal = format!("{prefix}pointsman:journal");
    assert_eq!(shared_redis().unwrap().run_command(&["XLEN", &journal]).unwrap().number(), Some(60_000));
}

#[test]
fn differing_stores_are_reported_with_exit_code_1() {
    let (server, name, url) = create_postgres_database();
    let pointsman = ServerFixture::new(CONFIG);
    create_filled_sqlite_store(&pointsman, 5_000);
    run_move_ok(&pointsman, "sqlite:many.db", &url, &[]);
    let alter = "UPDATE pointsman.journal SET depth = 1 WHERE number = 77";
    server.query(&name, alter).unwrap();
    let error = assert_fails_with(1, &run_move(&pointsman, "sqlite:many.db", &url, &["--verify-only"]));
    assert!(
        error.contains("the stores differ in: journal") && error.contains("differs: the target has"),
        "{error}"
    );
    let json = run_move(&pointsman, "sqlite:many.db", &url, &["--verify-only", "-o", "json"]);
    assert_eq!(json.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["equal"], false);

    let error = assert_fails_with(1, &run_move(&pointsman, "sqlite:many.db", &url, &[]));
    assert!(error.contains("the target already contains this store"), "{error}");
    std::fs::copy(pointsman.file_path("many.db"), pointsman.file_path("other.db")).unwrap();
    create_empty_sqlite_store(&pointsman);
    let error = assert_fails_with(1, &run_move(&pointsman, "sqlite:fresh.db", "sqlite:other.db", &[]));
    assert!(error.contains("the target is not empty: it contains journal (5000)"), "{error}");
}

/// Creates another, empty store.
fn create_empty_sqlite_store(pointsman: &ServerFixture) {
    let now = Timestamp::from_millis(1_700_000_000_000);
    Sqlite::open(pointsman.file_path("fresh.db"), now).unwrap().close();
}

#[test]
fn an_unreachable_store_is_reported_without_its_password() {
    let pointsman = ServerFixture::new(CONFIG);
    create_filled_sqlite_store(&pointsman, 5_000);
    let words = ["move", "--from", "sqlite:many.db"];
    let mut command = pointsman.command(&words);
    command.env("POINTSMAN_TO", "postgres://ann:s3cret@127.0.0.1:1/bus");
    let error = assert_fails_with(75, &command.stdin(Stdio::null()).output().unwrap());
    assert!(error.contains("cannot connect to PostgreSQL at 127.0.0.1:1"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
    let output = run_move(&pointsman, "sqlite:many.db", "postgres://ann:s3cret@127.0.0.1:1/bus", &[]);
    assert!(
        stdout_and_stderr(&output)
            .contains("warning: other users of this machine can see the password in --to"),
        "{}",
        stdout_and_stderr(&output)
    );
    assert!(!stdout_and_stderr(&output).contains("s3cret"), "{}", stdout_and_stderr(&output));
}
