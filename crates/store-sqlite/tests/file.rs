//! The file itself: locking, layouts, units of work, full disks and permissions.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

use std::sync::Arc;

use pointsman_core::journal::EventFilter;
use pointsman_core::store::{
    EmitBatch, Journal, JournalQuery, NewOrder, Orders, Registration, Registry, Store, StoreError,
};
use pointsman_core::{ErrorChain, EventId, EventType, NewEvent, Timestamp};
use pointsman_store::finding::FindingSeverity;
use pointsman_store::tables::MetaTable;
use pointsman_store_conformance::fixture::{NewOrderExt, RegistrationBuilder, new_order};
use pointsman_store_sqlite::doctor::{CheckDepth, examine};
use pointsman_store_sqlite::{OpenError, SqlTransaction, Sqlite, SqliteStore, TransactError};
use rusqlite::Connection;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn new_emit_batch(kind: &str) -> EmitBatch {
    EmitBatch { events: vec![NewEvent::new(EventType::new(kind).unwrap())], idempotency_key: None }
}

async fn read_event_types(store: &SqliteStore) -> Vec<String> {
    let query = JournalQuery {
        after_event_id: EventId::ZERO,
        up_to_event_id: None,
        filter: EventFilter::default(),
        limit: 1000,
        backwards: false,
    };
    store.read_events(query).await.unwrap().events.iter().map(|event| event.event_type.to_string()).collect()
}

#[tokio::test]
async fn opening_a_file_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let first_store = Sqlite::open(&path, NOW).unwrap();
    let refused = Sqlite::open(&path, NOW).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("in use by another process"), "{refused}");
    first_store.close();
    Sqlite::open(&path, NOW).unwrap().close();
}

#[tokio::test]
async fn a_newer_layout_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    Sqlite::open(&path, NOW).unwrap().close();
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE pointsman_meta SET text = 99 WHERE name = 'layout'", []).unwrap();
    drop(conn);
    let refused = Sqlite::open(&path, NOW).unwrap_err();
    assert!(matches!(refused, OpenError::NewerLayout { found: 99, .. }), "{refused}");
    assert!(refused.to_string().contains("newer version of Pointsman"), "{refused}");
    // The refused file must be unchanged.
    let conn = Connection::open(&path).unwrap();
    let layout: i64 =
        conn.query_row("SELECT text FROM pointsman_meta WHERE name = 'layout'", [], |r| r.get(0)).unwrap();
    assert_eq!(layout, 99);
}

#[tokio::test]
async fn a_negative_layout_is_refused_as_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    Sqlite::open(&path, NOW).unwrap().close();
    let conn = Connection::open(&path).unwrap();
    conn.execute("UPDATE pointsman_meta SET text = -1 WHERE name = 'layout'", []).unwrap();
    drop(conn);
    let refused = Sqlite::open(&path, NOW).unwrap_err();
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    let findings = examine(&path, CheckDepth::Quick);
    let layout = findings.iter().find(|finding| finding.name == "layout").unwrap();
    assert_eq!(layout.severity, FindingSeverity::Fault, "{layout:?}");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "These are my notes, not a database. ".repeat(200);
    std::fs::write(&path, &text).unwrap();
    let refused = Sqlite::open(&path, NOW).unwrap_err();
    assert!(matches!(refused, OpenError::NotADatabase { .. }), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let refused = Sqlite::open(folder.path().join("no/such/folder/a.db"), NOW).unwrap_err();
    assert!(matches!(refused, OpenError::Io { .. }), "{refused}");
}

#[tokio::test]
async fn a_program_can_keep_its_own_tables_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE article (id INTEGER PRIMARY KEY, title TEXT NOT NULL)").unwrap();
    drop(conn);
    let store = Sqlite::open(&path, NOW).unwrap();
    let work = |tx: &mut dyn SqlTransaction| {
        tx.execute("INSERT INTO article (title) VALUES (?1)", &["Hello".into()])?;
        Ok(vec![NewEvent::new(EventType::new("article.written")?)])
    };
    store.database().transact(work, NOW).await.unwrap();
    assert_eq!(read_event_types(&store).await, ["article.written"]);
    store.close();
    let conn = Connection::open(&path).unwrap();
    let title: String = conn.query_row("SELECT title FROM article", [], |r| r.get(0)).unwrap();
    assert_eq!(title, "Hello");
}

