//! Looks at the file of a store, and at what may keep one from working well there, without changing anything.
//!
//! A file that is in use is read beside whoever has it, as readers do. One that is not in use and has no log beside it is
//! read as if nobody could write to it, so that SQLite makes no files for others' sake.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, access};
use pointsman_store::finding::{Finding, size};
use pointsman_store::transfer::NOTE;
use rusqlite::{Connection, OpenFlags};

use crate::open::{KNOWN, beside, version};

/// With less than this on the disk it is time to do something, and with less than that it is late.
const LITTLE: u64 = 1 << 30;
const TOO_LITTLE: u64 = 64 << 20;
/// The log is folded back at 128 MB. If it is larger than this, something keeps it from being.
const LONG_LOG: u64 = 512 << 20;
/// How many faults of the file are listed.
const LISTED: usize = 5;

/// How thoroughly the contents are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every page (`quick_check`).
    Quick,
    /// And whether the indexes hold what the tables hold (`integrity_check`).
    Deep,
}

/// Examines the file of a store.
pub fn examine(path: &Path, depth: Depth) -> Vec<Finding> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return vec![absent(path), room(path)],
        Err(error) => return vec![unreadable(path, &error)],
    };
    if !meta.is_file() {
        return vec![
            Finding::fault("file", format!("{} is not a file", path.display())).advise("Name another."),
        ];
    }
    let mut findings = vec![sizes(path, &meta), rights(path, &meta), room(path), user(path)];
    findings.extend(contents(path, depth));
    findings
}

/// There is no file yet; whether one can be made.
fn absent(path: &Path) -> Finding {
    let folder = folder(path);
    match access(&folder, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => {
            Finding::ok("file", format!("{} is not there yet; the first start makes it", path.display()))
        }
        Err(_) => {
            Finding::fault("file", format!("{} is not there, and nothing can be made there", path.display()))
                .advise(format!("Make the folder {}, and let this user write to it.", folder.display()))
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Finding {
    Finding::fault("file", format!("{} cannot be looked at: {error}", path.display()))
        .advise("Run this as the user who runs the server.")
}

fn sizes(path: &Path, meta: &Metadata) -> Finding {
    let log = std::fs::metadata(beside(path, "-wal")).map_or(0, |meta| meta.len());
    let found = format!("{}, {}, and {} of log", path.display(), size(meta.len()), size(log));
    match log > LONG_LOG {
        true => Finding::warning("file", found).advise(
            "Something keeps the log from being folded back: a backup or another reader that does not end?",
        ),
        false => Finding::ok("file", found),
    }
}

/// Whether we can use the file, and whether others can read it: it holds every payload.
fn rights(path: &Path, meta: &Metadata) -> Finding {
    if access(path, AccessFlags::R_OK | AccessFlags::W_OK).is_err() {
        return Finding::fault("rights", "this user may not read and write the file")
            .advise("Run this as the user who runs the server, or give the file to this one.");
    }
    let open = |path: &Path, meta: &Metadata| {
        let mode = meta.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then(|| format!("{} ({mode:o})", path.display()))
    };
    let beside = ["-wal", "-shm", ".token"].map(|end| beside(path, end));
    let others = beside.iter().filter_map(|path| open(path, &std::fs::metadata(path).ok()?));
    let readable: Vec<String> = open(path, meta).into_iter().chain(others).collect();
    match readable.as_slice() {
        [] => Finding::ok("rights", "only its owner can read it"),
        files => Finding::warning("rights", format!("others may read or write {}", files.join(", ")))
            .advise(format!("chmod 600 {}*", path.display())),
    }
}

/// What is left on the disk, and whether it is one that SQLite can rely on.
fn room(path: &Path) -> Finding {
    let stat = match statfs(&folder(path)) {
        Ok(stat) => stat,
        Err(error) => return Finding::warning("disk", format!("cannot be looked at: {error}")),
    };
    let free = stat.blocks_available().saturating_mul(stat.block_size().unsigned_abs());
    let found = format!("{} free", size(free));
    if [NFS_SUPER_MAGIC, SMB_SUPER_MAGIC].contains(&stat.filesystem_type()) {
        return Finding::fault("disk", "the file lies on another machine, over the network").advise(
            "Locks and shared memory do not work there as SQLite needs them. Put it on a disk of this \
             machine, or use PostgreSQL.",
        );
    }
    match free {
        free if free < TOO_LITTLE => Finding::fault("disk", found).advise(
            "Free some space now: on a full disk nothing commits. Shorter journal and history help too.",
        ),
        free if free < LITTLE => Finding::warning("disk", found)
            .advise("Free some space, or keep less: journal and history in the configuration."),
        _ => Finding::ok("disk", found),
    }
}

/// Who has it open.
fn user(path: &Path) -> Finding {
    match lock_holder(path) {
        Ok(None) => Finding::ok("in use", "no"),
        Ok(Some(who)) => Finding::ok("in use", who),
        Err(error) => Finding::warning("in use", format!("cannot be told: {error}")),
    }
}

/// The process that has locked the store: `by pointsman, pid 4711`. None if it is not in use. The lock is tried and released
/// immediately; a server that starts meanwhile waits for longer than that.
pub fn lock_holder(path: &Path) -> io::Result<Option<String>> {
    let lock = match File::open(beside(path, ".lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(name_of(lock.metadata()?.ino()))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The process that has locked the file of this number, as the system lists it.
fn name_of(inode: u64) -> String {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let Some(pid) = locker(&locks, inode) else { return "by another process".into() };
    match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(program) => format!("by {}, pid {pid}", program.trim()),
        Err(_) => format!("by pid {pid}"),
    }
}

/// Lines are `1: FLOCK  ADVISORY  WRITE 4711 fe:00:393217 0 EOF`.
fn locker(locks: &str, inode: u64) -> Option<u32> {
    let end = format!(":{inode}");
    let words = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let kind = words.next()?;
        let pid = words.nth(2)?.parse().ok()?;
        (kind == "FLOCK" && words.next()?.ends_with(&end)).then_some(pid)
    };
    locks.lines().find_map(words)
}

fn contents(path: &Path, depth: Depth) -> Vec<Finding> {
    let unopened = |error: rusqlite::Error| {
        let advice = "Restore a backup, if it is damaged; name another file, if it is not Pointsman's.";
        Finding::fault("contents", format!("cannot be read: {error}")).advise(advice)
    };
    let quiet = || {
        matches!(lock_holder(path), Ok(None))
            && std::fs::metadata(beside(path, "-wal")).map_or(0, |m| m.len()) == 0
    };
    let alone = quiet();
    let found = open(path, alone).and_then(|conn| look(&conn, depth));
    // Somebody has begun to write meanwhile: what was seen may be half old and half new.
    let found = if alone && !quiet() { open(path, false).and_then(|conn| look(&conn, depth)) } else { found };
    found.unwrap_or_else(|error| vec![unopened(error)])
}

/// Opens the file to read it, as one that nobody writes to if so.
fn open(path: &Path, alone: bool) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(uri(path, alone), flags)?;
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(conn)
}

/// A path as SQLite's URLs have it.
fn uri(path: &Path, alone: bool) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte))
            }
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str(if alone { "?mode=ro&immutable=1" } else { "?mode=ro" });
    uri
}

