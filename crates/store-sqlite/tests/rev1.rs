#![allow(clippy::unwrap_used)]
use pointsman_core::store::{Emission, Journal};
use pointsman_core::{HandlingKey, NewEvent, Timestamp};
use pointsman_store_sqlite::{SqliteStore, Tx};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
fn emission(kind: &str) -> Emission {
    Emission { events: vec![NewEvent::of(HandlingKey::new(kind).unwrap())], idempotency: None }
}
async fn run(store: &SqliteStore, sql: &'static str) -> Result<(), String> {
    store.transact(move |tx: &mut Tx<'_>| { tx.execute(sql, &[])?; Ok(vec![]) }, NOW).await.map(|_| ()).map_err(|e| format!("{e:?}"))
}
async fn count(store: &SqliteStore) -> i64 {
    let (s, mut r) = tokio::sync::mpsc::unbounded_channel();
    store.transact(move |tx: &mut Tx<'_>| {
        let rows = tx.query("SELECT count(*) FROM t", &[])?;
        if let Some(pointsman_store_sqlite::Value::Integer(n)) = rows[0].get(0) { s.send(*n).unwrap(); }
        Ok(vec![]) }, NOW).await.unwrap();
    r.recv().await.unwrap()
}

#[tokio::test]
async fn or_rollback() {
    let store = SqliteStore::in_memory(NOW).unwrap();
    run(&store, "CREATE TABLE t (n INTEGER UNIQUE)").await.unwrap();
    run(&store, "INSERT INTO t VALUES (1)").await.unwrap();
    let escaping = |tx: &mut Tx<'_>| {
        let _ = tx.execute("INSERT OR ROLLBACK INTO t VALUES (1)", &[]);
        tx.execute("INSERT INTO t VALUES (2)", &[])?;
        Err("gave up".into())
    };
    let (good, failed, also) = tokio::join!(
        store.append(vec![emission("a")], None, NOW),
        store.transact(escaping, NOW),
        store.append(vec![emission("b")], None, NOW),
    );
    println!("good {good:?}\nfailed {failed:?}\nalso {also:?}");
    println!("rows {}", count(&store).await);
    assert_eq!(count(&store).await, 1, "escaped");
    good.unwrap(); also.unwrap();
}

#[tokio::test]
async fn deferred_fk() {
    let store = SqliteStore::in_memory(NOW).unwrap();
    run(&store, "CREATE TABLE p (id INTEGER PRIMARY KEY)").await.unwrap();
    run(&store, "CREATE TABLE t (p INTEGER REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)").await.unwrap();
    let bad = |tx: &mut Tx<'_>| { tx.execute("INSERT INTO t VALUES (7)", &[])?; Ok(vec![]) };
    let (good, failed, also) = tokio::join!(
        store.append(vec![emission("a")], None, NOW),
        store.transact(bad, NOW),
        store.append(vec![emission("b")], None, NOW),
    );
    println!("good {good:?}\nfailed {failed:?}\nalso {also:?}");
    good.unwrap(); also.unwrap();
    assert!(failed.is_err());
}

#[tokio::test]
async fn two_statements() {
    let store = SqliteStore::in_memory(NOW).unwrap();
    run(&store, "CREATE TABLE t (n INTEGER UNIQUE)").await.unwrap();
    let r = run(&store, "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)").await;
    println!("{r:?} {}", count(&store).await);
    assert!(r.is_err() || count(&store).await == 2, "half of it was done, and Ok");
}
