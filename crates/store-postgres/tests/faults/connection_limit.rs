//! A server that has reached its connection limit.

use std::time::Duration;

use pointsman_core::store::{Journal, Store, StoreError};
use pointsman_store_conformance::world::{emission, event};
use pointsman_store_postgres::Postgres as Opened;
use pointsman_testing::{Postgres, Settings};
use tokio::time::sleep;
use tokio_postgres::{Client, NoTls};

use crate::common::load::{Load, now};
use crate::{connect, durable_server, query_number, wait_until_equal};

/// Opens all remaining connections.
async fn take_all_connections(url: &str) -> Vec<Client> {
    let mut clients = Vec::new();
    while let Ok((client, connection)) = tokio_postgres::connect(url, NoTls).await {
        tokio::spawn(connection);
        clients.push(client);
    }
    clients
}

/// Finds the writer's backend: the one that waits for a lock on the journal.
async fn writer_pid(observer: &Client, other: &Client, load: &Load) -> i64 {
    other.batch_execute("BEGIN; LOCK TABLE pointsman.journal IN SHARE MODE").await.unwrap();
    let waits = "FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let find = async {
        wait_until_equal(observer, &format!("SELECT count(*) {waits}"), 1).await;
        let pid = query_number(observer, &format!("SELECT pid::bigint {waits}")).await;
        other.batch_execute("COMMIT").await.unwrap();
        pid
    };
    let (emitted, pid) =
        tokio::join!(load.store().append(vec![emission([event("other")])], None, now()), find);
    emitted.unwrap();
    pid
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn emits_continue_without_free_connections_and_reads_report_it() {
    let server =
        Postgres::start(Settings { durable: true, max_connections: 24, ..Settings::default() }).unwrap();
    let url = server.create_database().unwrap();
    let (observer, other) = (connect(&url).await, connect(&url).await);
    let load = Load::start(&url, 4).await;
    load.wait_for_acknowledged(20).await;
    let writer = writer_pid(&observer, &other, &load).await;
    let mut taken = take_all_connections(&url).await;
    load.wait_for_acknowledged(50).await;
    // The store's idle readers could still be used, so they are terminated, and other clients take their slots.
    let ours = format!("FROM pg_stat_activity WHERE application_name = 'pointsman' AND pid <> {writer}");
    let mut quiet = 0;
    while quiet < 3 {
        let ended = query_number(&observer, &format!("SELECT count(pg_terminate_backend(pid)) {ours}")).await;
        let more = take_all_connections(&url).await;
        quiet = if ended == 0 && more.is_empty() { quiet + 1 } else { 0 };
        taken.extend(more);
        sleep(Duration::from_millis(20)).await;
    }
    let (read, ()) = tokio::join!(load.store().extent(), load.wait_for_acknowledged(200));
    assert!(matches!(&read, Err(StoreError::Unavailable(_))), "{read:?}");
    drop(taken);
    wait_until_equal(&observer, "SELECT (count(*) < 20)::int::bigint FROM pg_stat_activity", 1).await;
    load.store().extent().await.unwrap();
    drop((observer, other));
    Load::finish_all([load], &url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_writer_replaces_idle_readers() {
    let (server, url) = durable_server();
    let (observer, name) = (connect(&url).await, url.rsplit('/').next().unwrap());
    let role = format!("CREATE ROLE limited LOGIN; ALTER DATABASE {name} OWNER TO limited");
    server.query("postgres", &role).unwrap();
    let store = Opened::open(&url.replacen("//postgres@", "//limited@", 1), now()).await.unwrap();
    // Slots for the listener and one reader, which connect first.
    let end = "ALTER ROLE limited CONNECTION LIMIT 2;
               SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'limited'";
    server.query("postgres", end).unwrap();
    store.extent().await.unwrap();
    wait_until_equal(&observer, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'limited'", 2).await;
    for _ in 0..3 {
        store.append(vec![emission([event("record")])], None, now()).await.unwrap();
    }
    store.close();
}
