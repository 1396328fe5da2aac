//! The doctor finds problems of files, and does not change the files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pointsman_core::store::{EmitBatch, Journal, Store};
use pointsman_core::{EventType, NewEvent, Timestamp};
use pointsman_store::finding::{Finding, FindingSeverity};
use pointsman_store_sqlite::doctor::{CheckDepth, examine, examine_with_latest_layout};
use pointsman_store_sqlite::{MIGRATIONS, Sqlite, SqliteStore};
use rusqlite::Connection;
use tempfile::TempDir;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn new_database_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // The name has characters with a meaning in URIs, because SQLite opens the file by a URI.
    let path = folder.path().join("a ?#%.db");
    (folder, path)
}

/// Returns the one finding with a name.
fn find_finding<'a>(findings: &'a [Finding], name: &str) -> &'a Finding {
    let found: Vec<_> = findings.iter().filter(|finding| finding.name == name).collect();
    assert_eq!(found.len(), 1, "{name}: {findings:#?}");
    found[0]
}

fn problem_names(findings: &[Finding]) -> Vec<&'static str> {
    findings
        .iter()
        .filter(|finding| finding.severity != FindingSeverity::Ok)
        .map(|finding| finding.name)
        .collect()
}

async fn emit_events(store: &SqliteStore, count: usize) {
    let events = vec![NewEvent::new(EventType::new("record").unwrap()); count];
    let (receipts, _) =
        store.append(vec![EmitBatch { events, idempotency_key: None }], None, NOW).await.unwrap();
    assert!(receipts[0].is_ok());
}

/// Returns the names and contents of all files in a folder.
fn read_all_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_healthy_file_has_no_problems_and_stays_unchanged() {
    let (folder, path) = new_database_path();
    let findings_without_file = examine(&path, CheckDepth::Quick);
    assert_eq!(problem_names(&findings_without_file), [""; 0], "{findings_without_file:#?}");
    assert!(
        find_finding(&findings_without_file, "file").observation.contains("does not exist yet")
            && read_all_files(folder.path()).is_empty()
    );

    let store = Sqlite::open(&path, NOW).unwrap();
    emit_events(&store, 100).await;
    store.close();
    drop(store);
    let before = read_all_files(folder.path());
    for depth in [CheckDepth::Quick, CheckDepth::Deep] {
        let findings = examine(&path, depth);
        assert_eq!(problem_names(&findings), [""; 0], "{findings:#?}");
        assert_eq!(find_finding(&findings, "in use").observation, "no");
        assert!(find_finding(&findings, "layout").observation.contains("the newest"));
        assert!(find_finding(&findings, "contents").observation.contains("sound"));
    }
    assert_eq!(read_all_files(folder.path()), before, "nothing was changed or created");
}

#[tokio::test]
async fn a_file_in_use_by_a_server_is_checked() {
    let (_folder, path) = new_database_path();
    let store = Sqlite::open(&path, NOW).unwrap();
    emit_events(&store, 100).await;
    let findings = examine(&path, CheckDepth::Deep);
    assert_eq!(problem_names(&findings), [""; 0], "{findings:#?}");
    let in_use = &find_finding(&findings, "in use").observation;
    assert!(in_use.contains(&format!("pid {}", std::process::id())), "{in_use}");
    emit_events(&store, 1).await;
    store.close();
}

#[tokio::test]
async fn a_file_with_the_wal_of_a_crash_has_no_problems() {
    let (folder, path) = new_database_path();
    let store = Sqlite::open(&path, NOW).unwrap();
    emit_events(&store, 100).await;
    // A copy of the files is as a crash would leave them: with a WAL, and not in use.
    let copy = folder.path().join("copy.db");
    for suffix in ["", "-wal"] {
        let with_suffix = |path: &Path| format!("{}{suffix}", path.display());
        std::fs::copy(with_suffix(&path), with_suffix(&copy)).unwrap();
    }
    store.close();
    let findings = examine(&copy, CheckDepth::Quick);
    assert_eq!(problem_names(&findings), [""; 0], "{findings:#?}");
    let store = Sqlite::open(&copy, NOW).unwrap();
    assert!(store.read_journal_range().await.unwrap().newest_event_id.get() > 0);
    store.close();
}

