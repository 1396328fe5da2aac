//! Opening the file: the lock, the settings that durability rests on, and the layout's version.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::error::OpenError;

/// The layouts, oldest first. A file of layout N is brought forward by everything after N.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
    include_str!("../migrations/0004.sql"),
    include_str!("../migrations/0005.sql"),
    include_str!("../migrations/0006.sql"),
    include_str!("../migrations/0007.sql"),
];

/// The newest layout.
pub(crate) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// Where the data is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    File(PathBuf),
    Memory,
}

impl Place {
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Memory => PathBuf::from(":memory:"),
        }
    }
}

/// Keeps other processes from opening the same file, as long as it lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: Option<File>,
}

/// How long a lock is waited for. A process that is killed while it starts a command leaves its open files to the
/// new process for the moment until that becomes the command, and the lock with them: who restarts at once would
/// find the file in use by nobody.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Takes the lock beside the file. SQLite alone would let two engines share it, and each would take the
/// other's tasks for orphans.
pub(crate) fn lock(place: &Place) -> Result<Lock, OpenError> {
    let Place::File(path) = place else { return Ok(Lock { _file: None }) };
    let io = |source| OpenError::from_io(path, source);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(beside(path, ".lock"))
        .map_err(io)?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock { _file: Some(file) }),
            Err(std::fs::TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => thread::sleep(LOOK_AGAIN),
            Err(std::fs::TryLockError::WouldBlock) => return Err(OpenError::InUse { path: path.clone() }),
            Err(std::fs::TryLockError::Error(source)) => return Err(io(source)),
        }
    }
}

/// A file that lies beside that of the data, with the same name and this at its end.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.to_path_buf().into_os_string();
    name.push(end);
    name.into()
}

/// Makes the file, if there is none, for its owner alone: it holds every payload. What SQLite puts beside it gets
/// the same rights.
fn keep_private(place: &Place) -> Result<(), OpenError> {
    let Place::File(path) = place else { return Ok(()) };
    let made = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(OpenError::from_io(path, source)),
    }
}

/// The connection that writes. WAL with `synchronous=FULL`: a commit is on disk before it is answered.
pub(crate) fn writer(place: &Place) -> Result<Connection, OpenError> {
    let path = place.path();
    keep_private(place)?;
    let conn = match place {
        Place::File(path) => Connection::open(path),
        Place::Memory => Connection::open_in_memory(),
    };
    let mut conn = conn.map_err(|e| OpenError::from_sqlite(&path, e))?;
    conn.set_prepared_statement_cache_capacity(256);
    // Mostly the log is folded back beside the writer (see checkpoint.rs). At 128 MB the writer does what is left
    // itself, so that the log can start anew.
    let settings = "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA busy_timeout = 5000;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -32768;
         PRAGMA wal_autocheckpoint = 32000;";
    conn.execute_batch(settings).map_err(|e| OpenError::from_sqlite(&path, e))?;
    migrate(&mut conn, &path)?;
    Ok(conn)
}

/// A connection that reads. It sees the last commit and never blocks the writer.
pub(crate) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.execute_batch("PRAGMA busy_timeout = 5000; PRAGMA cache_size = -2048;")?;
    Ok(conn)
}

fn migrate(conn: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let fault = |e| OpenError::from_sqlite(path, e);
    let tx = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).map_err(fault)?;
    let found = version(&tx).map_err(fault)?;
    if found > KNOWN {
        return Err(OpenError::Newer { path: path.into(), found, known: KNOWN });
    }
    for migration in &MIGRATIONS[found as usize..] {
        tx.execute_batch(migration).map_err(fault)?;
    }
    tx.execute("INSERT OR REPLACE INTO pointsman_meta (name, value) VALUES ('layout', ?1)", [KNOWN])
        .map_err(fault)?;
    tx.commit().map_err(fault)
}

/// The layout of the file; 0 if it has none of our tables yet.
pub(crate) fn version(conn: &Connection) -> rusqlite::Result<i64> {
    let tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'pointsman_meta'", [], |r| r.get(0))?;
    if tables == 0 {
        return Ok(0);
    }
    let version = conn.query_row("SELECT value FROM pointsman_meta WHERE name = 'layout'", [], |r| r.get(0));
    Ok(version.optional()?.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_about_to_be_given_back_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::File(folder.path().join("a.db"));
        let held = lock(&place).unwrap();
        let waiting = thread::spawn({
            let place = place.clone();
            move || lock(&place)
        });
        thread::sleep(LOOK_AGAIN * 5);
        drop(held);
        let taken = waiting.join().unwrap().unwrap();
        assert!(matches!(lock(&place), Err(OpenError::InUse { .. })));
        drop(taken);
    }
}
