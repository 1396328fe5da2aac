//! Several real servers on one PostgreSQL or Redis: killed, suspended, helped by `work`; and errors without a database.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

mod redis_errors;
#[path = "../common/test_server.rs"]
mod test_server;

use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use pointsman_testing::{PostgresServer, PostgresSettings, shared_postgres, shared_redis, unique_key_prefix};
use test_server::{PointsmanServerProcess, ServerFixture, wait_for_file, wait_until};

/// A command that creates a file when it starts, waits for another file, and emits. It also ends when its directory is
/// deleted, because nothing stops it when its server is killed.
const WAITING_COMMAND_CONFIG: &str = r#"
handlers:
  work:
    run:
      command:
        - sh
        - -c
        - |
          touch started-$POINTSMAN_ATTEMPT
          while [ -e pointsman.yml ] && [ ! -e finish ]; do sleep 0.05; done
          echo '{"emit": [{"type": "made"}]}' > "$POINTSMAN_EFFECTS"
event_handlers:
  job.requested: [work]
"#;

fn create_database() -> String {
    shared_postgres().unwrap().create_database().unwrap()
}

/// Runs each of these tests on PostgreSQL and on Redis.
macro_rules! on_each_shared_store {
    ($($test:ident),+ $(,)?) => {
        mod on_postgres { $(
            #[test]
            fn $test() {
                super::$test(&super::create_database());
            }
        )+ }
        mod on_redis { $(
            #[test]
            fn $test() {
                super::$test(&super::shared_redis().unwrap().url_with_prefix(&super::unique_key_prefix()));
            }
        )+ }
    };
}

on_each_shared_store! {
    tasks_of_a_killed_server_run_on_another,
    results_of_a_server_that_was_suspended_past_its_lease_are_refused,
    work_runs_tasks_next_to_running_servers,
    a_server_warns_when_its_registration_replaces_that_of_a_node_of_the_same_name,
}

/// Starts a server and prepares a second one on the same store, which is not started. Both have this configuration.
fn start_first_of_two_servers(
    store: &str,
    config: &str,
) -> (ServerFixture, PointsmanServerProcess, ServerFixture) {
    let config = format!("store: '{store}'\n{config}");
    let mut first = ServerFixture::new(&config);
    let node = first.serve();
    let second = ServerFixture::new(&config).with_token(first.token());
    (first, node, second)
}

/// Emits an event whose task the first server starts and cannot finish; returns the id of the task.
fn start_task_that_only_second_server_can_finish(first: &ServerFixture, second: &ServerFixture) -> String {
    let emitted = first.run_json(&["emit", "job.requested", "--key", "k"]);
    wait_for_file(&first.file_path("started-1"));
    // On the second server the task can finish.
    std::fs::write(second.file_path("finish"), "").unwrap();
    emitted["events"][0]["tasks"][0].as_str().unwrap().to_owned()
}

/// The number of events of this type in the journal.
fn count_events(pointsman: &ServerFixture, event_type: &str) -> usize {
    let end: u64 = pointsman.run_ok(&["emit", "the.end"]).parse().unwrap();
    let watch = pointsman.start_watch(&["-o", "json", "--since-start", "--no-tasks"]);
    let mut found = 0;
    loop {
        let event = watch.lines.wait_for_json("the next event", |_| true);
        if event["eventId"] == end {
            return found;
        }
        found += usize::from(event["TYPE"] == event_type);
    }
}

fn attempt_outcomes(task: &serde_json::Value) -> Vec<&str> {
    task["attempts"].as_array().unwrap().iter().map(|attempt| attempt["end"].as_str().unwrap()).collect()
}

