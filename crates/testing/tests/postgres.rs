//! PostgreSQL: it starts, it comes back with what it had acknowledged, and nothing of it stays.

// All of this is a test; clippy knows it only of the functions that are marked as such.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use pointsman_testing::{Admin, Postgres, SHARED_POSTGRES, SHARED_REDIS, Settings, shared};

fn durable() -> Postgres {
    Postgres::start(Settings { durable: true, max_connections: 20, ..Settings::default() }).unwrap()
}

/// The one value that a question is answered with.
fn ask(server: &Postgres, database: &str, sql: &str) -> String {
    let rows = server.query(database, sql).unwrap();
    rows.into_iter().flatten().flatten().next().unwrap()
}

/// The pids of a server and of all its children.
fn family(server: &Postgres) -> Vec<u32> {
    let first = server.pid().unwrap();
    let listed = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap();
    let children = listed.split_whitespace().map(|pid| pid.parse().unwrap());
    children.chain([first]).collect()
}

fn is_there(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[test]
fn two_servers_run_beside_each_other_as_they_were_set() {
    let extra = vec![("work_mem".to_owned(), "5MB".to_owned())];
    let fast = Postgres::start(Settings { extra, ..Settings::default() }).unwrap();
    let safe = durable();
    assert_ne!(fast.address(), safe.address());
    assert_eq!(ask(&fast, "postgres", "SELECT 1"), "1");
    assert_eq!(ask(&safe, "postgres", "SELECT 1"), "1");
    for (server, fsync, connections) in [(&fast, "off", "200"), (&safe, "on", "20")] {
        assert_eq!(ask(server, "postgres", "SHOW fsync"), fsync);
        assert_eq!(ask(server, "postgres", "SHOW synchronous_commit"), fsync);
        assert_eq!(ask(server, "postgres", "SHOW full_page_writes"), fsync);
        assert_eq!(ask(server, "postgres", "SHOW max_connections"), connections);
    }
    assert_eq!(ask(&fast, "postgres", "SHOW work_mem"), "5MB");
}

#[test]
fn what_was_committed_survives_a_kill_and_a_stop() {
    let server = durable();
    server.query("postgres", "CREATE TABLE t (n int)").unwrap();
    let address = server.address();
    type End = fn(&Postgres) -> anyhow::Result<()>;
    for (n, end) in [Postgres::kill as End, Postgres::stop, Postgres::kill].into_iter().enumerate() {
        server.query("postgres", &format!("INSERT INTO t VALUES ({n})")).unwrap();
        let family = family(&server);
        assert!(family.len() > 1, "it has processes beside the first");
        end(&server).unwrap();
        assert!(!family.into_iter().any(is_there), "all of its processes have ended");
        assert!(server.pid().is_none() && server.query("postgres", "SELECT 1").is_err());
        server.start_again().unwrap();
        assert_eq!(ask(&server, "postgres", "SELECT count(*) FROM t"), (n + 1).to_string());
    }
    assert_eq!(server.address(), address);
    assert!(server.start_again().is_err(), "it runs already");
}

#[test]
fn nothing_is_left_when_it_is_dropped() {
    for killed in [false, true] {
        let server = durable();
        let family = family(&server);
        let folder = ask(&server, "postgres", "SHOW unix_socket_directories");
        assert!(Path::new(&folder).exists());
        if killed {
            server.kill().unwrap();
        }
        drop(server);
        assert!(!family.into_iter().any(is_there));
        assert!(!Path::new(&folder).exists());
    }
}

#[test]
fn a_killed_parent_leaves_no_server_behind() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_pointsman-testing"))
        .env_remove(SHARED_POSTGRES)
        .env(SHARED_REDIS, "not needed")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Held to the end: it would end by itself if nobody heard the rest.
    let mut told = BufReader::new(parent.stdout.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("TESTING_POSTGRES=").unwrap();
    let admin = Admin::new(url).unwrap();
    let file = admin.query("postgres", "SELECT pg_read_file('postmaster.pid')").unwrap();
    let pid = file[0][0].as_ref().unwrap().lines().next().unwrap().parse().unwrap();
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
    let server = thread::spawn(durable).join().unwrap();
    assert_eq!(ask(&server, "postgres", "SELECT 1"), "1");
}

#[tokio::test]
async fn databases_on_the_shared_server_are_apart() {
    let server = shared().unwrap();
    let urls = [server.create_database().unwrap(), server.create_database().unwrap()];
    assert_ne!(urls[0], urls[1]);
    for url in &urls {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("CREATE TABLE t (n int)").await.unwrap();
        let encoding: String = client.query_one("SHOW server_encoding", &[]).await.unwrap().get(0);
        assert_eq!(encoding, "UTF8");
    }
}