#[tokio::test]
async fn a_failed_unit_of_work_is_rolled_back_and_others_commit() {
    let store = Sqlite::in_memory(NOW).unwrap();
    let create_table = |tx: &mut dyn SqlTransaction| {
        tx.execute("CREATE TABLE t (n INTEGER UNIQUE)", &[])?;
        Ok(vec![])
    };
    store.database().transact(create_table, NOW).await.unwrap();
    let failing = |tx: &mut dyn SqlTransaction| {
        tx.execute("INSERT INTO t VALUES (1)", &[])?;
        tx.execute("INSERT INTO t VALUES (1)", &[])?;
        Ok(vec![NewEvent::new(EventType::new("rolled.back")?)])
    };
    let panicking = |tx: &mut dyn SqlTransaction| {
        tx.execute("INSERT INTO t VALUES (2)", &[])?;
        panic!("on purpose")
    };
    // These four jobs share transactions.
    let (first_append, failed, panicked, second_append) = tokio::join!(
        store.append(vec![new_emit_batch("a")], None, NOW),
        store.database().transact(failing, NOW),
        store.database().transact(panicking, NOW),
        store.append(vec![new_emit_batch("b")], None, NOW),
    );
    assert!(matches!(failed, Err(TransactError::WorkFailed(_))), "{failed:?}");
    assert!(ErrorChain(&panicked.unwrap_err()).to_string().contains("on purpose"));
    first_append.unwrap();
    second_append.unwrap();
    assert_eq!(read_event_types(&store).await, ["a", "b"]);
    let count = |tx: &mut dyn SqlTransaction| {
        assert_eq!(tx.query("SELECT count(*) FROM t", &[])?[0].get(0), Some(&0.into()));
        Ok(vec![])
    };
    store.database().transact(count, NOW).await.unwrap();
}

#[tokio::test]
async fn a_unit_of_work_may_not_change_store_tables_or_the_transaction() {
    let store = Sqlite::in_memory(NOW).unwrap();
    let create_table = |tx: &mut dyn SqlTransaction| {
        tx.execute("CREATE TABLE t (n INTEGER UNIQUE)", &[])?;
        Ok(vec![])
    };
    store.database().transact(create_table, NOW).await.unwrap();
    for sql in [
        "/* x */ COMMIT",
        "DROP TABLE pointsman_meta",
        "DELETE FROM Pointsman_Journal",
        "UPDATE \"pointsman_task\" SET phase = 3",
        "PRAGMA synchronous = OFF",
        "INSERT OR ROLLBACK INTO t VALUES (1)",
    ] {
        let work = move |tx: &mut dyn SqlTransaction| {
            tx.execute(sql, &[])?;
            Ok(vec![])
        };
        let refused = store.database().transact(work, NOW).await;
        assert!(matches!(refused, Err(TransactError::WorkFailed(_))), "{sql}: {refused:?}");
    }
    store.append(vec![new_emit_batch("store.still.works")], None, NOW).await.unwrap();
    assert_eq!(read_event_types(&store).await, ["store.still.works"]);
}

