//! Differences between two stores are found.

use pointsman_store::store_copy::TableKind;
use pointsman_store_conformance::copy::StoreLocation as _;

use crate::store_location::{StoreKind, TestStoreLocation, run_redis_command};

/// Returns a random field of a hash.
fn random_field(key: &str) -> String {
    run_redis_command(&["HRANDFIELD", key]).text().unwrap()
}

#[tokio::test]
async fn every_changed_row_is_reported_in_its_table() {
    let (file, keys) = (
        TestStoreLocation::create_with_sample_data(StoreKind::Sqlite).await,
        TestStoreLocation::empty_redis(),
    );
    file.copy_to(&keys).await.unwrap();
    assert_eq!(file.find_differing_tables(&keys).await, []);
    let mut changed_tables = Vec::new();
    for (table, hash) in [
        (TableKind::NamedTexts, "pointsman:texts"),
        (TableKind::Rules, "pointsman:rules"),
        (TableKind::FileDigests, "pointsman:file-digests"),
        (TableKind::ScheduleProgress, "pointsman:schedules"),
        (TableKind::Objects, "pointsman:objects"),
        (TableKind::AuditEntries, "pointsman:audit-entries"),
    ] {
        let hash = keys.prefixed_key(hash);
        let field = if table == TableKind::NamedTexts { "routes".into() } else { random_field(&hash) };
        assert_eq!(run_redis_command(&["HDEL", &hash, &field]).number(), Some(1), "{table}");
        changed_tables.push(table);
        assert_eq!(file.find_differing_tables(&keys).await, changed_tables, "{table}");
    }
    let log = run_redis_command(&["KEYS", &keys.prefixed_key("sync_tasks#*:logs")]).texts().pop().unwrap();
    run_redis_command(&["ZPOPMAX", &log]);
    changed_tables.insert(changed_tables.len() - 1, TableKind::Logs);
    assert_eq!(file.find_differing_tables(&keys).await, changed_tables);
}
