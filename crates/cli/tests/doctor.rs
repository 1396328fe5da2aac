//! `pointsman doctor` with real servers and databases.

// The whole crate is a test; clippy only exempts functions marked as tests.
#![allow(clippy::unwrap_used)]

#[path = "common/test_server.rs"]
mod test_server;

use std::time::Duration;

use pointsman_testing::{PostgresServer, PostgresSettings, RedisServer, RedisSettings};
use serde_json::Value;
use test_server::ServerFixture;

/// The findings of `doctor`, and its exit code.
fn run_doctor(pointsman: &ServerFixture, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = pointsman.run_command(&[&["doctor", "-o", "json"], arguments].concat());
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

/// The findings with this name.
fn findings_named<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    report["findings"].as_array().unwrap().iter().filter(|finding| finding["name"] == name).collect()
}

fn only_finding<'a>(report: &'a Value, name: &str) -> &'a Value {
    let findings = findings_named(report, name);
    assert_eq!(findings.len(), 1, "{name}: {report:#}");
    findings[0]
}

#[test]
fn doctor_checks_the_running_server_and_its_file() {
    let mut pointsman = ServerFixture::new("");
    let node = pointsman.serve();
    pointsman.run_ok(&["emit", "record"]);
    let (report, code) = run_doctor(&pointsman, &["--deep"]);
    assert_eq!((code, &report["faults"], &report["warnings"]), (Some(0), &0.into(), &0.into()), "{report:#}");
    assert!(
        only_finding(&report, "in use")["found"].as_str().unwrap().contains(&format!("pid {}", node.pid()))
    );
    assert!(only_finding(&report, "server")["found"].as_str().unwrap().starts_with("ok at http"));
    assert!(node.stop().success());
    let (report, code) = run_doctor(&pointsman, &[]);
    assert_eq!(
        (code, only_finding(&report, "in use")["found"].as_str()),
        (Some(0), Some("no")),
        "{report:#}"
    );
    let url = format!("http://{}", pointsman.address());
    let (report, code) = run_doctor(&pointsman, &["--url", &url]);
    assert_eq!(
        (code, only_finding(&report, "server")["verdict"].as_str()),
        (Some(1), Some("fault")),
        "{report:#}"
    );
}

#[test]
fn doctor_checks_the_configured_postgres_database() {
    let server =
        PostgresServer::start(PostgresSettings { durable: true, ..PostgresSettings::default() }).unwrap();
    let url = server.create_database().unwrap();
    let mut pointsman = ServerFixture::new(&format!("store: {url}\n"));
    let node = pointsman.serve();
    let (report, code) = run_doctor(&pointsman, &[]);
    assert_eq!((code, &report["faults"], &report["warnings"]), (Some(0), &0.into(), &0.into()), "{report:#}");
    assert!(only_finding(&report, "nodes")["found"].as_str().unwrap().starts_with("1 live"), "{report:#}");

    let database = url.rsplit('/').next().unwrap().to_owned();
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| server.query(&database, "SELECT pg_sleep(60)"));
        std::thread::sleep(Duration::from_millis(1200));
        let (report, code) = run_doctor(&pointsman, &["--long", "1s"]);
        let open = only_finding(&report, "transactions");
        assert_eq!((code, open["verdict"].as_str()), (Some(0), Some("warning")), "{report:#}");
        let end = open["advice"].as_str().unwrap().split("SELECT ").nth(1).unwrap().to_owned();
        server.query("postgres", &format!("SELECT {end}")).unwrap();
        assert!(sleeping.join().unwrap().is_err(), "it was ended, as was advised");
    });
    assert!(node.stop().success());
}

#[test]
fn a_postgres_setting_that_can_lose_data_is_a_fault() {
    let server = PostgresServer::start(PostgresSettings::default()).unwrap();
    let pointsman = ServerFixture::new(&format!("store: {}\n", server.create_database().unwrap()));
    let (report, code) = run_doctor(&pointsman, &[]);
    assert_eq!(
        (code, only_finding(&report, "fsync")["verdict"].as_str()),
        (Some(1), Some("fault")),
        "{report:#}"
    );
}

#[test]
fn doctor_checks_the_configured_redis() {
    let redis = RedisServer::start(RedisSettings::default()).unwrap();
    let mut pointsman = ServerFixture::new(&format!("store: '{}/?prefix=bus:'\n", redis.url()));
    let node = pointsman.serve();
    let (report, code) = run_doctor(&pointsman, &[]);
    assert_eq!((code, &report["faults"], &report["warnings"]), (Some(0), &0.into(), &0.into()), "{report:#}");
    assert!(only_finding(&report, "nodes")["found"].as_str().unwrap().starts_with("1 live"), "{report:#}");
    assert!(
        only_finding(&report, "connection")["found"].as_str().unwrap().contains("?prefix=bus:"),
        "{report:#}"
    );

    redis.run_command(&["LPUSH", "bus:o:events", "no event"]).unwrap();
    redis.run_command(&["LPUSH", "bus:objects.with.events", "o"]).unwrap();
    test_server::wait_until("the entry is set aside", || {
        only_finding(&run_doctor(&pointsman, &[]).0, "set aside")["verdict"] == "warning"
    });
    redis.run_command(&["CONFIG", "SET", "appendfsync", "everysec"]).unwrap();
    let (report, code) = run_doctor(&pointsman, &[]);
    assert_eq!(
        (code, only_finding(&report, "appendfsync")["verdict"].as_str()),
        (Some(1), Some("fault")),
        "{report:#}"
    );
    assert!(node.stop().success());
}

#[test]
fn a_server_on_another_sqlite_file_is_a_warning() {
    let mut pointsman = ServerFixture::new("");
    let _node = pointsman.serve();
    let (report, code) = run_doctor(&pointsman, &["--store", "sqlite:other.db"]);
    let warning = findings_named(&report, "server").pop().unwrap();
    assert_eq!((code, warning["verdict"].as_str()), (Some(0), Some("warning")), "{report:#}");
    assert!(warning["found"].as_str().unwrap().contains("the server uses another file"), "{report:#}");
}

#[test]
fn serve_names_the_process_that_uses_its_sqlite_file() {
    let mut pointsman = ServerFixture::new("");
    let node = pointsman.serve();
    let second = pointsman.run_command(&["serve", "--listen", "127.0.0.1:0"]);
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(75), "{message}");
    assert!(message.contains(&format!("pid {}", node.pid())), "{message}");
}

#[test]
fn commands_that_would_run_as_root_are_a_warning() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can run commands as root");
        return;
    }
    let config = "handlers:\n  index: {run: {command: [true]}}\n";
    let mut pointsman = ServerFixture::new(config);
    let (report, code) = run_doctor(&pointsman, &[]);
    let warning = only_finding(&report, "commands");
    assert_eq!((code, warning["verdict"].as_str()), (Some(0), Some("warning")), "{report:#}");
    assert_eq!(warning["found"], "the commands of index run as root");
    let _node = pointsman.serve_on_new_port();
    let log = pointsman.read_server_log();
    assert!(log.contains("WARN") && log.contains("the commands of index run as root"), "{log}");

    let (report, _) = run_doctor(&ServerFixture::new(config).with_unprivileged_user(), &[]);
    assert!(findings_named(&report, "commands").is_empty(), "{report:#}");
    let with_user = "handlers:\n  index: {run: {command: [true], user: nobody}}\n";
    let (report, _) = run_doctor(&ServerFixture::new(with_user), &[]);
    assert!(findings_named(&report, "commands").is_empty(), "{report:#}");
}