/// A table that the program has created outside a unit of work can have a conflict clause that rolls the transaction
/// back.
#[tokio::test]
async fn a_unit_of_work_writes_nothing_after_its_transaction_was_rolled_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE t (n INTEGER UNIQUE ON CONFLICT ROLLBACK); INSERT INTO t VALUES (1)")
        .unwrap();
    drop(conn);
    let store = Sqlite::open(&path, NOW).unwrap();
    let escaping = |tx: &mut dyn SqlTransaction| {
        assert!(tx.execute("INSERT INTO t VALUES (1)", &[]).is_err());
        tx.execute("INSERT INTO t VALUES (2)", &[])?;
        Ok(vec![NewEvent::new(EventType::new("rolled.back")?)])
    };
    assert!(store.database().transact(escaping, NOW).await.is_err());
    store.append(vec![new_emit_batch("after")], None, NOW).await.unwrap();
    assert_eq!(read_event_types(&store).await, ["after"]);
    store.close();
    let conn = Connection::open(&path).unwrap();
    let rows: i64 = conn.query_row("SELECT count(*) FROM t", [], |r| r.get(0)).unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn writes_fail_at_a_limit_of_the_file_size_and_succeed_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Sqlite::open(&path, NOW).unwrap();
    store.register_definitions(Registration::default(), NOW).await.unwrap();
    store.append(vec![new_emit_batch("before")], None, NOW).await.unwrap();
    // SQLite's own limit on the number of pages behaves like a full disk.
    store.database().limit_file_pages(Some(64)).await.unwrap();
    let mut refused = None;
    for _ in 0..200 {
        let mut big_batch = new_emit_batch("big");
        big_batch.events[0].value =
            pointsman_core::Json::parse(&format!("\"{}\"", "x".repeat(20_000))).unwrap();
        if let Err(error) = store.append(vec![big_batch], None, NOW).await {
            refused = Some(error);
            break;
        }
    }
    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
    let acknowledged = read_event_types(&store).await.len();
    store.database().limit_file_pages(None).await.unwrap();
    let (receipts, _) = store.append(vec![new_emit_batch("after")], None, NOW).await.unwrap();
    let id = receipts[0].as_ref().unwrap().events[0].id;
    assert_eq!(read_event_types(&store).await.len(), acknowledged + 1);
    assert!(id.timestamp() >= NOW, "the clock did not go back: {id}");
    store.close();
    let reopened = Sqlite::open(&path, NOW).unwrap();
    assert_eq!(read_event_types(&reopened).await.last().map(String::as_str), Some("after"));
}

/// A small disk in memory. Dropping it unmounts it.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    /// Mounts the disk; returns None if this user may not mount.
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m,mode=0700", "tmpfs"])
            .arg(folder.path())
            .output();
        match mount {
            Ok(done) if done.status.success() => Some(Self(folder)),
            refused => {
                eprintln!("skipped, because a tmpfs cannot be mounted: {refused:?}");
                None
            }
        }
    }

    /// Uses up all free space with a ballast file, and returns its path.
    fn fill_free_space(&self) -> std::path::PathBuf {
        let ballast = self.0.path().join("ballast");
        let mut file = std::fs::File::create(&ballast).unwrap();
        while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|written| written > 0) {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("--lazy").arg(self.0.path()).output();
    }
}

#[tokio::test]
async fn opening_on_a_full_disk_reports_disk_full() {
    let Some(disk) = SmallDisk::mount() else { return };
    let path = disk.0.path().join("a.db");
    let store = Sqlite::open(&path, NOW).unwrap();
    store.register_definitions(Registration::default(), NOW).await.unwrap();
    store.join_node("node", NOW).await.unwrap();
    store.append(vec![new_emit_batch("before")], None, NOW).await.unwrap();
    let files_before_close: Vec<_> = ["a.db", "a.db-wal", "a.db-shm"]
        .into_iter()
        .map(|name| (name, std::fs::read(disk.0.path().join(name)).unwrap_or_default()))
        .collect();
    store.close();
    drop(store);
    // The disk is full after the store was closed, and then after a crash that left the WAL behind.
    for after_crash in [false, true] {
        if after_crash {
            for (name, bytes) in &files_before_close {
                std::fs::write(disk.0.path().join(name), bytes).unwrap();
            }
        }
        let ballast = disk.fill_free_space();
        let error = Sqlite::open(&path, NOW).expect_err("the disk has no free space");
        let message = error.to_string();
        assert!(matches!(error, OpenError::DiskFull { .. }), "{after_crash}: {message}: {error:?}");
        assert!(message.contains("disk is full; free some space and start again"), "{message}");
        std::fs::remove_file(ballast).unwrap();
        let store = Sqlite::open(&path, NOW).unwrap();
        assert_eq!(read_event_types(&store).await.first().map(String::as_str), Some("before"));
        store.close();
    }
}

