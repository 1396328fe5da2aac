//! Redis: it starts, it comes back with what it had acknowledged, and nothing of it stays.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pointsman_testing::{
    Proxy, Redis, RedisAdmin, RedisSettings, Reply, SHARED_POSTGRES, SHARED_REDIS, fresh_prefix, shared_redis,
};

fn plain() -> Redis {
    Redis::start(RedisSettings::default()).unwrap()
}

/// The text that a command is answered with.
fn ask(server: &Redis, words: &[&str]) -> Option<String> {
    server.command(words).unwrap().text()
}

fn setting(server: &Redis, name: &str) -> String {
    server.command(&["CONFIG", "GET", name]).unwrap().texts()[1].clone()
}

fn is_there(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[test]
fn two_servers_run_beside_each_other_as_they_were_set() {
    let safe = plain();
    let mut settings = RedisSettings::with(&[("appendfsync", "everysec"), ("save", "60 1")]);
    settings.password = Some("a \"word\"".into());
    let other = Redis::start(settings).unwrap();
    assert_ne!(safe.port(), other.port());
    for (server, fsync, save) in [(&safe, "always", ""), (&other, "everysec", "60 1")] {
        assert_eq!(setting(server, "appendonly"), "yes");
        assert_eq!(setting(server, "appendfsync"), fsync);
        assert_eq!(setting(server, "save"), save);
        assert_eq!(setting(server, "maxmemory-policy"), "noeviction");
        assert_eq!(setting(server, "bind"), "127.0.0.1");
    }
    let stranger = RedisAdmin::new(&format!("redis://{}", other.address())).unwrap();
    assert!(stranger.command(&["PING"]).unwrap_err().to_string().contains("NOAUTH"));
    let known = RedisAdmin::new(&other.url()).unwrap();
    assert_eq!(known.command(&["PING"]).unwrap().text().as_deref(), Some("PONG"));
}

#[test]
fn commands_are_answered() {
    let server = plain();
    let binary = [&b"SET"[..], b"key", b"a\r\n\0\xff"];
    assert_eq!(server.command(&binary).unwrap().text().as_deref(), Some("OK"));
    assert_eq!(server.command(&["GET", "key"]).unwrap(), Reply::Bytes(b"a\r\n\0\xff".to_vec()));
    assert_eq!(server.command(&["GET", "none"]).unwrap(), Reply::Nil);
    assert_eq!(server.command(&["RPUSH", "list", "a", "b"]).unwrap().number(), Some(2));
    assert_eq!(server.command(&["LRANGE", "list", "0", "-1"]).unwrap().texts(), ["a", "b"]);
    let wrong = server.command(&["LPUSH", "key", "a"]).unwrap_err();
    assert!(wrong.to_string().contains("WRONGTYPE"), "{wrong}");
    let mut connection = server.admin().connect().unwrap();
    connection.command(&["MULTI"]).unwrap();
    connection.command(&["INCR", "count"]).unwrap();
    connection.command(&["INCR", "list"]).unwrap();
    let done = connection.command(&["EXEC"]).unwrap();
    assert!(matches!(done.list(), [Reply::Number(1), Reply::Error(error)] if error.starts_with("WRONGTYPE")));
}

#[test]
fn what_was_acknowledged_survives_a_kill_and_a_stop() {
    let server = plain();
    let port = server.port();
    type End = fn(&Redis) -> anyhow::Result<()>;
    for (n, end) in [Redis::kill as End, Redis::stop, Redis::kill].into_iter().enumerate() {
        let length = i64::try_from(n).unwrap() + 1;
        assert_eq!(server.command(&["RPUSH", "list", "a"]).unwrap().number(), Some(length));
        let pid = server.pid().unwrap();
        end(&server).unwrap();
        assert!(!is_there(pid) && server.pid().is_none() && server.command(&["PING"]).is_err());
        server.start_again().unwrap();
        assert_eq!(server.command(&["LLEN", "list"]).unwrap().number(), Some(length));
    }
    assert_eq!(server.port(), port);
    assert!(server.start_again().is_err(), "it runs already");
}

#[test]
fn data_can_be_put_back_to_what_it_was() {
    let server = plain();
    assert!(server.keep_copy().is_err() && server.restore_copy().is_err(), "it runs");
    server.command(&["SET", "key", "old"]).unwrap();
    server.stop().unwrap();
    assert!(server.restore_copy().is_err(), "there is no copy yet");
    server.keep_copy().unwrap();
    for _ in 0..2 {
        server.start_again().unwrap();
        assert_eq!(ask(&server, &["GET", "key"]).as_deref(), Some("old"));
        server.command(&["SET", "key", "new"]).unwrap();
        server.kill().unwrap();
        server.restore_copy().unwrap();
    }
}

#[test]
fn a_halted_server_answers_once_it_goes_on() {
    let server = plain();
    server.pause().unwrap();
    thread::scope(|scope| {
        let (done, answered) = channel();
        scope.spawn(|| {
            let done = done;
            done.send(ask(&server, &["PING"])).unwrap();
        });
        let silent = answered.recv_timeout(Duration::from_millis(100));
        assert_eq!(silent, Err(RecvTimeoutError::Timeout));
        server.resume().unwrap();
        assert_eq!(answered.recv().unwrap().as_deref(), Some("PONG"));
    });
    server.pause().unwrap();
    server.stop().unwrap();
}

#[test]
fn a_write_whose_answer_is_lost_is_a_write() {
    let server = plain();
    let proxy = Proxy::start(server.address()).unwrap();
    let through = RedisAdmin::new(&server.url_through(&proxy).unwrap()).unwrap();
    assert_eq!(through.address(), proxy.address());
    let mut connection = through.connect().unwrap();
    connection.command(&["INCR", "count"]).unwrap();
    proxy.drop_replies(true);
    connection.command(&["INCR", "count"]).unwrap_err();
    assert_eq!(ask(&server, &["GET", "count"]).as_deref(), Some("2"));
}

#[test]
fn nothing_is_left_when_it_is_dropped() {
    for halted in [false, true] {
        let server = plain();
        let (pid, data) = (server.pid().unwrap(), server.data());
        assert!(is_there(pid) && data.join("appendonlydir").exists());
        if halted {
            server.pause().unwrap();
        }
        drop(server);
        assert!(!is_there(pid) && !data.exists());
    }
}

#[test]
fn a_killed_parent_leaves_no_server_behind() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_pointsman-testing"))
        .env(SHARED_POSTGRES, "not needed")
        .env_remove(SHARED_REDIS)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Held to the end: it would end by itself if nobody heard the rest.
    let mut told = BufReader::new(parent.stdout.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let server = RedisAdmin::new(line.trim().strip_prefix("TESTING_REDIS=").unwrap()).unwrap();
    let info = server.command(&["INFO", "server"]).unwrap().text().unwrap();
    let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap().parse().unwrap();
    assert!(is_there(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let gone = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        !is_there(pid)
    });
    assert!(gone, "the server outlives the one who started it");
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let server = thread::spawn(plain).join().unwrap();
    assert_eq!(ask(&server, &["PING"]).as_deref(), Some("PONG"));
}

#[tokio::test]
async fn spaces_on_the_shared_server_are_apart() {
    let server = shared_redis().unwrap();
    let prefixes = [fresh_prefix(), fresh_prefix()];
    assert_ne!(prefixes[0], prefixes[1]);
    for prefix in &prefixes {
        let key = format!("{prefix}key");
        assert_eq!(server.command(&["INCR", &key]).unwrap().number(), Some(1));
        assert_eq!(server.url_under(prefix), format!("{}/?prefix={prefix}", server.url()));
    }
}
