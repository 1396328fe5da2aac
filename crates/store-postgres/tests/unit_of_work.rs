//! Units of work whose connection is lost during the commit.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::store::Store;
use pointsman_core::{HandlingKey, NewEvent, Timestamp};
use pointsman_store::sql::{BoxError, SqlTransaction, SqlValue, TransactError};
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_testing::{PostgresAdmin, Proxy, shared_postgres};
use uuid::Uuid;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

/// Makes commits slow: a deferred trigger waits for an advisory lock that the test holds.
const SLOW_COMMIT_SQL: &str = "
    CREATE TABLE record (n int);
    CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON record DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION pass()";

struct SlowCommitFixture {
    server: &'static PostgresAdmin,
    database: String,
    proxy: Proxy,
    store: PostgresStore,
}

impl SlowCommitFixture {
    async fn new() -> Self {
        let server = shared_postgres().unwrap();
        let url = server.create_database().unwrap();
        let (_, location) = url.split_once('@').unwrap();
        let (address, database) = location.split_once('/').unwrap();
        let proxy = Proxy::start(address.parse().unwrap()).unwrap();
        let through = url.replace(address, &proxy.address().to_string());
        server.query(database, SLOW_COMMIT_SQL).unwrap();
        let store = Postgres::open(&through, NOW).await.unwrap();
        Self { server, database: database.into(), proxy, store }
    }

    fn query_value(&self, sql: &str) -> String {
        self.server.query(&self.database, sql).unwrap()[0][0].clone().unwrap()
    }

    /// Waits until a unit of work is committing, and returns its backend pid.
    async fn wait_for_commit(&self) -> String {
        let find_waiting_commit = "SELECT coalesce(max(pid)::text, '') FROM pg_stat_activity \
             WHERE datname = current_database() AND query = 'COMMIT' AND wait_event_type = 'Lock'";
        let poll = async {
            loop {
                let pid = self.query_value(find_waiting_commit);
                if !pid.is_empty() {
                    return pid;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, poll).await.expect("it commits")
    }
}

fn insert_and_emit(tx: &mut dyn SqlTransaction) -> Result<Vec<NewEvent>, BoxError> {
    tx.execute("INSERT INTO record VALUES ($1)", &[1.into()])?;
    Ok(vec![NewEvent::new(HandlingKey::new("made")?)])
}

/// Holds the advisory lock that delays commits.
async fn take_commit_lock(
    bench: &SlowCommitFixture,
) -> (tokio_postgres::Client, tokio::task::JoinHandle<()>) {
    let url = bench.server.url(&bench.database);
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let connection_job = tokio::spawn(async move { drop(connection.await) });
    client.batch_execute("SELECT pg_advisory_lock(4711)").await.unwrap();
    (client, connection_job)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_reply_is_lost_is_detected() {
    let bench = SlowCommitFixture::new().await;
    let (gate, _connection_job) = take_commit_lock(&bench).await;
    let store = bench.store.clone();
    let unit = tokio::spawn(async move { store.transact(insert_and_emit).await });
    bench.wait_for_commit().await;
    bench.proxy.close_connections();
    gate.batch_execute("SELECT pg_advisory_unlock(4711)").await.unwrap();
    let receipts: Vec<Uuid> = tokio::time::timeout(TEST_TIMEOUT, unit).await.unwrap().unwrap().unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!(bench.query_value("SELECT count(*) FROM record"), "1");
    let journaled = async {
        while !matches!(bench.store.find_event_of_receipt(receipts[0]).await, Ok(Some(_))) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, journaled).await.expect("the event comes");
    bench.store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_commit_is_detected() {
    let bench = SlowCommitFixture::new().await;
    let (gate, _connection_job) = take_commit_lock(&bench).await;
    let store = bench.store.clone();
    let unit = tokio::spawn(async move { store.transact(insert_and_emit).await });
    let pid = bench.wait_for_commit().await;
    bench.proxy.close_connections();
    bench.query_value(&format!("SELECT pg_terminate_backend({pid})::text"));
    gate.batch_execute("SELECT pg_advisory_unlock(4711)").await.unwrap();
    let refused = tokio::time::timeout(TEST_TIMEOUT, unit).await.unwrap().unwrap();
    assert!(matches!(refused, Err(TransactError::Store(_))), "{refused:?}");
    assert_eq!(bench.query_value("SELECT count(*) FROM record"), "0");
    assert_eq!(bench.query_value("SELECT count(*) FROM pointsman.journal"), "0");
    bench.store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_of_work_is_durable_whatever_the_default_setting() {
    let bench = SlowCommitFixture::new().await;
    for (default, used) in [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")] {
        let database = &bench.database;
        bench
            .server
            .query(database, &format!("ALTER DATABASE {database} SET synchronous_commit = {default}"))
            .unwrap();
        // A connection has the default that was set when it was opened.
        let store = Postgres::open(&bench.server.url(database), NOW).await.unwrap();
        for _ in 0..2 {
            let found = Arc::new(Mutex::new(None));
            let found_in_transaction = found.clone();
            let unit = store.transact(move |tx| {
                let rows = tx.query("SELECT current_setting('synchronous_commit')", &[])?;
                *found_in_transaction.lock().unwrap() = rows[0].get(0).cloned();
                Ok(vec![])
            });
            unit.await.unwrap();
            assert_eq!(*found.lock().unwrap(), Some(SqlValue::from(used)), "{default}");
        }
        store.close();
    }
    bench.store.close();
}