#[tokio::test]
async fn a_closed_store_returns_closed_errors() {
    let store = Arc::new(Sqlite::in_memory(NOW).unwrap());
    store.close();
    assert!(matches!(store.read_journal_range().await, Err(StoreError::Closed)));
    assert!(matches!(store.append(vec![new_emit_batch("a")], None, NOW).await, Err(StoreError::Closed)));
}

#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path().join("a.db"), NOW).unwrap();
    store.append(vec![new_emit_batch("secret")], None, NOW).await.unwrap();
    for name in ["a.db", "a.db-wal", "a.db-shm", "a.db.lock"] {
        let mode = std::fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn events_of_an_object_are_read_up_to_a_total_size() {
    let store = Sqlite::in_memory(NOW).unwrap();
    let key = pointsman_core::ObjectKey::new("big").unwrap();
    for _ in 0..20 {
        let mut big_batch = new_emit_batch("a");
        big_batch.events[0].key = Some(key.clone());
        big_batch.events[0].value =
            pointsman_core::Json::parse(&format!("\"{}\"", "x".repeat(1 << 20))).unwrap();
        store.append(vec![big_batch], None, NOW).await.unwrap();
    }
    let object = store.read_object(&Default::default(), &key, 1000).await.unwrap().unwrap();
    assert!((1..20).contains(&object.events.len()), "{}", object.events.len());
    assert_eq!(object.events[0].id, object.last_event_id, "the newest event is first");
}

#[tokio::test]
async fn dropping_a_store_releases_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    drop(Sqlite::open(&path, NOW).unwrap());
    // The lock may be released a moment later; opening waits for that.
    Sqlite::open(&path, NOW).unwrap().close();
}

/// Records of such orders would fill the store, and have no use: no request can repeat a generated id.
#[tokio::test]
async fn ended_orders_with_generated_ids_leave_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.db");
    let store = Sqlite::open(&path, NOW).unwrap();
    let registration =
        RegistrationBuilder::default().chain("/pay", "a=first>done done").chain_route("paid", "/pay");
    store.register_definitions(registration.build(), NOW).await.unwrap();
    let order_at_end_node = |id: &str| new_order(id).starting_at_chain_node("done");
    let generated = NewOrder { id: None, ..order_at_end_node("/pay,x") };
    let orders = vec![order_at_end_node("/pay,given"), generated.clone(), generated];
    store.add_orders(orders.into(), NOW).await.unwrap().unwrap();
    store.close();
    let count = "SELECT count(*) FROM pointsman_ended_order";
    let records: i64 = Connection::open(&path).unwrap().query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(records, 1);
}

/// A panic in one transaction does not end the writer, and nothing of that transaction is stored.
#[tokio::test]
async fn a_transaction_that_panics_is_rolled_back_and_the_store_continues() {
    let store = Sqlite::in_memory(NOW).unwrap();
    let panicking = store.writer().run_in_transaction(|txn| -> pointsman_store::error::TableResult<()> {
        txn.tables.write_named_text("rolled_back", "text")?;
        panic!("a fault in a transaction");
    });
    let error = ErrorChain(&panicking.await.unwrap_err()).to_string();
    assert!(error.contains("the transaction panicked: a fault in a transaction"), "{error}");
    let rolled_back_text =
        store.writer().run_in_transaction(|txn| txn.tables.read_named_text("rolled_back")).await.unwrap();
    assert_eq!(rolled_back_text, None);
    let stored = store.writer().get_or_init_named_text("committed", "text").await.unwrap();
    assert_eq!(stored, "text");
}
