//! A server that has reached its connection limit.

use std::time::Duration;

use pointsman_core::store::{Journal, Store, StoreError};
use pointsman_store_conformance::fixture::{new_emit_batch, new_event};
use pointsman_store_postgres::Postgres as Opened;
use pointsman_testing::{PostgresServer, PostgresSettings};
use tokio::time::sleep;
use tokio_postgres::{Client, NoTls};

use crate::common::test_load::{TestLoad, now};
use crate::{connect, query_number, start_durable_server, wait_until_query_returns};

/// Opens all remaining connections.
async fn take_all_connections(url: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    while let Ok((client, connection)) = tokio_postgres::connect(url, NoTls).await {
        tokio::spawn(connection);
        clients.push(client);
    }
    clients
}

/// Finds the process id of the writer's backend, by making it wait for a lock on the journal.
async fn find_writer_pid(observer: &Client, other: &Client, load: &TestLoad) -> i64 {
    other.batch_execute("BEGIN; LOCK TABLE pointsman.journal IN SHARE MODE").await.unwrap();
    let from_waiting_sessions = "FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let find = async {
        wait_until_query_returns(observer, &format!("SELECT count(*) {from_waiting_sessions}"), 1).await;
        let pid = query_number(observer, &format!("SELECT pid::bigint {from_waiting_sessions}")).await;
        other.batch_execute("COMMIT").await.unwrap();
        pid
    };
    let (emitted, pid) =
        tokio::join!(load.store().append(vec![new_emit_batch([new_event("other")])], None, now()), find);
    emitted.unwrap();
    pid
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn emits_continue_without_free_connections_and_reads_report_it() {
    let server = PostgresServer::start(PostgresSettings {
        durable: true,
        max_connections: 24,
        ..PostgresSettings::default()
    })
    .unwrap();
    let url = server.create_database().unwrap();
    let (observer, other) = (connect(&url).await, connect(&url).await);
    let load = TestLoad::start(&url, 4).await;
    load.wait_for_acknowledged_emits(20).await;
    let writer = find_writer_pid(&observer, &other, &load).await;
    let mut taken = take_all_connections(&url).await;
    load.wait_for_acknowledged_emits(50).await;
    // The store could still use its idle read connections, so they are terminated, and other clients take their slots.
    let from_other_sessions =
        format!("FROM pg_stat_activity WHERE application_name = 'pointsman' AND pid <> {writer}");
    let mut rounds_without_change = 0;
    while rounds_without_change < 3 {
        let ended = query_number(
            &observer,
            &format!("SELECT count(pg_terminate_backend(pid)) {from_other_sessions}"),
        )
        .await;
        let more = take_all_connections(&url).await;
        rounds_without_change = if ended == 0 && more.is_empty() { rounds_without_change + 1 } else { 0 };
        taken.extend(more);
        sleep(Duration::from_millis(20)).await;
    }
    let (read, ()) = tokio::join!(load.store().read_journal_range(), load.wait_for_acknowledged_emits(200));
    assert!(matches!(&read, Err(StoreError::Unavailable(_))), "{read:?}");
    drop(taken);
    wait_until_query_returns(&observer, "SELECT (count(*) < 20)::int::bigint FROM pg_stat_activity", 1).await;
    load.store().read_journal_range().await.unwrap();
    drop((observer, other));
    TestLoad::stop_and_check_all([load], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_writer_closes_idle_read_connections_at_the_limit() {
    let (server, url) = start_durable_server();
    let (observer, name) = (connect(&url).await, url.rsplit('/').next().unwrap());
    let role = format!("CREATE ROLE limited LOGIN; ALTER DATABASE {name} OWNER TO limited");
    server.query("postgres", &role).unwrap();
    let store = Opened::open(&url.replacen("//postgres@", "//limited@", 1), now()).await.unwrap();
    // The limit leaves slots for the listener and one reader, which connect before the writer.
    let end = "ALTER ROLE limited CONNECTION LIMIT 2;
               SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'limited'";
    server.query("postgres", end).unwrap();
    store.read_journal_range().await.unwrap();
    wait_until_query_returns(&observer, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'limited'", 2)
        .await;
    for _ in 0..3 {
        store.append(vec![new_emit_batch([new_event("record")])], None, now()).await.unwrap();
    }
    store.close();
}