#[test]
fn permissions_that_are_too_wide_are_a_warning() {
    let (_folder, path) = new_database_path();
    Sqlite::open(&path, NOW).unwrap().close();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let findings = examine(&path, CheckDepth::Quick);
    let rights = find_finding(&findings, "rights");
    assert!(rights.severity == FindingSeverity::Warning && rights.observation.contains("644"), "{rights:?}");
}

#[test]
fn newer_and_older_layouts_are_reported() {
    let (_folder, path) = new_database_path();
    Sqlite::open(&path, NOW).unwrap().close();
    let set_layout = |layout: i64| {
        let conn = Connection::open(&path).unwrap();
        conn.execute("UPDATE pointsman_meta SET text = ?1 WHERE name = 'layout'", [layout]).unwrap();
    };
    set_layout(99);
    let findings = examine(&path, CheckDepth::Quick);
    let newer = find_finding(&findings, "layout");
    assert!(
        newer.severity == FindingSeverity::Fault && newer.observation.contains("newer version"),
        "{newer:?}"
    );
    let this_layout = MIGRATIONS.len() as i64;
    set_layout(this_layout);
    let findings = examine_with_latest_layout(&path, CheckDepth::Quick, this_layout + 1);
    let older = find_finding(&findings, "layout");
    let advice = format!("{this_layout}; the next start of this version migrates it to {}", this_layout + 1);
    assert!(older.severity == FindingSeverity::Ok && older.observation == advice, "{older:?}");
}

#[test]
fn foreign_and_invalid_files_are_reported() {
    let (folder, path) = new_database_path();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE table_of_other_program (n)").unwrap();
    let findings = examine(&path, CheckDepth::Quick);
    assert_eq!(find_finding(&findings, "layout").severity, FindingSeverity::Warning, "{findings:#?}");

    let text_file = folder.path().join("text.db");
    std::fs::write(&text_file, "no database, but long enough to be taken for one").unwrap();
    assert_eq!(
        find_finding(&examine(&text_file, CheckDepth::Quick), "contents").severity,
        FindingSeverity::Fault
    );
    assert_eq!(
        find_finding(&examine(folder.path(), CheckDepth::Quick), "file").severity,
        FindingSeverity::Fault
    );
    let path_in_missing_folder = folder.path().join("nowhere/a.db");
    assert_eq!(
        find_finding(&examine(&path_in_missing_folder, CheckDepth::Quick), "file").severity,
        FindingSeverity::Fault
    );
}

#[tokio::test]
async fn a_damaged_file_is_a_fault() {
    let (_folder, path) = new_database_path();
    let store = Sqlite::open(&path, NOW).unwrap();
    emit_events(&store, 5000).await;
    store.close();
    drop(store);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    for page in pages / 2..pages {
        file.write_all_at(&[0xff; 512], page * 4096).unwrap();
    }
    let findings = examine(&path, CheckDepth::Quick);
    assert_eq!(find_finding(&findings, "contents").severity, FindingSeverity::Fault, "{findings:#?}");
}

#[tokio::test]
async fn an_unfinished_store_copy_is_a_fault() {
    let (_folder, path) = new_database_path();
    Sqlite::open(&path, NOW).unwrap().close();
    let sql = "INSERT INTO pointsman_meta (name, text) VALUES ('move', '{}')";
    Connection::open(&path).unwrap().execute(sql, []).unwrap();
    let findings = examine(&path, CheckDepth::Quick);
    assert_eq!(find_finding(&findings, "move").severity, FindingSeverity::Fault, "{findings:#?}");
}
