//! Redis: it starts, it restarts with all acknowledged data, and dropping it leaves nothing behind.

// All of this file is test code; clippy recognizes only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pointsman_testing::{
    FaultProxy, RedisAdmin, RedisReply, RedisServer, RedisSettings, SHARED_POSTGRES_VARIABLE,
    SHARED_REDIS_VARIABLE, shared_redis, unique_key_prefix,
};

fn start_server() -> RedisServer {
    RedisServer::start(RedisSettings::default()).unwrap()
}

/// Runs a command and returns its reply as text.
fn command_text(server: &RedisServer, arguments: &[&str]) -> Option<String> {
    server.run_command(arguments).unwrap().text()
}

fn read_setting(server: &RedisServer, name: &str) -> String {
    server.run_command(&["CONFIG", "GET", name]).unwrap().texts()[1].clone()
}

fn is_process_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[test]
fn two_servers_run_side_by_side_with_their_own_settings() {
    let default_server = start_server();
    let mut settings = RedisSettings::with_directives(&[("appendfsync", "everysec"), ("save", "60 1")]);
    settings.password = Some("a \"word\"".into());
    let other = RedisServer::start(settings).unwrap();
    assert_ne!(default_server.port(), other.port());
    for (server, fsync, save) in [(&default_server, "always", ""), (&other, "everysec", "60 1")] {
        assert_eq!(read_setting(server, "appendonly"), "yes");
        assert_eq!(read_setting(server, "appendfsync"), fsync);
        assert_eq!(read_setting(server, "save"), save);
        assert_eq!(read_setting(server, "maxmemory-policy"), "noeviction");
        assert_eq!(read_setting(server, "bind"), "127.0.0.1");
    }
    let without_password = RedisAdmin::new(&format!("redis://{}", other.address())).unwrap();
    assert!(without_password.run_command(&["PING"]).unwrap_err().to_string().contains("NOAUTH"));
    let with_password = RedisAdmin::new(&other.url()).unwrap();
    assert_eq!(with_password.run_command(&["PING"]).unwrap().text().as_deref(), Some("PONG"));
}

#[test]
fn commands_return_their_replies() {
    let server = start_server();
    let set_binary_value = [&b"SET"[..], b"key", b"a\r\n\0\xff"];
    assert_eq!(server.run_command(&set_binary_value).unwrap().text().as_deref(), Some("OK"));
    assert_eq!(server.run_command(&["GET", "key"]).unwrap(), RedisReply::Bytes(b"a\r\n\0\xff".to_vec()));
    assert_eq!(server.run_command(&["GET", "none"]).unwrap(), RedisReply::Nil);
    assert_eq!(server.run_command(&["RPUSH", "list", "a", "b"]).unwrap().number(), Some(2));
    assert_eq!(server.run_command(&["LRANGE", "list", "0", "-1"]).unwrap().texts(), ["a", "b"]);
    let type_error = server.run_command(&["LPUSH", "key", "a"]).unwrap_err();
    assert!(type_error.to_string().contains("WRONGTYPE"), "{type_error}");
    let mut connection = server.admin().connect().unwrap();
    connection.run_command(&["MULTI"]).unwrap();
    connection.run_command(&["INCR", "count"]).unwrap();
    connection.run_command(&["INCR", "list"]).unwrap();
    let done = connection.run_command(&["EXEC"]).unwrap();
    assert!(
        matches!(done.list(), [RedisReply::Number(1), RedisReply::Error(error)] if error.starts_with("WRONGTYPE"))
    );
}

#[test]
fn acknowledged_writes_survive_a_kill_and_a_stop() {
    let server = start_server();
    let port = server.port();
    type StopMethod = fn(&RedisServer) -> anyhow::Result<()>;
    for (n, stop) in
        [RedisServer::kill as StopMethod, RedisServer::stop, RedisServer::kill].into_iter().enumerate()
    {
        let length = i64::try_from(n).unwrap() + 1;
        assert_eq!(server.run_command(&["RPUSH", "list", "a"]).unwrap().number(), Some(length));
        let pid = server.pid().unwrap();
        stop(&server).unwrap();
        assert!(!is_process_alive(pid) && server.pid().is_none() && server.run_command(&["PING"]).is_err());
        server.start_again().unwrap();
        assert_eq!(server.run_command(&["LLEN", "list"]).unwrap().number(), Some(length));
    }
    assert_eq!(server.port(), port);
    assert!(server.start_again().is_err(), "it is already running");
}

