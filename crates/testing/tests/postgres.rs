//! PostgreSQL: it starts, it restarts with all acknowledged data, and dropping it leaves nothing behind.

// All of this file is test code; clippy recognizes only functions that are marked as tests.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use pointsman_testing::{
    PostgresAdmin, PostgresServer, PostgresSettings, SHARED_POSTGRES_VARIABLE, SHARED_REDIS_VARIABLE,
    shared_postgres,
};

fn start_durable_server() -> PostgresServer {
    PostgresServer::start(PostgresSettings {
        durable: true,
        max_connections: 20,
        ..PostgresSettings::default()
    })
    .unwrap()
}

/// Runs a query and returns the one value of its result.
fn query_value(server: &PostgresServer, database: &str, sql: &str) -> String {
    let rows = server.query(database, sql).unwrap();
    rows.into_iter().flatten().flatten().next().unwrap()
}

/// Returns the pids of a server and of all its children.
fn list_server_pids(server: &PostgresServer) -> Vec<u32> {
    let main_pid = server.pid().unwrap();
    let listed = std::fs::read_to_string(format!("/proc/{main_pid}/task/{main_pid}/children")).unwrap();
    let children = listed.split_whitespace().map(|pid| pid.parse().unwrap());
    children.chain([main_pid]).collect()
}

fn is_process_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

#[test]
fn two_servers_run_side_by_side_with_their_own_settings() {
    let extra = vec![("work_mem".to_owned(), "5MB".to_owned())];
    let not_durable =
        PostgresServer::start(PostgresSettings { extra_settings: extra, ..PostgresSettings::default() })
            .unwrap();
    let durable = start_durable_server();
    assert_ne!(not_durable.address(), durable.address());
    assert_eq!(query_value(&not_durable, "postgres", "SELECT 1"), "1");
    assert_eq!(query_value(&durable, "postgres", "SELECT 1"), "1");
    for (server, fsync, connections) in [(&not_durable, "off", "200"), (&durable, "on", "20")] {
        assert_eq!(query_value(server, "postgres", "SHOW fsync"), fsync);
        assert_eq!(query_value(server, "postgres", "SHOW synchronous_commit"), fsync);
        assert_eq!(query_value(server, "postgres", "SHOW full_page_writes"), fsync);
        assert_eq!(query_value(server, "postgres", "SHOW max_connections"), connections);
    }
    assert_eq!(query_value(&not_durable, "postgres", "SHOW work_mem"), "5MB");
}

#[test]
fn committed_rows_survive_a_kill_and_a_stop() {
    let server = start_durable_server();
    server.query("postgres", "CREATE TABLE t (n int)").unwrap();
    let address = server.address();
    type StopMethod = fn(&PostgresServer) -> anyhow::Result<()>;
    for (n, stop) in [PostgresServer::kill as StopMethod, PostgresServer::stop, PostgresServer::kill]
        .into_iter()
        .enumerate()
    {
        server.query("postgres", &format!("INSERT INTO t VALUES ({n})")).unwrap();
        let process_pids = list_server_pids(&server);
        assert!(process_pids.len() > 1, "it has child processes");
        stop(&server).unwrap();
        assert!(!process_pids.into_iter().any(is_process_alive), "all of its processes have ended");
        assert!(server.pid().is_none() && server.query("postgres", "SELECT 1").is_err());
        server.start_again().unwrap();
        assert_eq!(query_value(&server, "postgres", "SELECT count(*) FROM t"), (n + 1).to_string());
    }
    assert_eq!(server.address(), address);
    assert!(server.start_again().is_err(), "it is already running");
}

#[test]
fn dropping_a_server_ends_its_processes_and_removes_its_folder() {
    for killed in [false, true] {
        let server = start_durable_server();
        let process_pids = list_server_pids(&server);
        let folder = query_value(&server, "postgres", "SHOW unix_socket_directories");
        assert!(Path::new(&folder).exists());
        if killed {
            server.kill().unwrap();
        }
        drop(server);
        assert!(!process_pids.into_iter().any(is_process_alive));
        assert!(!Path::new(&folder).exists());
    }
}

#[test]
fn a_server_ends_when_its_parent_is_killed() {
    let mut parent = Command::new(env!("CARGO_BIN_EXE_pointsman-testing"))
        .env_remove(SHARED_POSTGRES_VARIABLE)
        .env(SHARED_REDIS_VARIABLE, "not needed")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Kept until the end: the program would stop if its output pipe were closed.
    let mut output = BufReader::new(parent.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("TESTING_POSTGRES=").unwrap();
    let admin = PostgresAdmin::new(url).unwrap();
    let pid_file = admin.query("postgres", "SELECT pg_read_file('postmaster.pid')").unwrap();
    let pid = pid_file[0][0].as_ref().unwrap().lines().next().unwrap().parse().unwrap();
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
    let server = thread::spawn(start_durable_server).join().unwrap();
    assert_eq!(query_value(&server, "postgres", "SELECT 1"), "1");
}

#[tokio::test]
async fn databases_on_the_shared_server_are_isolated() {
    let server = shared_postgres().unwrap();
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
