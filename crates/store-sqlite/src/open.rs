//! Opens the file: the lock, the settings that durability rests on, and the version of the layout.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use pointsman_store::expand_sql;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::error::OpenError;

/// The migrations, oldest first. A file of layout N needs all migrations after the N-th.
pub const MIGRATIONS: &[&str] = &[expand_sql!(include_str!("../migrations/0001_initial.sql"))];

/// The newest version of the layout.
pub(crate) const LATEST_LAYOUT: i64 = MIGRATIONS.len() as i64;

/// The location of the database.
#[derive(Clone, Debug)]
pub(crate) enum DatabaseLocation {
    File(PathBuf),
    Memory,
}

impl DatabaseLocation {
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Memory => PathBuf::from(":memory:"),
        }
    }
}

/// A lock that keeps other processes from opening the same file. It is released when it is dropped.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: Option<File>,
}

/// The time to wait for the lock. A process that is killed while it spawns a command leaves its open files, and with
/// them the lock, to the child process until that executes the command. Without the wait, a server that restarts at
/// once would find the file in use.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval at which the lock is tried again.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);

/// Acquires the lock of the file. SQLite alone would let two engines share the file, and each would treat the
/// other's tasks as orphaned.
pub(crate) fn acquire_lock(location: &DatabaseLocation) -> Result<FileLock, OpenError> {
    let DatabaseLocation::File(path) = location else { return Ok(FileLock { _file: None }) };
    let io = |source| OpenError::from_io(path, source);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(sibling_path(path, ".lock"))
        .map_err(io)?;
    let started_at = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(FileLock { _file: Some(file) }),
            Err(std::fs::TryLockError::WouldBlock) if started_at.elapsed() < LOCK_TIMEOUT => {
                thread::sleep(LOCK_RETRY_INTERVAL)
            }
            Err(std::fs::TryLockError::WouldBlock) => return Err(OpenError::InUse { path: path.clone() }),
            Err(std::fs::TryLockError::Error(source)) => return Err(io(source)),
        }
    }
}

/// Returns the path of a file next to the database, with the same name plus this suffix.
pub(crate) fn sibling_path(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_path_buf().into_os_string();
    name.push(suffix);
    name.into()
}

/// Creates the file, if it does not exist, readable for its owner only: it contains every payload. SQLite gives the
/// files next to it the same permissions.
fn create_private_file(location: &DatabaseLocation) -> Result<(), OpenError> {
    let DatabaseLocation::File(path) = location else { return Ok(()) };
    let created = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
    match created {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(OpenError::from_io(path, source)),
    }
}

/// Opens the connection that writes. WAL with `synchronous=FULL`: a commit is on disk before it is acknowledged.
pub(crate) fn open_writer_connection(
    location: &DatabaseLocation,
    migrations: &[&str],
) -> Result<Connection, OpenError> {
    let path = location.path();
    create_private_file(location)?;
    let conn = match location {
        DatabaseLocation::File(path) => Connection::open(path),
        DatabaseLocation::Memory => Connection::open_in_memory(),
    };
    let mut conn = conn.map_err(|e| OpenError::from_sqlite(&path, e))?;
    conn.set_prepared_statement_cache_capacity(256);
    // Most checkpoints run in the background (see checkpoint.rs). At 128 MB the writer runs one itself, so that the WAL
    // can restart.
    let settings = "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA busy_timeout = 5000;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -32768;
         PRAGMA wal_autocheckpoint = 32000;";
    conn.execute_batch(settings).map_err(|e| OpenError::from_sqlite(&path, e))?;
    migrate(&mut conn, &path, migrations)?;
    Ok(conn)
}

/// Opens a connection that reads. It reads the last commit and never blocks the writer.
pub(crate) fn open_reader_connection(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch("PRAGMA busy_timeout = 5000; PRAGMA cache_size = -2048;")?;
    Ok(conn)
}

/// Applies the migrations that the file does not have yet, in one transaction.
fn migrate(conn: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), OpenError> {
    let fault = |e| OpenError::from_sqlite(path, e);
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(fault)?;
    let found = read_layout(&tx).map_err(fault)?;
    let supported = migrations.len() as i64;
    let Ok(applied_count) = usize::try_from(found) else {
        let source = format!("its layout is {found}").into();
        return Err(OpenError::Damaged { path: path.into(), source });
    };
    let Some(missing_migrations) = migrations.get(applied_count..) else {
        return Err(OpenError::NewerLayout { path: path.into(), found, supported });
    };
    for migration in missing_migrations {
        tx.execute_batch(migration).map_err(fault)?;
    }
    tx.execute("INSERT OR REPLACE INTO pointsman_meta (name, text) VALUES ('layout', ?1)", [supported])
        .map_err(fault)?;
    tx.commit().map_err(fault)
}

/// Reads the version of the file's layout; 0 if the file has no tables of Pointsman yet.
pub(crate) fn read_layout(conn: &Connection) -> rusqlite::Result<i64> {
    let table_count: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'pointsman_meta'", [], |r| r.get(0))?;
    if table_count == 0 {
        return Ok(0);
    }
    let version = conn.query_row("SELECT text FROM pointsman_meta WHERE name = 'layout'", [], |r| r.get(0));
    Ok(version.optional()?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_waits_for_a_lock_that_is_released_soon() {
        let folder = tempfile::tempdir().unwrap();
        let location = DatabaseLocation::File(folder.path().join("a.db"));
        let first_lock = acquire_lock(&location).unwrap();
        let waiting_thread = thread::spawn({
            let location = location.clone();
            move || acquire_lock(&location)
        });
        thread::sleep(LOCK_RETRY_INTERVAL * 5);
        drop(first_lock);
        let second_lock = waiting_thread.join().unwrap().unwrap();
        assert!(matches!(acquire_lock(&location), Err(OpenError::InUse { .. })));
        drop(second_lock);
    }
}
