//! Differences between two stores are reported.

use pointsman_store::transfer::Section;
use pointsman_store_conformance::moving::Lair as _;

use crate::store_location::{LocationKind, StoreLocation};
use crate::test_store::connect;

#[tokio::test]
async fn every_changed_row_is_reported_in_its_table() {
    let (file, database) =
        (StoreLocation::filled(LocationKind::File).await, StoreLocation::empty(LocationKind::Database).await);
    file.move_to(&database).await.unwrap();
    assert_eq!(file.differences(&database).await, []);
    let client = connect(database.url()).await;
    for (section, change, undo) in [
        (
            Section::Logs,
            "UPDATE pointsman.log SET level = 1 - level",
            "UPDATE pointsman.log SET level = 1 - level",
        ),
        (
            Section::Journal,
            "UPDATE pointsman.journal SET value = value || ' '",
            "UPDATE pointsman.journal SET value = left(value, -1)",
        ),
        (
            Section::Counters,
            "UPDATE pointsman.version SET fences = fences + 1",
            "UPDATE pointsman.version SET fences = fences - 1",
        ),
        (
            Section::Objects,
            "UPDATE pointsman.object SET sent = sent || '\\x00'",
            "UPDATE pointsman.object SET sent = substr(sent, 1, length(sent) - 1)",
        ),
        (
            Section::Rules,
            "UPDATE pointsman.rule_note SET reason = reason || '!'",
            "UPDATE pointsman.rule_note SET reason = left(reason, -1)",
        ),
        (
            Section::Deeds,
            "INSERT INTO pointsman.deed (at, by, action, what, detail) VALUES (0, '', '', '', '')",
            "DELETE FROM pointsman.deed WHERE at = 0",
        ),
    ] {
        assert!(client.execute(change, &[]).await.unwrap() > 0, "{section}");
        assert_eq!(file.differences(&database).await, [section]);
        client.execute(undo, &[]).await.unwrap();
    }
    client.execute("DELETE FROM pointsman.fire", &[]).await.unwrap();
    client.execute("UPDATE pointsman.task SET rank = rank + 1", &[]).await.unwrap();
    assert_eq!(file.differences(&database).await, [Section::Tasks, Section::Fires]);
}
