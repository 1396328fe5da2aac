//! Two stores that are not the same are told apart.

use pointsman_store::transfer::{Section, compare};

use crate::cut::filled;
use crate::lair::{Kind, Lair, apart, say};

fn differences(from: &Lair, to: &Lair) -> Vec<Section> {
    compare(&mut *from.source(), &mut *to.source(), &mut |_| {}).unwrap().differences()
}

/// A field of a hash.
fn any_field(key: &str) -> String {
    say(&["HRANDFIELD", key]).text().unwrap()
}

#[tokio::test]
async fn whatever_is_altered_is_found_in_its_section() {
    let (_movers, file) = filled(&[Kind::File]).await;
    let keys = Lair::keys();
    file.move_to(&keys).await.unwrap();
    apart(move || {
        assert_eq!(differences(&file, &keys), []);
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
            let found = differences(&file, &keys);
            assert_eq!(found, altered, "{section}");
        }
        let log = say(&["KEYS", &keys.key("sync_tasks#*:logs")]).texts().pop().unwrap();
        say(&["ZPOPMAX", &log]);
        altered.insert(altered.len() - 1, Section::Logs);
        assert_eq!(differences(&file, &keys), altered);
    })
    .await;
}
