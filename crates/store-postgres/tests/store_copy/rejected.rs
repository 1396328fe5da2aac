//! Sources and targets that a copy rejects.

use pointsman_core::store::StoreError;
use pointsman_store::transfer::{MoveError, NotReady};
use pointsman_store_conformance::moving::{Lair as _, apart};
use pointsman_store_conformance::world::BEGINNING;
use pointsman_store_postgres::PgStoreCopy;
use pointsman_store_sqlite::{OpenError, SqliteMove};
use pointsman_testing::shared;
use tokio::runtime::Handle;

use crate::store_location::{LocationKind, StoreLocation};
use crate::test_store::{connect, emit};

#[tokio::test]
async fn undrained_events_make_a_target_not_empty() {
    let (source, target) =
        (StoreLocation::filled(LocationKind::File).await, StoreLocation::empty(LocationKind::Database).await);
    emit(&connect(target.url()).await, "emit('a')").await;
    let error = source.move_to(&target).await.unwrap_err();
    assert!(matches!(&error, MoveError::NotEmpty(what) if what == "outbox (1)"), "{error}");
}

#[tokio::test]
async fn a_constraint_violation_is_not_retried() {
    let (source, target) =
        (StoreLocation::filled(LocationKind::File).await, StoreLocation::empty(LocationKind::Database).await);
    let (runtime, url) = (Handle::current(), target.url().to_owned());
    let moved = source.move_to_while(&target, 1, move || {
        let node = "INSERT INTO pointsman.node (id, name, joined, heard) OVERRIDING SYSTEM VALUE
                    VALUES (1, 'x', 0, 0)";
        runtime.block_on(async { connect(&url).await.batch_execute(node).await.unwrap() });
    });
    let error = moved.await.unwrap_err();
    assert!(
        matches!(&error, MoveError::Target(StoreError::Damaged(what)) if what.contains("node_pkey")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_file_opened_by_a_server_is_in_use() {
    let file = StoreLocation::empty(LocationKind::File).await;
    let store = file.open(BEGINNING).await;
    let StoreLocation::File(path, _) = &file else { panic!() };
    let error = SqliteMove::source(path).unwrap_err();
    assert!(matches!(error, NotReady::Unopened(OpenError::InUse { .. })), "{error}");
    store.close();
    drop(store);
    SqliteMove::source(path).unwrap();
}

#[tokio::test]
async fn a_missing_source_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    assert!(matches!(SqliteMove::source(&path), Err(NotReady::NoStore(_))));
    assert!(!path.exists());
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(SqliteMove::source(&empty), Err(NotReady::NoStore(_))));
    let text = folder.path().join("text.db");
    std::fs::write(&text, "this is not a database, though it is long enough to be one".repeat(20)).unwrap();
    let error = SqliteMove::source(&text).unwrap_err();
    assert!(matches!(error, NotReady::Unopened(OpenError::NotADatabase { .. })), "{error}");

    let url = shared().unwrap().create_database().unwrap();
    let asked = url.clone();
    let error = apart(move || PgStoreCopy::source(&asked).unwrap_err()).await;
    assert!(matches!(error, NotReady::NoStore(_)), "{error}");
    let client = connect(&url).await;
    let schemas = client.query("SELECT FROM pg_namespace WHERE nspname = 'pointsman'", &[]).await.unwrap();
    assert!(schemas.is_empty());
    client.batch_execute("CREATE SCHEMA pointsman; CREATE TABLE pointsman.theirs (n integer)").await.unwrap();
    let asked = url.clone();
    let error = apart(move || PgStoreCopy::target(&asked).unwrap_err()).await;
    assert!(error.to_string().contains("is not Pointsman's"), "{error}");
}

#[test]
fn a_pooler_url_is_rejected_without_connecting() {
    let error = PgStoreCopy::source("postgres://ann:s3cret@127.0.0.1:1/bus?pooler=transaction").unwrap_err();
    assert!(matches!(error, NotReady::Pooled(_)), "{error}");
    assert!(!error.to_string().contains("s3cret"), "{error}");
}
