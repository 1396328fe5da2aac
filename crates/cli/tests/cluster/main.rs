//! Several real servers on one database, of PostgreSQL and of Redis: killed, stopped, lent a hand; and what is said when
//! there is no database.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

mod redis;
#[path = "../common/test_server.rs"]
mod test_server;

use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use pointsman_testing::{Postgres, Settings, fresh_prefix, shared, shared_redis};
use test_server::{ServerProcess, TestServer, wait_for_file, wait_until};

/// A command that tells that it has begun, goes on until it is told to, and emits. It ends with its folder too, because
/// nobody ends it when its server is killed.
const WORK: &str = r#"
handlers:
  work:
    run:
      command:
        - sh
        - -c
        - |
          touch begun-$POINTSMAN_ATTEMPT
          while [ -e pointsman.yml ] && [ ! -e go ]; do sleep 0.05; done
          echo '{"emit": [{"type": "made"}]}' > "$POINTSMAN_EFFECTS"
event_handlers:
  job.asked: [work]
"#;

fn database() -> String {
    shared().unwrap().create_database().unwrap()
}

/// Runs each of these on a database of every kind.
macro_rules! on_each {
    ($($test:ident),+ $(,)?) => {
        mod on_postgres { $(
            #[test]
            fn $test() {
                super::$test(&super::database());
            }
        )+ }
        mod on_redis { $(
            #[test]
            fn $test() {
                super::$test(&super::shared_redis().unwrap().url_under(&super::fresh_prefix()));
            }
        )+ }
    };
}

on_each! {
    tasks_of_a_killed_server_run_on_another,
    results_of_a_server_that_was_suspended_past_its_lease_are_refused,
    work_runs_tasks_next_to_running_servers,
    a_server_warns_when_it_takes_handlers_from_another_of_its_name,
}

/// A server and a second one on the same database, both with this configuration. The second has not begun.
fn two(store: &str, config: &str) -> (TestServer, ServerProcess, TestServer) {
    let config = format!("store: '{store}'\n{config}");
    let mut first = TestServer::new(&config);
    let node = first.serve();
    let second = TestServer::new(&config).with_token(first.token());
    (first, node, second)
}

