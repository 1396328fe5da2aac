//! Differences between two stores are reported.

use pointsman_store::store_copy::TableKind;
use pointsman_store_conformance::copy::StoreLocation as _;

use crate::store_location::{LocationKind, TestStoreLocation};
use crate::test_store::connect;

#[tokio::test]
async fn every_changed_row_is_reported_in_its_table() {
    let (file, database) = (
        TestStoreLocation::create_with_sample_data(LocationKind::File).await,
        TestStoreLocation::create_empty(LocationKind::Database).await,
    );
    file.copy_to(&database).await.unwrap();
    assert_eq!(file.find_differing_tables(&database).await, []);
    let client = connect(database.database_url()).await;
    for (table_kind, change, undo) in [
        (
            TableKind::Logs,
            "UPDATE pointsman.log SET level = 1 - level",
            "UPDATE pointsman.log SET level = 1 - level",
        ),
        (
            TableKind::Journal,
            "UPDATE pointsman.journal SET value = value || ' '",
            "UPDATE pointsman.journal SET value = left(value, -1)",
        ),
        (
            TableKind::Counters,
            "UPDATE pointsman.commit_version SET last_fence = last_fence + 1",
            "UPDATE pointsman.commit_version SET last_fence = last_fence - 1",
        ),
        (
            TableKind::Objects,
            "UPDATE pointsman.object SET last_sent = last_sent || '\\x00'",
            "UPDATE pointsman.object SET last_sent = substr(last_sent, 1, length(last_sent) - 1)",
        ),
        (
            TableKind::Rules,
            "UPDATE pointsman.rule_author SET reason = reason || '!'",
            "UPDATE pointsman.rule_author SET reason = left(reason, -1)",
        ),
        (
            TableKind::AuditEntries,
            "INSERT INTO pointsman.audit_entry (at, by, action, what, detail) VALUES (0, '', '', '', '')",
            "DELETE FROM pointsman.audit_entry WHERE at = 0",
        ),
    ] {
        assert!(client.execute(change, &[]).await.unwrap() > 0, "{table_kind}");
        assert_eq!(file.find_differing_tables(&database).await, [table_kind]);
        client.execute(undo, &[]).await.unwrap();
    }
    client.execute("DELETE FROM pointsman.fire", &[]).await.unwrap();
    client.execute("UPDATE pointsman.task SET rank = rank + 1", &[]).await.unwrap();
    assert_eq!(file.find_differing_tables(&database).await, [TableKind::Tasks, TableKind::Fires]);
}
