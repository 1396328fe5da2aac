//! `pointsman doctor` beside real servers.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

#[path = "common/node.rs"]
mod node;

use std::time::Duration;

use node::Place;
use pointsman_testing::{Postgres, Redis, RedisSettings, Settings};
use serde_json::Value;

/// What it finds, and its exit code.
fn examined(place: &Place, words: &[&str]) -> (Value, Option<i32>) {
    let output = place.run(&[&["doctor", "-o", "json"], words].concat());
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code())
}

/// The findings of a name.
fn of<'a>(found: &'a Value, name: &str) -> Vec<&'a Value> {
    found["findings"].as_array().unwrap().iter().filter(|finding| finding["name"] == name).collect()
}

fn only<'a>(found: &'a Value, name: &str) -> &'a Value {
    let findings = of(found, name);
    assert_eq!(findings.len(), 1, "{name}: {found:#}");
    findings[0]
}

#[test]
fn a_running_server_is_asked_and_its_file_is_looked_at() {
    let mut place = Place::new("");
    let node = place.serve();
    place.ok(&["emit", "record"]);
    let (found, code) = examined(&place, &["--deep"]);
    assert_eq!((code, &found["faults"], &found["warnings"]), (Some(0), &0.into(), &0.into()), "{found:#}");
    assert!(only(&found, "in use")["found"].as_str().unwrap().contains(&format!("pid {}", node.pid())));
    assert!(only(&found, "server")["found"].as_str().unwrap().starts_with("ok at http"));
    assert!(node.stop().success());
    let (found, code) = examined(&place, &[]);
    assert_eq!((code, only(&found, "in use")["found"].as_str()), (Some(0), Some("no")), "{found:#}");
    let url = format!("http://{}", place.address());
    let (found, code) = examined(&place, &["--url", &url]);
    assert_eq!((code, only(&found, "server")["verdict"].as_str()), (Some(1), Some("fault")), "{found:#}");
}

#[test]
fn a_database_is_looked_at_as_the_configuration_names_it() {
    let server = Postgres::start(Settings { durable: true, ..Settings::default() }).unwrap();
    let url = server.create_database().unwrap();
    let mut place = Place::new(&format!("store: {url}\n"));
    let node = place.serve();
    let (found, code) = examined(&place, &[]);
    assert_eq!((code, &found["faults"], &found["warnings"]), (Some(0), &0.into(), &0.into()), "{found:#}");
    assert!(only(&found, "nodes")["found"].as_str().unwrap().starts_with("1 live"), "{found:#}");

    let database = url.rsplit('/').next().unwrap().to_owned();
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| server.query(&database, "SELECT pg_sleep(60)"));
        std::thread::sleep(Duration::from_millis(1200));
        let (found, code) = examined(&place, &["--long", "1s"]);
        let open = only(&found, "transactions");
        assert_eq!((code, open["verdict"].as_str()), (Some(0), Some("warning")), "{found:#}");
        let end = open["advice"].as_str().unwrap().split("SELECT ").nth(1).unwrap().to_owned();
        server.query("postgres", &format!("SELECT {end}")).unwrap();
        assert!(sleeping.join().unwrap().is_err(), "it was ended, as was advised");
    });
    assert!(node.stop().success());
}

#[test]
fn a_database_that_may_lose_data_is_a_fault() {
    let server = Postgres::start(Settings::default()).unwrap();
    let place = Place::new(&format!("store: {}\n", server.create_database().unwrap()));
    let (found, code) = examined(&place, &[]);
    assert_eq!((code, only(&found, "fsync")["verdict"].as_str()), (Some(1), Some("fault")), "{found:#}");
}

#[test]
fn a_redis_is_looked_at_as_the_configuration_names_it() {
    let redis = Redis::start(RedisSettings::default()).unwrap();
    let mut place = Place::new(&format!("store: '{}/?prefix=bus:'\n", redis.url()));
    let node = place.serve();
    let (found, code) = examined(&place, &[]);
    assert_eq!((code, &found["faults"], &found["warnings"]), (Some(0), &0.into(), &0.into()), "{found:#}");
    assert!(only(&found, "nodes")["found"].as_str().unwrap().starts_with("1 live"), "{found:#}");
    assert!(only(&found, "connection")["found"].as_str().unwrap().contains("?prefix=bus:"), "{found:#}");

    redis.command(&["LPUSH", "bus:o:events", "no event"]).unwrap();
    redis.command(&["LPUSH", "bus:objects.with.events", "o"]).unwrap();
    node::until("it is set aside", || only(&examined(&place, &[]).0, "set aside")["verdict"] == "warning");
    redis.command(&["CONFIG", "SET", "appendfsync", "everysec"]).unwrap();
    let (found, code) = examined(&place, &[]);
    assert_eq!(
        (code, only(&found, "appendfsync")["verdict"].as_str()),
        (Some(1), Some("fault")),
        "{found:#}"
    );
    assert!(node.stop().success());
}