fn tasks_of_a_killed_server_run_on_another(store: &str) {
    let (first, killed, mut second) = start_first_of_two_servers(store, WAITING_COMMAND_CONFIG);
    let task = start_task_that_only_second_server_can_finish(&first, &second);
    let _second = second.serve();
    killed.kill();
    wait_until("the task has run on the other server", || {
        second.run_json(&["tasks", "show", &task])["status"] == "SUCCESS"
    });
    assert_eq!(attempt_outcomes(&second.run_json(&["tasks", "show", &task])), ["crashed", "succeeded"]);
    assert!(second.file_path("started-2").exists() && !first.file_path("started-2").exists());
    assert_eq!(count_events(&second, "made"), 1);
}

fn results_of_a_server_that_was_suspended_past_its_lease_are_refused(store: &str) {
    let (first, stopped, mut second) = start_first_of_two_servers(store, WAITING_COMMAND_CONFIG);
    let task = start_task_that_only_second_server_can_finish(&first, &second);
    let _second = second.serve();
    stopped.send_signal(Signal::SIGSTOP);
    wait_until("the task has run on the other server", || {
        second.run_json(&["tasks", "show", &task])["status"] == "SUCCESS"
    });
    // Now the first attempt succeeds too, and its server resumes and reports it.
    std::fs::write(first.file_path("finish"), "").unwrap();
    stopped.send_signal(Signal::SIGCONT);
    wait_until("the resumed server has joined again", || {
        let nodes = second.run_json(&["nodes"]);
        let alive = nodes["nodes"].as_array().unwrap().iter().filter(|node| node["alive"] == true);
        alive.count() == 2
    });
    // Its later results are accepted again.
    let again = first.run_json(&["emit", "job.requested", "--key", "other"]);
    let again = again["events"][0]["tasks"][0].as_str().unwrap();
    wait_until("the next one has run", || second.run_json(&["tasks", "show", again])["status"] == "SUCCESS");
    assert_eq!(attempt_outcomes(&first.run_json(&["tasks", "show", &task])), ["crashed", "succeeded"]);
    assert_eq!(count_events(&first, "made"), 2, "once for each task");
}

fn work_runs_tasks_next_to_running_servers(store: &str) {
    const IDLE_SERVER_CONFIG: &str = r#"
services: [http, rescuer]
handlers:
  keep: {run: {command: ["sh", "-c", "echo x >> kept"]}}
event_handlers:
  record.published: [keep]
"#;
    let (first, _node, second) = start_first_of_two_servers(store, IDLE_SERVER_CONFIG);
    for _ in 0..5 {
        first.run_ok(&["emit", "record.published"]);
    }
    let done = second.run_ok(&["work", "--handler", "keep", "--max-events", "3"]);
    assert_eq!(done, "3 attempts: 3 succeeded, 0 failed; reached --max-events");
    assert_eq!(std::fs::read_to_string(second.file_path("kept")).unwrap().lines().count(), 3);
    let counts = &first.run_json(&["handlers", "show", "keep"])["counts"];
    assert_eq!(counts["missing"], 0, "{counts}");
}

