//! Units of work whose connection breaks while they commit.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::store::Store;
use pointsman_core::{HandlingKey, NewEvent, Timestamp};
use pointsman_store::sql::{BoxError, Sql, TransactError, Value};
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_testing::{Admin, Proxy, shared};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);
const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

/// A database in which a commit takes a while: what is put off to its end waits for a lock that the test holds.
const SLOW: &str = "
    CREATE TABLE record (n int);
    CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON record DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION pass()";

struct Bench {
    server: &'static Admin,
    database: String,
    proxy: Proxy,
    store: PostgresStore,
}

impl Bench {
    async fn new() -> Self {
        let server = shared().unwrap();
        let url = server.create_database().unwrap();
        let (_, place) = url.split_once('@').unwrap();
        let (address, database) = place.split_once('/').unwrap();
        let proxy = Proxy::start(address.parse().unwrap()).unwrap();
        let through = url.replace(address, &proxy.address().to_string());
        server.query(database, SLOW).unwrap();
        let store = Postgres::open(&through, NOW).await.unwrap();
        Self { server, database: database.into(), proxy, store }
    }

    fn one(&self, sql: &str) -> String {
        self.server.query(&self.database, sql).unwrap()[0][0].clone().unwrap()
    }

    /// Waits until a unit stands before the gate, and answers which backend it is.
    async fn committing(&self) -> String {
        let at_the_gate = "SELECT coalesce(max(pid)::text, '') FROM pg_stat_activity \
             WHERE datname = current_database() AND query = 'COMMIT' AND wait_event_type = 'Lock'";
        let look = async {
            loop {
                let pid = self.one(at_the_gate);
                if !pid.is_empty() {
                    return pid;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.expect("it commits")
    }
}

fn write(tx: &mut dyn Sql) -> Result<Vec<NewEvent>, BoxError> {
    tx.execute("INSERT INTO record VALUES ($1)", &[1.into()])?;
    Ok(vec![NewEvent::of(HandlingKey::new("made")?)])
}

/// Somebody who holds the gate until told otherwise.
async fn holder(bench: &Bench) -> (tokio_postgres::Client, tokio::task::JoinHandle<()>) {
    let url = bench.server.url(&bench.database);
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let carrying = tokio::spawn(async move { drop(connection.await) });
    client.batch_execute("SELECT pg_advisory_lock(4711)").await.unwrap();
    (client, carrying)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_found_to_have_happened() {
    let bench = Bench::new().await;
    let (gate, _carrying) = holder(&bench).await;
    let store = bench.store.clone();
    let unit = tokio::spawn(async move { store.transact(write).await });
    bench.committing().await;
    bench.proxy.cut();
    gate.batch_execute("SELECT pg_advisory_unlock(4711)").await.unwrap();
    let receipts: Vec<Uuid> = tokio::time::timeout(PATIENCE, unit).await.unwrap().unwrap().unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!(bench.one("SELECT count(*) FROM record"), "1");
    let journaled = async {
        while !matches!(bench.store.event_of(receipts[0]).await, Ok(Some(_))) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, journaled).await.expect("the event comes");
    bench.store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_was_cut_short_is_found_not_to_have_happened() {
    let bench = Bench::new().await;
    let (gate, _carrying) = holder(&bench).await;
    let store = bench.store.clone();
    let unit = tokio::spawn(async move { store.transact(write).await });
    let pid = bench.committing().await;
    bench.proxy.cut();
    bench.one(&format!("SELECT pg_terminate_backend({pid})::text"));
    gate.batch_execute("SELECT pg_advisory_unlock(4711)").await.unwrap();
    let refused = tokio::time::timeout(PATIENCE, unit).await.unwrap().unwrap();
    assert!(matches!(refused, Err(TransactError::Store(_))), "{refused:?}");
    assert_eq!(bench.one("SELECT count(*) FROM record"), "0");
    assert_eq!(bench.one("SELECT count(*) FROM pointsman.journal"), "0");
    bench.store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_is_durable_when_it_is_answered_whatever_the_default() {
    let bench = Bench::new().await;
    for (default, used) in [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")] {
        let database = &bench.database;
        bench
            .server
            .query(database, &format!("ALTER DATABASE {database} SET synchronous_commit = {default}"))
            .unwrap();
        // Connections have what was set when they were made.
        let store = Postgres::open(&bench.server.url(database), NOW).await.unwrap();
        for _ in 0..2 {
            let found = Arc::new(Mutex::new(None));
            let seen = found.clone();
            let unit = store.transact(move |tx| {
                let rows = tx.query("SELECT current_setting('synchronous_commit')", &[])?;
                *seen.lock().unwrap() = rows[0].get(0).cloned();
                Ok(vec![])
            });
            unit.await.unwrap();
            assert_eq!(*found.lock().unwrap(), Some(Value::from(used)), "{default}");
        }
        store.close();
    }
    bench.store.close();
}
