//! Sources and targets that a copy rejects.

use pointsman_core::ErrorChain;
use pointsman_core::store::StoreError;
use pointsman_store::store_copy::{CopyEndpointError, CopyError};
use pointsman_store_conformance::copy::{StoreLocation as _, run_blocking};
use pointsman_store_conformance::fixture::START_TIME;
use pointsman_store_postgres::PgStoreCopy;
use pointsman_store_sqlite::{OpenError, SqliteStoreCopy};
use pointsman_testing::shared_postgres;
use tokio::runtime::Handle;

use crate::store_location::{LocationKind, TestStoreLocation};
use crate::test_store::{connect, emit_in_sql};

#[tokio::test]
async fn undrained_events_make_a_target_not_empty() {
    let (source, target) = (
        TestStoreLocation::create_with_sample_data(LocationKind::File).await,
        TestStoreLocation::create_empty(LocationKind::Database).await,
    );
    emit_in_sql(&connect(target.database_url()).await, "emit('a')").await;
    let error = source.copy_to(&target).await.unwrap_err();
    assert!(matches!(&error, CopyError::TargetNotEmpty(message) if message == "outbox (1)"), "{error}");
}

#[tokio::test]
async fn a_constraint_violation_is_not_retried() {
    let (source, target) = (
        TestStoreLocation::create_with_sample_data(LocationKind::File).await,
        TestStoreLocation::create_empty(LocationKind::Database).await,
    );
    let (runtime, url) = (Handle::current(), target.database_url().to_owned());
    let copied = source.copy_to_with_hook_before_page(&target, 1, move || {
        let insert_node_sql =
            "INSERT INTO pointsman.node (id, name, joined, last_heartbeat) OVERRIDING SYSTEM VALUE
                    VALUES (1, 'x', 0, 0)";
        runtime.block_on(async { connect(&url).await.batch_execute(insert_node_sql).await.unwrap() });
    });
    let error = copied.await.unwrap_err();
    assert!(
        matches!(&error, CopyError::WriteTarget(StoreError::Damaged(cause)) if cause.to_string().contains("node_pkey")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_file_opened_by_a_server_is_in_use() {
    let file = TestStoreLocation::create_empty(LocationKind::File).await;
    let store = file.open(START_TIME).await;
    let TestStoreLocation::File(path, _) = &file else { panic!() };
    let error = SqliteStoreCopy::open_source(path).unwrap_err();
    assert!(matches!(error, CopyEndpointError::OpenFailed(OpenError::InUse { .. })), "{error}");
    store.close();
    drop(store);
    SqliteStoreCopy::open_source(path).unwrap();
}

#[tokio::test]
async fn a_missing_source_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.db");
    assert!(matches!(SqliteStoreCopy::open_source(&path), Err(CopyEndpointError::NoStore(_))));
    assert!(!path.exists());
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    assert!(matches!(SqliteStoreCopy::open_source(&empty), Err(CopyEndpointError::NoStore(_))));
    let text = folder.path().join("text.db");
    std::fs::write(&text, "this is not a database, though it is long enough to be one".repeat(20)).unwrap();
    let error = SqliteStoreCopy::open_source(&text).unwrap_err();
    assert!(matches!(error, CopyEndpointError::OpenFailed(OpenError::NotADatabase { .. })), "{error}");

    let url = shared_postgres().unwrap().create_database().unwrap();
    let url_to_open = url.clone();
    let error = run_blocking(move || PgStoreCopy::open_source(&url_to_open).unwrap_err()).await;
    assert!(matches!(error, CopyEndpointError::NoStore(_)), "{error}");
    let client = connect(&url).await;
    let schemas = client.query("SELECT FROM pg_namespace WHERE nspname = 'pointsman'", &[]).await.unwrap();
    assert!(schemas.is_empty());
    client.batch_execute("CREATE SCHEMA pointsman; CREATE TABLE pointsman.theirs (n integer)").await.unwrap();
    let url_to_open = url.clone();
    let error = run_blocking(move || PgStoreCopy::open_target(&url_to_open).unwrap_err()).await;
    assert!(error.to_string().contains("is not Pointsman's"), "{error}");
}

#[test]
fn a_pooler_url_is_rejected_without_connecting() {
    let error =
        PgStoreCopy::open_source("postgres://ann:s3cret@127.0.0.1:1/bus?pooler=transaction").unwrap_err();
    assert!(matches!(error, CopyEndpointError::ConnectionPooler(_)), "{error}");
    assert!(!ErrorChain(&error).to_string().contains("s3cret"), "{error}");
}