fn assert_serve_fails(config: &str, exit_code: i32, messages: &[&str]) {
    let output = ServerFixture::new(config).run_command(&["serve", "--listen", "127.0.0.1:0"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(exit_code), "{stderr}");
    for message in messages {
        assert!(stderr.contains(message), "{stderr}");
    }
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

/// The content of `pg_hba.conf`: every role but `postgres` needs a password.
const HBA_RULES: &str = "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

#[test]
fn the_database_password_can_be_given_in_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let rules = folder.path().join("pg_hba.conf");
    std::fs::write(&rules, HBA_RULES).unwrap();
    let extra = vec![("hba_file".into(), rules.display().to_string())];
    let postgres =
        PostgresServer::start(PostgresSettings { extra_settings: extra, ..PostgresSettings::default() })
            .unwrap();
    postgres.query("postgres", "CREATE ROLE reader LOGIN PASSWORD 'hunter2'").unwrap();
    postgres.query("postgres", "CREATE DATABASE app OWNER reader").unwrap();
    let store = format!("store: postgres://reader@{}/app\n", postgres.address());
    assert_serve_fails(
        &store,
        78,
        &["denies access to the role reader", "none was given", "POINTSMAN_STORE_FILE"],
    );
    let wrong = ServerFixture::new(&store).with_env_variable("PGPASSWORD", "wrong").run_command(&["work"]);
    let stderr = String::from_utf8(wrong.stderr).unwrap();
    assert!(stderr.contains("the password in PGPASSWORD"), "{stderr}");
    let mut pointsman = ServerFixture::new(&store).with_env_variable("PGPASSWORD", "hunter2");
    assert!(pointsman.serve().stop().success());
    let shown = pointsman.run_ok(&["config", "show"]);
    assert!(shown.contains("postgres://reader@") && !shown.contains("hunter2"), "{shown}");
}

#[test]
fn a_server_that_cannot_use_its_postgres_database_explains_why() {
    let postgres = PostgresServer::start(PostgresSettings::default()).unwrap();
    let address = postgres.address();
    let url = |database: &str| format!("store: postgres://postgres:hunter2@{address}/{database}\n");
    assert_serve_fails(&url("nowhere"), 78, &["CREATE DATABASE \"nowhere\""]);
    postgres.query("postgres", "CREATE DATABASE theirs").unwrap();
    postgres.query("theirs", "CREATE SCHEMA pointsman; CREATE TABLE pointsman.x ()").unwrap();
    assert_serve_fails(&url("theirs"), 78, &["not Pointsman's"]);
    postgres.query("postgres", "CREATE DATABASE newer").unwrap();
    let mut newer = ServerFixture::new(&url("newer"));
    assert!(newer.serve().stop().success());
    let newer_layout = "INSERT INTO pointsman.migration VALUES (1000, 'x', 'x', now())";
    postgres.query("newer", newer_layout).unwrap();
    assert_serve_fails(&url("newer"), 78, &["newer version of Pointsman"]);
    assert_serve_fails("store: postgres://postgres:hunter2@127.0.0.1:x/a\n", 78, &["pointsman.yml:1"]);
    postgres.stop().unwrap();
    assert_serve_fails(&url("postgres"), 75, &["is it running", "POINTSMAN_STORE"]);
}

/// Checks that an outage takes few log lines, however many requests fail: at its start, occasionally, and at its end.
fn assert_outage_is_logged_briefly(store: &str, kill: impl FnOnce(), start_again: impl FnOnce()) {
    let mut pointsman = ServerFixture::new(&format!("store: {store}\n"));
    let _node = pointsman.serve_on_new_port();
    pointsman.run_ok(&["emit", "before"]);
    let lines_before = pointsman.read_server_log().lines().count();
    kill();
    for _ in 0..30 {
        let refused = pointsman.run_command(&["emit", "meanwhile"]);
        assert_eq!(refused.status.code(), Some(75));
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert!(stderr.contains("not known") && stderr.contains("idempotency key"), "{stderr}");
    }
    start_again();
    wait_until("the outage is over", || pointsman.run_command(&["emit", "after"]).status.success());
    let log = pointsman.read_server_log();
    let stderr: Vec<&str> = log.lines().skip(lines_before).collect();
    assert!(stderr.len() <= 10, "{log}");
    let count_lines = |words: &str| stderr.iter().filter(|line| line.contains(words)).count();
    assert_eq!(
        (count_lines("the store cannot be written"), count_lines("the store can be written again")),
        (1, 1),
        "{log}"
    );
}

#[test]
fn an_outage_does_not_flood_the_log() {
    let postgres = PostgresServer::start(PostgresSettings::default()).unwrap();
    let store = postgres.create_database().unwrap();
    assert_outage_is_logged_briefly(&store, || postgres.kill().unwrap(), || postgres.start_again().unwrap());
}

/// An invalid row of the outbox is logged once, and so is an error that keeps the outbox from being drained.
#[test]
fn outbox_problems_are_logged_once() {
    let (server, url) = (shared_postgres().unwrap(), create_database());
    let query = |sql: &str| server.query(url.rsplit('/').next().unwrap(), sql).unwrap();
    let mut pointsman = ServerFixture::new(&format!("store: {url}\n"));
    let _node = pointsman.serve_on_new_port();
    query("INSERT INTO pointsman.outbox (type) VALUES ('a b')");
    wait_until("the invalid row is logged", || pointsman.read_server_log().contains("cannot become events"));

    query(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM nextval(''tries''); RAISE EXCEPTION ''held up''; END';
         CREATE TRIGGER hold_up BEFORE INSERT ON pointsman.journal FOR EACH ROW WHEN (new.type = 'held')
             EXECUTE FUNCTION hold_up()",
    );
    query("SELECT pointsman.emit('held')");
    wait_until("the outbox is drained again and again", || {
        query("SELECT last_value >= 4 FROM tries")[0][0].as_deref() == Some("t")
    });
    query("DROP TRIGGER hold_up ON pointsman.journal");
    wait_until("the outage is over", || {
        pointsman.read_server_log().contains("draining the outbox works again")
    });
    assert_eq!(count_events(&pointsman, "held"), 1);
    let log = pointsman.read_server_log();
    let count_lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    let counts = (
        count_lines("cannot become events"),
        count_lines("held up"),
        count_lines("could not drain the outbox"),
    );
    assert_eq!((counts.0, counts.2), (1, 1), "{log}");
    assert!((1..=2).contains(&counts.1), "{log}");
}

#[test]
fn the_log_contains_the_message_of_a_database_error() {
    let url = create_database();
    let mut pointsman = ServerFixture::new(&format!("store: {url}\n"));
    let _node = pointsman.serve_on_new_port();
    let refuse = "
        CREATE FUNCTION refuse_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no space on the disk'; END $$;
        CREATE TRIGGER no_event BEFORE INSERT ON pointsman.journal FOR EACH STATEMENT EXECUTE FUNCTION refuse_all()";
    shared_postgres().unwrap().query(url.rsplit('/').next().unwrap(), refuse).unwrap();
    assert_eq!(pointsman.run_command(&["emit", "record"]).status.code(), Some(75));
    let log = pointsman.read_server_log();
    let line = log.lines().find(|line| line.contains("the store cannot be written"));
    assert!(
        line.is_some_and(|line| line.contains("ERROR") && line.contains("no space on the disk")),
        "{log}"
    );
}

fn a_server_warns_when_its_registration_replaces_that_of_a_node_of_the_same_name(store: &str) {
    let with = |store: &str, name: &str, handler: &str| {
        let handler = format!("handlers:\n  {handler}: {{run: {{command: [\"true\"]}}}}\n");
        format!("store: '{store}'\n{name}{handler}")
    };
    let mut first = ServerFixture::new(&with(store, "", "kept"));
    let _first = first.serve_on_new_port();
    let count_warnings = |pointsman: &ServerFixture| {
        pointsman
            .read_server_log()
            .lines()
            .filter(|line| line.contains("another node with the same name"))
            .count()
    };
    let mut alike = ServerFixture::new(&with(store, "", "kept")).with_token(first.token());
    let _alike = alike.serve_on_new_port();
    let mut named = ServerFixture::new(&with(store, "name: other\n", "lost")).with_token(first.token());
    let _named = named.serve_on_new_port();
    assert_eq!((count_warnings(&first), count_warnings(&alike), count_warnings(&named)), (0, 0, 0));
    let mut other = ServerFixture::new(&with(store, "", "lost")).with_token(first.token());
    let _other = other.serve_on_new_port();
    let log = other.read_server_log();
    let line = log.lines().find(|line| line.contains("another node with the same name"));
    assert!(line.is_some_and(|line| line.contains("WARN") && line.contains("handlers=\"kept\"")), "{log}");
    assert_eq!(count_warnings(&other), 2, "of each that loses something");
}