fn look(conn: &Connection, depth: Depth) -> rusqlite::Result<Vec<Finding>> {
    let layout = match version(conn)? {
        0 if is_foreign(conn)? => {
            Finding::warning("layout", "there are tables in it, and none of them is Pointsman's")
                .advise("Is it the right file? A server adds its own tables to it.")
        }
        0 => Finding::ok("layout", "there are no tables yet; the next start makes them"),
        KNOWN => Finding::ok("layout", format!("{KNOWN}, the newest")),
        newer if newer > KNOWN => Finding::fault(
            "layout",
            format!("{newer}, made by a newer version; this one knows up to {KNOWN}"),
        )
        .advise("Run that version, or restore a backup made before the upgrade."),
        older => Finding::ok(
            "layout",
            format!("{older}; the next start of this version brings it forward to {KNOWN}"),
        )
        .advise("Make a backup first; older versions will not open it any more."),
    };
    let mut findings = vec![layout];
    if version(conn)? == KNOWN && is_part(conn)? {
        let part = Finding::fault("move", "a move to this store has not ended");
        findings.push(part.advise("Run the same `pointsman move` again, or begin with another target."));
    }
    findings.push(soundness(conn, depth)?);
    Ok(findings)
}

/// Whether what a move has brought so far is not all.
fn is_part(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("SELECT count(*) > 0 FROM pointsman_meta WHERE name = ?1", [NOTE], |row| row.get(0))
}

fn is_foreign(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("SELECT count(*) > 0 FROM sqlite_schema", [], |row| row.get(0))
}

fn soundness(conn: &Connection, depth: Depth) -> rusqlite::Result<Finding> {
    let (check, sound) = match depth {
        Depth::Quick => ("quick_check", "every page is sound"),
        Depth::Deep => ("integrity_check", "every page is sound, and so is every index"),
    };
    let mut statement = conn.prepare(&format!("PRAGMA {check}({LISTED})"))?;
    let told = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    Ok(match told.as_slice() {
        [ok] if ok == "ok" => Finding::ok("contents", sound),
        wrong => Finding::fault("contents", wrong.join("; "))
            .advise("Stop the server, keep a copy of the file, and restore a backup."),
    })
}

/// The folder that the file is in, or is to be in.
fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        Some(_) | None => ".".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_a_lock_is_read_from_the_systems_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 17 fe:00:99 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4711 fe:00:99 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 18 fe:00:99 0 EOF\n";
        assert_eq!(locker(locks, 99), Some(4711));
        assert_eq!(locker(locks, 9), None);
    }

    #[test]
    fn a_path_becomes_a_url() {
        assert_eq!(uri(Path::new("/a b/c?d#é.db"), false), "file:/a%20b/c%3fd%23%c3%a9.db?mode=ro");
    }
}
