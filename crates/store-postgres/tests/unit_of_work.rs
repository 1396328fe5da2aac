//! Units of work whose connection is lost during the commit.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::store::Store;
use pointsman_core::{EventType, NewEvent, Timestamp};
use pointsman_store::sql::{BoxError, SqlTransaction, SqlValue, TransactError};
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_testing::{FaultProxy, PostgresAdmin, shared_postgres};
use uuid::Uuid;

const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

/// Makes commits wait: a deferred trigger waits for an advisory lock that the test has taken.
const BLOCK_COMMITS_SQL: &str = "
    CREATE TABLE record (n int);
    CREATE FUNCTION wait_for_test() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON record DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION wait_for_test()";

/// A store, connected through a proxy, whose commits wait for a lock of the test.
struct BlockedCommitFixture {
    server: &'static PostgresAdmin,
    database: String,
    proxy: FaultProxy,
    store: PostgresStore,
}

impl BlockedCommitFixture {
    async fn new() -> Self {
        let server = shared_postgres().unwrap();
        let url = server.create_database().unwrap();
        let (_, location) = url.split_once('@').unwrap();
        let (address, database) = location.split_once('/').unwrap();
        let proxy = FaultProxy::start(address.parse().unwrap()).unwrap();
        let proxied_url = url.replace(address, &proxy.address().to_string());
        server.query(database, BLOCK_COMMITS_SQL).unwrap();
        let store = Postgres::open(&proxied_url, NOW).await.unwrap();
        Self { server, database: database.into(), proxy, store }
    }

    fn query_value(&self, sql: &str) -> String {
        self.server.query(&self.database, sql).unwrap()[0][0].clone().unwrap()
    }

    /// Waits until a unit of work is committing, and returns its backend pid.
    async fn wait_until_commit_is_blocked(&self) -> String {
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
        tokio::time::timeout(TEST_TIMEOUT, poll).await.expect("a unit of work commits")
    }
}

fn insert_and_emit(tx: &mut dyn SqlTransaction) -> Result<Vec<NewEvent>, BoxError> {
    tx.execute("INSERT INTO record VALUES ($1)", &[1.into()])?;
    Ok(vec![NewEvent::new(EventType::new("recorded")?)])
}

/// Takes the advisory lock that delays commits.
async fn take_commit_lock(
    fixture: &BlockedCommitFixture,
) -> (tokio_postgres::Client, tokio::task::JoinHandle<()>) {
    let url = fixture.server.url(&fixture.database);
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let connection_job = tokio::spawn(async move { drop(connection.await) });
    client.batch_execute("SELECT pg_advisory_lock(4711)").await.unwrap();
    (client, connection_job)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_reply_is_lost_is_detected() {
    let fixture = BlockedCommitFixture::new().await;
    let (lock_holder, _connection_job) = take_commit_lock(&fixture).await;
    let store = fixture.store.clone();
    let unit_of_work = tokio::spawn(async move { store.database().transact(insert_and_emit).await });
    fixture.wait_until_commit_is_blocked().await;
    fixture.proxy.close_connections();
    lock_holder.batch_execute("SELECT pg_advisory_unlock(4711)").await.unwrap();
    let receipts: Vec<Uuid> =
        tokio::time::timeout(TEST_TIMEOUT, unit_of_work).await.unwrap().unwrap().unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!(fixture.query_value("SELECT count(*) FROM record"), "1");
    let journaled = async {
        while !matches!(fixture.store.database().find_event_of_receipt(receipts[0]).await, Ok(Some(_))) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, journaled).await.expect("the event is journaled");
    fixture.store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_commit_is_detected() {
    let fixture = BlockedCommitFixture::new().await;
    let (lock_holder, _connection_job) = take_commit_lock(&fixture).await;
    let store = fixture.store.clone();
    let unit_of_work = tokio::spawn(async move { store.database().transact(insert_and_emit).await });
    let pid = fixture.wait_until_commit_is_blocked().await;
    fixture.proxy.close_connections();
    fixture.query_value(&format!("SELECT pg_terminate_backend({pid})::text"));
    lock_holder.batch_execute("SELECT pg_advisory_unlock(4711)").await.unwrap();
    let result = tokio::time::timeout(TEST_TIMEOUT, unit_of_work).await.unwrap().unwrap();
    assert!(matches!(result, Err(TransactError::Store(_))), "{result:?}");
    assert_eq!(fixture.query_value("SELECT count(*) FROM record"), "0");
    assert_eq!(fixture.query_value("SELECT count(*) FROM pointsman.journal"), "0");
    fixture.store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_of_work_is_durable_whatever_the_default_of_synchronous_commit() {
    let fixture = BlockedCommitFixture::new().await;
    for (default_setting, effective_setting) in
        [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")]
    {
        let database = &fixture.database;
        fixture
            .server
            .query(database, &format!("ALTER DATABASE {database} SET synchronous_commit = {default_setting}"))
            .unwrap();
        // A connection uses the default that was set when it was opened.
        let store = Postgres::open(&fixture.server.url(database), NOW).await.unwrap();
        for _ in 0..2 {
            let found = Arc::new(Mutex::new(None));
            let found_in_transaction = found.clone();
            let unit_of_work = store.database().transact(move |tx| {
                let rows = tx.query("SELECT current_setting('synchronous_commit')", &[])?;
                *found_in_transaction.lock().unwrap() = rows[0].get(0).cloned();
                Ok(vec![])
            });
            unit_of_work.await.unwrap();
            assert_eq!(*found.lock().unwrap(), Some(SqlValue::from(effective_setting)), "{default_setting}");
        }
        store.close();
    }
    fixture.store.close();
}
