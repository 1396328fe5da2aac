//! The doctor finds what is wrong with files, and leaves them as they were.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pointsman_core::store::{Emission, Journal, Store};
use pointsman_core::{HandlingKey, NewEvent, Timestamp};
use pointsman_store::finding::{Finding, Verdict};
use pointsman_store_sqlite::doctor::{Depth, examine};
use pointsman_store_sqlite::{Sqlite, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // A name that a URL would take for something else.
    let path = folder.path().join("a ?#%.db");
    (folder, path)
}

/// What was found under a name, which must be one thing.
fn of<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    let found: Vec<_> = findings.iter().filter(|finding| finding.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {findings:#?}");
    found[0]
}

fn wrong(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().filter(|finding| finding.verdict != Verdict::Ok).map(|finding| finding.name).collect()
}

async fn emit(store: &SqliteStore, count: usize) {
    let events = vec![NewEvent::of(HandlingKey::new("record").unwrap()); count];
    let (receipts, _) = store.append(vec![Emission { events, idempotency: None }], None, NOW).await.unwrap();
    assert!(receipts[0].is_ok());
}

/// The names and contents of all files there.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_healthy_file_has_no_fault_and_stays_as_it_is() {
    let (folder, path) = folder();
    let fresh = examine(&path, Depth::Quick);
    assert_eq!(wrong(&fresh), [""; 0], "{fresh:#?}");
    assert!(of(&fresh, "file").found.contains("not there yet") && contents(folder.path()).is_empty());

    let store = Sqlite::open(&path, NOW).unwrap();
    emit(&store, 100).await;
    store.close();
    drop(store);
    let before = contents(folder.path());
    for depth in [Depth::Quick, Depth::Deep] {
        let findings = examine(&path, depth);
        assert_eq!(wrong(&findings), [""; 0], "{findings:#?}");
        assert_eq!(of(&findings, "in use").found, "no");
        assert!(of(&findings, "layout").found.contains("the newest"));
        assert!(of(&findings, "contents").found.contains("sound"));
    }
    assert_eq!(contents(folder.path()), before, "nothing was changed, nothing was made");
}

#[tokio::test]
async fn a_file_in_use_is_read_beside_whoever_has_it() {
    let (_folder, path) = folder();
    let store = Sqlite::open(&path, NOW).unwrap();
    emit(&store, 100).await;
    let findings = examine(&path, Depth::Deep);
    assert_eq!(wrong(&findings), [""; 0], "{findings:#?}");
    let user = &of(&findings, "in use").found;
    assert!(user.contains(&format!("pid {}", std::process::id())), "{user}");
    emit(&store, 1).await;
    store.close();
}

#[tokio::test]
async fn what_a_killed_process_left_in_the_log_is_read() {
    let (folder, path) = folder();
    let store = Sqlite::open(&path, NOW).unwrap();
    emit(&store, 100).await;
    // A copy as a crash would leave it: with a log, and in use by nobody.
    let copy = folder.path().join("copy.db");
    for end in ["", "-wal"] {
        let named = |path: &Path| format!("{}{end}", path.display());
        std::fs::copy(named(&path), named(&copy)).unwrap();
    }
    store.close();
    let findings = examine(&copy, Depth::Quick);
    assert_eq!(wrong(&findings), [""; 0], "{findings:#?}");
    let store = Sqlite::open(&copy, NOW).unwrap();
    assert!(store.extent().await.unwrap().head.get() > 0);
    store.close();
}

#[test]
fn rights_that_are_too_wide_are_named() {
    let (_folder, path) = folder();
    Sqlite::open(&path, NOW).unwrap().close();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let findings = examine(&path, Depth::Quick);
    let rights = of(&findings, "rights");
    assert!(rights.verdict == Verdict::Warning && rights.found.contains("644"), "{rights:?}");
}

#[test]
fn layouts_are_told_apart() {
    let (_folder, path) = folder();
    Sqlite::open(&path, NOW).unwrap().close();
    let set = |layout: i64| {
        let conn = Connection::open(&path).unwrap();
        conn.execute("UPDATE pointsman_meta SET value = ?1 WHERE name = 'layout'", [layout]).unwrap();
    };
    set(99);
    let findings = examine(&path, Depth::Quick);
    let newer = of(&findings, "layout");
    assert!(newer.verdict == Verdict::Fault && newer.found.contains("newer version"), "{newer:?}");
    set(1);
    let findings = examine(&path, Depth::Quick);
    let older = of(&findings, "layout");
    assert!(older.verdict == Verdict::Ok && older.found.contains("brings it forward"), "{older:?}");
}

#[test]
fn what_is_not_ours_or_no_database_is_told() {
    let (folder, path) = folder();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE theirs (n)").unwrap();
    let findings = examine(&path, Depth::Quick);
    assert_eq!(of(&findings, "layout").verdict, Verdict::Warning, "{findings:#?}");

    let text = folder.path().join("text.db");
    std::fs::write(&text, "no database, but long enough to be taken for one").unwrap();
    assert_eq!(of(&examine(&text, Depth::Quick), "contents").verdict, Verdict::Fault);
    assert_eq!(of(&examine(folder.path(), Depth::Quick), "file").verdict, Verdict::Fault);
    let nowhere = folder.path().join("nowhere/a.db");
    assert_eq!(of(&examine(&nowhere, Depth::Quick), "file").verdict, Verdict::Fault);
}

#[tokio::test]
async fn a_damaged_file_is_a_fault() {
    let (_folder, path) = folder();
    let store = Sqlite::open(&path, NOW).unwrap();
    emit(&store, 5000).await;
    store.close();
    drop(store);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    for page in pages / 2..pages {
        file.write_all_at(&[0xff; 512], page * 4096).unwrap();
    }
    let findings = examine(&path, Depth::Quick);
    assert_eq!(of(&findings, "contents").verdict, Verdict::Fault, "{findings:#?}");
}

#[tokio::test]
async fn a_move_that_has_not_ended_is_a_fault() {
    let (_folder, path) = folder();
    Sqlite::open(&path, NOW).unwrap().close();
    let sql = "INSERT INTO pointsman_meta (name, value) VALUES ('move', '{}')";
    Connection::open(&path).unwrap().execute(sql, []).unwrap();
    let findings = examine(&path, Depth::Quick);
    assert_eq!(of(&findings, "move").verdict, Verdict::Fault, "{findings:#?}");
}
