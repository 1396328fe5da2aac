//! Two stores that are not the same are told apart.

use pointsman_store::transfer::Section;
use pointsman_store_conformance::moving::Lair as _;

use crate::lair::{Kind, Lair, say};

/// A field of a hash.
fn any_field(key: &str) -> String {
    say(&["HRANDFIELD", key]).text().unwrap()
}

#[tokio::test]
async fn whatever_is_altered_is_found_in_its_section() {
    let (file, keys) = (Lair::filled(Kind::File).await, Lair::keys());
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
        let field = if section == Section::Texts { "routes".into() } else { any_field(&hash) };
        assert_eq!(say(&["HDEL", &hash, &field]).number(), Some(1), "{section}");
        altered.push(section);
        assert_eq!(file.differences(&keys).await, altered, "{section}");
    }
    let log = say(&["KEYS", &keys.key("sync_tasks#*:logs")]).texts().pop().unwrap();
    say(&["ZPOPMAX", &log]);
    altered.insert(altered.len() - 1, Section::Logs);
    assert_eq!(file.differences(&keys).await, altered);
}