#[test]
fn a_saved_copy_of_the_data_can_be_restored() {
    let server = start_server();
    assert!(server.save_data_copy().is_err() && server.restore_data_copy().is_err(), "it is running");
    server.run_command(&["SET", "key", "old"]).unwrap();
    server.stop().unwrap();
    assert!(server.restore_data_copy().is_err(), "no copy was saved yet");
    server.save_data_copy().unwrap();
    for _ in 0..2 {
        server.start_again().unwrap();
        assert_eq!(command_text(&server, &["GET", "key"]).as_deref(), Some("old"));
        server.run_command(&["SET", "key", "new"]).unwrap();
        server.kill().unwrap();
        server.restore_data_copy().unwrap();
    }
}

#[test]
fn a_paused_server_replies_after_it_is_resumed() {
    let server = start_server();
    server.pause().unwrap();
    thread::scope(|scope| {
        let (reply_sender, reply_receiver) = channel();
        scope.spawn(|| {
            let reply_sender = reply_sender;
            reply_sender.send(command_text(&server, &["PING"])).unwrap();
        });
        let silent = reply_receiver.recv_timeout(Duration::from_millis(100));
        assert_eq!(silent, Err(RecvTimeoutError::Timeout));
        server.resume().unwrap();
        assert_eq!(reply_receiver.recv().unwrap().as_deref(), Some("PONG"));
    });
    server.pause().unwrap();
    server.stop().unwrap();
}

#[test]
fn a_write_whose_reply_is_lost_is_still_written() {
    let server = start_server();
    let proxy = FaultProxy::start(server.address()).unwrap();
    let proxied = RedisAdmin::new(&server.url_through_proxy(&proxy).unwrap()).unwrap();
    assert_eq!(proxied.address(), proxy.address());
    let mut connection = proxied.connect().unwrap();
    connection.run_command(&["INCR", "count"]).unwrap();
    proxy.set_drop_replies(true);
    connection.run_command(&["INCR", "count"]).unwrap_err();
    assert_eq!(command_text(&server, &["GET", "count"]).as_deref(), Some("2"));
}

#[test]
fn dropping_a_server_ends_its_process_and_removes_its_data() {
    for paused in [false, true] {
        let server = start_server();
        let (pid, data) = (server.pid().unwrap(), server.data_folder());
        assert!(is_process_alive(pid) && data.join("appendonlydir").exists());
        if paused {
            server.pause().unwrap();
        }
        drop(server);
        assert!(!is_process_alive(pid) && !data.exists());
    }
}

#[test]
fn a_server_ends_when_its_parent_is_killed() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_pointsman-testing"))
        .env(SHARED_POSTGRES_VARIABLE, "not needed")
        .env_remove(SHARED_REDIS_VARIABLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Kept until the end: the program would stop if its output pipe were closed.
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let server = RedisAdmin::new(line.trim().strip_prefix("TESTING_REDIS=").unwrap()).unwrap();
    let info = server.run_command(&["INFO", "server"]).unwrap().text().unwrap();
    let pid = info.lines().find_map(|line| line.strip_prefix("process_id:")).unwrap().parse().unwrap();
    assert!(is_process_alive(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let has_ended = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        !is_process_alive(pid)
    });
    assert!(has_ended, "the server outlives the process that started it");
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let server = thread::spawn(start_server).join().unwrap();
    assert_eq!(command_text(&server, &["PING"]).as_deref(), Some("PONG"));
}

#[tokio::test]
async fn key_prefixes_on_the_shared_server_are_isolated() {
    let server = shared_redis().unwrap();
    let prefixes = [unique_key_prefix(), unique_key_prefix()];
    assert_ne!(prefixes[0], prefixes[1]);
    for prefix in &prefixes {
        let key = format!("{prefix}key");
        assert_eq!(server.run_command(&["INCR", &key]).unwrap().number(), Some(1));
        assert_eq!(server.url_with_prefix(prefix), format!("{}/?prefix={prefix}", server.url()));
    }
}
