//! Differences between two stores are found.

use pointsman_store::transfer::Section;
use pointsman_store_conformance::moving::Lair as _;

use crate::store_location::{StoreKind, StoreLocation, run_command};

/// A field of a hash.
fn random_field(key: &str) -> String {
    run_command(&["HRANDFIELD", key]).text().unwrap()
}

#[tokio::test]
async fn every_changed_row_is_reported_in_its_table() {
    let (file, keys) = (StoreLocation::filled(StoreKind::Sqlite).await, StoreLocation::empty_redis());
    file.move_to(&keys).await.unwrap();
    assert_eq!(file.differences(&keys).await, []);
    let mut altered = Vec::new();
    for (section, hash) in [
        (Section::Texts, "pointsman:texts"),
        (Section::Rules, "pointsman:rules"),
        (Section::Files, "pointsman:files"),
        (Section::Schedules, "pointsman:schedules"),
        (Section::Objects, "pointsman:objects"),
        (Section::Deeds, "pointsman:deeds"),
    ] {
        let hash = keys.key(hash);
        let field = if section == Section::Texts { "routes".into() } else { random_field(&hash) };
        assert_eq!(run_command(&["HDEL", &hash, &field]).number(), Some(1), "{section}");
        altered.push(section);
        assert_eq!(file.differences(&keys).await, altered, "{section}");
    }
    let log = run_command(&["KEYS", &keys.key("sync_tasks#*:logs")]).texts().pop().unwrap();
    run_command(&["ZPOPMAX", &log]);
    altered.insert(altered.len() - 1, Section::Logs);
    assert_eq!(file.differences(&keys).await, altered);
}