/// Emits what the first server begins to work on, and cannot end.
fn begun(first: &TestServer, second: &TestServer) -> String {
    let emitted = first.run_json(&["emit", "job.asked", "--key", "k"]);
    wait_for_file(&first.path("begun-1"));
    // On the second nothing keeps it.
    std::fs::write(second.path("go"), "").unwrap();
    emitted["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

/// How many events of a type the journal holds.
fn journaled(pointsman: &TestServer, kind: &str) -> usize {
    let end: u64 = pointsman.run_ok(&["emit", "the.end"]).parse().unwrap();
    let watch = pointsman.start_watch(&["-o", "json", "--since-start", "--no-tasks"]);
    let mut found = 0;
    loop {
        let event = watch.lines.find_json("the next event", |_| true);
        if event["eventId"] == end {
            return found;
        }
        found += usize::from(event["TYPE"] == kind);
    }
}

fn ends(task: &serde_json::Value) -> Vec<&str> {
    task["attempts"].as_array().unwrap().iter().map(|attempt| attempt["end"].as_str().unwrap()).collect()
}

fn tasks_of_a_killed_server_run_on_another(store: &str) {
    let (first, killed, mut second) = two(store, WORK);
    let task = begun(&first, &second);
    let _second = second.serve();
    killed.kill();
    wait_until("it has run elsewhere", || second.run_json(&["tasks", "show", &task])["status"] == "SUCCESS");
    assert_eq!(ends(&second.run_json(&["tasks", "show", &task])), ["crashed", "succeeded"]);
    assert!(second.path("begun-2").exists() && !first.path("begun-2").exists());
    assert_eq!(journaled(&second, "made"), 1);
}

fn results_of_a_server_that_was_suspended_past_its_lease_are_refused(store: &str) {
    let (first, stopped, mut second) = two(store, WORK);
    let task = begun(&first, &second);
    let _second = second.serve();
    stopped.signal(Signal::SIGSTOP);
    wait_until("it has run elsewhere", || second.run_json(&["tasks", "show", &task])["status"] == "SUCCESS");
    // Now the first attempt ends well too, and its server wakes up to tell of it.
    std::fs::write(first.path("go"), "").unwrap();
    stopped.signal(Signal::SIGCONT);
    wait_until("it has joined again", || {
        let nodes = second.run_json(&["nodes"]);
        let alive = nodes["nodes"].as_array().unwrap().iter().filter(|node| node["alive"] == true);
        alive.count() == 2
    });
    // What it runs from now on counts again.
    let again = first.run_json(&["emit", "job.asked", "--key", "other"]);
    let again = again["events"][0]["tasks"][0].as_str().unwrap();
    wait_until("the next one has run", || second.run_json(&["tasks", "show", again])["status"] == "SUCCESS");
    assert_eq!(ends(&first.run_json(&["tasks", "show", &task])), ["crashed", "succeeded"]);
    assert_eq!(journaled(&first, "made"), 2, "once for each task");
}

fn work_runs_tasks_next_to_running_servers(store: &str) {
    const IDLE: &str = r#"
rooms: [http, rescuer]
handlers:
  keep: {run: {command: ["sh", "-c", "echo x >> kept"]}}
event_handlers:
  record.published: [keep]
"#;
    let (first, _node, second) = two(store, IDLE);
    for _ in 0..5 {
        first.run_ok(&["emit", "record.published"]);
    }
    let done = second.run_ok(&["work", "--handler", "keep", "--max-events", "3"]);
    assert_eq!(done, "3 attempts: 3 succeeded, 0 failed; as many as were to be begun");
    assert_eq!(std::fs::read_to_string(second.path("kept")).unwrap().lines().count(), 3);
    let counts = &first.run_json(&["handlers", "show", "keep"])["counts"];
    assert_eq!(counts["missing"], 0, "{counts}");
}

fn refused(config: &str, exit: i32, said: &[&str]) {
    let output = TestServer::new(config).run(&["serve", "--listen", "127.0.0.1:0"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(exit), "{told}");
    for said in said {
        assert!(told.contains(said), "{told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
}

/// The rules of a server that asks everybody but its owner for a password.
const RULES: &str = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

#[test]
fn the_database_password_can_be_given_in_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let rules = folder.path().join("pg_hba.conf");
    std::fs::write(&rules, RULES).unwrap();
    let extra = vec![("hba_file".into(), rules.display().to_string())];
    let postgres = Postgres::start(Settings { extra, ..Settings::default() }).unwrap();
    postgres.query("postgres", "CREATE ROLE clerk LOGIN PASSWORD 'hunter2'").unwrap();
    postgres.query("postgres", "CREATE DATABASE app OWNER clerk").unwrap();
    let store = format!("store: postgres://clerk@{}/app\n", postgres.address());
    refused(&store, 78, &["does not let the role clerk in", "none was given", "POINTSMAN_STORE_FILE"]);
    let wrong = TestServer::new(&store).with_variable("PGPASSWORD", "wrong").run(&["work"]);
    let told = String::from_utf8(wrong.stderr).unwrap();
    assert!(told.contains("the password in PGPASSWORD"), "{told}");
    let mut pointsman = TestServer::new(&store).with_variable("PGPASSWORD", "hunter2");
    assert!(pointsman.serve().stop().success());
    let shown = pointsman.run_ok(&["config", "show"]);
    assert!(shown.contains("postgres://clerk@") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_server_that_cannot_use_its_postgres_database_explains_why() {
    let postgres = Postgres::start(Settings::default()).unwrap();
    let address = postgres.address();
    let url = |database: &str| format!("store: postgres://postgres:hunter2@{address}/{database}\n");
    refused(&url("nowhere"), 78, &["CREATE DATABASE \"nowhere\""]);
    postgres.query("postgres", "CREATE DATABASE theirs").unwrap();
    postgres.query("theirs", "CREATE SCHEMA pointsman; CREATE TABLE pointsman.x ()").unwrap();
    refused(&url("theirs"), 78, &["not Pointsman's"]);
    postgres.query("postgres", "CREATE DATABASE newer").unwrap();
    let mut newer = TestServer::new(&url("newer"));
    assert!(newer.serve().stop().success());
    let newer_layout = "INSERT INTO pointsman.migration VALUES (1000, 'x', 'x', now())";
    postgres.query("newer", newer_layout).unwrap();
    refused(&url("newer"), 78, &["newer version of Pointsman"]);
    refused("store: postgres://postgres:hunter2@127.0.0.1:x/a\n", 78, &["pointsman.yml:1"]);
    postgres.stop().unwrap();
    refused(&url("postgres"), 75, &["is it running", "POINTSMAN_STORE"]);
}

/// However many requests meet an outage, the log tells of it in a few lines: when it begins, now and then, when it ends.
fn assert_outage_is_logged_briefly(store: &str, kill: impl FnOnce(), start_again: impl FnOnce()) {
    let mut pointsman = TestServer::new(&format!("store: {store}\n"));
    let _node = pointsman.serve_on_new_port();
    pointsman.run_ok(&["emit", "before"]);
    let quiet = pointsman.log().lines().count();
    kill();
    for _ in 0..30 {
        let refused = pointsman.run(&["emit", "meanwhile"]);
        assert_eq!(refused.status.code(), Some(75));
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(told.contains("not known") && told.contains("idempotency key"), "{told}");
    }
    start_again();
    wait_until("it is over", || pointsman.run(&["emit", "after"]).status.success());
    let log = pointsman.log();
    let told: Vec<&str> = log.lines().skip(quiet).collect();
    assert!(told.len() <= 10, "{log}");
    let about = |words: &str| told.iter().filter(|line| line.contains(words)).count();
    assert_eq!(
        (about("the store cannot be written"), about("the store can be written again")),
        (1, 1),
        "{log}"
    );
}

#[test]
fn an_outage_does_not_flood_the_log() {
    let postgres = Postgres::start(Settings::default()).unwrap();
    let store = postgres.create_database().unwrap();
    assert_outage_is_logged_briefly(&store, || postgres.kill().unwrap(), || postgres.start_again().unwrap());
}

/// A row that somebody wrote into the outbox by hand is told of once, and so is what keeps the outbox from being drained.
#[test]
fn outbox_problems_are_logged_once() {
    let (server, url) = (shared().unwrap(), database());
    let ask = |sql: &str| server.query(url.rsplit('/').next().unwrap(), sql).unwrap();
    let mut pointsman = TestServer::new(&format!("store: {url}\n"));
    let _node = pointsman.serve_on_new_port();
    ask("INSERT INTO pointsman.outbox (type) VALUES ('a b')");
    wait_until("it is told", || pointsman.log().contains("cannot become events"));

    ask("CREATE SEQUENCE tries;
         CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM nextval(''tries''); RAISE EXCEPTION ''held up''; END';
         CREATE TRIGGER hold_up BEFORE INSERT ON pointsman.journal FOR EACH ROW WHEN (new.type = 'held')
             EXECUTE FUNCTION hold_up()");
    ask("SELECT pointsman.emit('held')");
    wait_until("it is tried again and again", || {
        ask("SELECT last_value >= 4 FROM tries")[0][0].as_deref() == Some("t")
    });
    ask("DROP TRIGGER hold_up ON pointsman.journal");
    wait_until("it is over", || pointsman.log().contains("the outbox is drained again"));
    assert_eq!(journaled(&pointsman, "held"), 1);
    let log = pointsman.log();
    let about = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    let told = (about("cannot become events"), about("held up"), about("the outbox cannot be drained"));
    assert_eq!((told.0, told.2), (1, 1), "{log}");
    assert!((1..=2).contains(&told.1), "{log}");
}

/// Whoever reads the log learns what the database said, and not only that it said something.
#[test]
fn the_log_contains_the_database_error() {
    let url = database();
    let mut pointsman = TestServer::new(&format!("store: {url}\n"));
    let _node = pointsman.serve_on_new_port();
    let refuse = "
        CREATE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no room on the disk'; END $$;
        CREATE TRIGGER no_event BEFORE INSERT ON pointsman.journal FOR EACH STATEMENT EXECUTE FUNCTION refuse_all()";
    shared().unwrap().query(url.rsplit('/').next().unwrap(), refuse).unwrap();
    assert_eq!(pointsman.run(&["emit", "record"]).status.code(), Some(75));
    let log = pointsman.log();
    let told = log.lines().find(|line| line.contains("the store cannot be written"));
    assert!(told.is_some_and(|line| line.contains("ERROR") && line.contains("no room on the disk")), "{log}");
}

fn a_server_warns_when_it_takes_handlers_from_another_of_its_name(store: &str) {
    let with = |store: &str, name: &str, handler: &str| {
        let handler = format!("handlers:\n  {handler}: {{run: {{command: [\"true\"]}}}}\n");
        format!("store: '{store}'\n{name}{handler}")
    };
    let mut first = TestServer::new(&with(store, "", "kept"));
    let _first = first.serve_on_new_port();
    let said = |pointsman: &TestServer| {
        pointsman.log().lines().filter(|line| line.contains("needs another `name:`")).count()
    };
    let mut alike = TestServer::new(&with(store, "", "kept")).with_token(first.token());
    let _alike = alike.serve_on_new_port();
    let mut named = TestServer::new(&with(store, "name: other\n", "lost")).with_token(first.token());
    let _named = named.serve_on_new_port();
    assert_eq!((said(&first), said(&alike), said(&named)), (0, 0, 0));
    let mut other = TestServer::new(&with(store, "", "lost")).with_token(first.token());
    let _other = other.serve_on_new_port();
    let log = other.log();
    let told = log.lines().find(|line| line.contains("needs another `name:`"));
    assert!(told.is_some_and(|line| line.contains("WARN") && line.contains("handlers=\"kept\"")), "{log}");
    assert_eq!(said(&other), 2, "of each that loses something");
}
