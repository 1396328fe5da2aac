//! Checks the file of a store and its disk for problems, without changing anything.
//!
//! A file that is in use is read as by any other reader. A file that is not in use and has no WAL is opened as
//! immutable, so that SQLite creates no files next to it.

use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::sys::statfs::{NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, statfs};
use nix::unistd::{AccessFlags, access};
use pointsman_store::finding::{Finding, format_bytes};
use pointsman_store::store_copy::COPY_PROGRESS_TEXT_NAME;
use rusqlite::{Connection, OpenFlags};

use crate::open::{LATEST_LAYOUT, read_layout, sibling_path};

/// Less free space than this is a warning.
const LOW_DISK_SPACE_BYTES: u64 = 1 << 30;
/// Less free space than this is a fault.
const CRITICAL_DISK_SPACE_BYTES: u64 = 64 << 20;
/// The WAL is checkpointed at 128 MB. If it is larger than this, something prevents checkpoints.
const LARGE_WAL_BYTES: u64 = 512 << 20;
/// The maximum number of integrity errors that are listed.
const MAX_LISTED_INTEGRITY_ERRORS: usize = 5;

/// How thoroughly the contents of the file are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDepth {
    /// Checks every page (`quick_check`).
    Quick,
    /// Also checks that the indexes match the tables (`integrity_check`).
    Deep,
}

/// Examines the file of a store.
pub fn examine(path: &Path, depth: CheckDepth) -> Vec<Finding> {
    examine_with_latest_layout(path, depth, LATEST_LAYOUT)
}

/// Examines the file as a version of Pointsman with this newest layout would. For tests.
#[doc(hidden)]
pub fn examine_with_latest_layout(path: &Path, depth: CheckDepth, latest_layout: i64) -> Vec<Finding> {
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return vec![check_missing_file_can_be_created(path), check_disk_space(path)];
        }
        Err(error) => return vec![report_unreadable_file(path, &error)],
    };
    if !meta.is_file() {
        return vec![
            Finding::fault("file", format!("{} is not a file", path.display()))
                .with_advice("Use the path of a file."),
        ];
    }
    let mut findings = vec![
        check_sizes(path, &meta),
        check_permissions(path, &meta),
        check_disk_space(path),
        check_in_use(path),
    ];
    findings.extend(check_contents(path, depth, latest_layout));
    findings
}

/// Checks whether the missing file can be created.
fn check_missing_file_can_be_created(path: &Path) -> Finding {
    let folder = parent_folder(path);
    match access(&folder, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => {
            Finding::ok("file", format!("{} does not exist yet; the first start creates it", path.display()))
        }
        Err(_) => Finding::fault("file", format!("{} does not exist and cannot be created", path.display()))
            .with_advice(format!(
                "Create the folder {}, and make it writable for this user.",
                folder.display()
            )),
    }
}

fn report_unreadable_file(path: &Path, error: &io::Error) -> Finding {
    Finding::fault("file", format!("{} cannot be examined: {error}", path.display()))
        .with_advice("Run this as the user who runs the server.")
}

fn check_sizes(path: &Path, meta: &Metadata) -> Finding {
    let wal_size = std::fs::metadata(sibling_path(path, "-wal")).map_or(0, |meta| meta.len());
    let observation =
        format!("{}, {}, with {} of WAL", path.display(), format_bytes(meta.len()), format_bytes(wal_size));
    match wal_size > LARGE_WAL_BYTES {
        true => Finding::warning("file", observation).with_advice(
            "Something prevents WAL checkpoints: look for a backup or another reader that does not end.",
        ),
        false => Finding::ok("file", observation),
    }
}

/// Checks that this user can use the file, and that others cannot read it: it contains every payload.
fn check_permissions(path: &Path, meta: &Metadata) -> Finding {
    if access(path, AccessFlags::R_OK | AccessFlags::W_OK).is_err() {
        return Finding::fault("rights", "this user may not read and write the file").with_advice(
            "Run this as the user who runs the server, or make this user the owner of the file.",
        );
    }
    let describe_if_readable = |path: &Path, meta: &Metadata| {
        let mode = meta.permissions().mode() & 0o777;
        (mode & 0o077 != 0).then(|| format!("{} ({mode:o})", path.display()))
    };
    let siblings = ["-wal", "-shm", ".token"].map(|suffix| sibling_path(path, suffix));
    let others =
        siblings.iter().filter_map(|path| describe_if_readable(path, &std::fs::metadata(path).ok()?));
    let readable: Vec<String> = describe_if_readable(path, meta).into_iter().chain(others).collect();
    match readable.as_slice() {
        [] => Finding::ok("rights", "only its owner can read it"),
        files => Finding::warning("rights", format!("others may read or write {}", files.join(", ")))
            .with_advice(format!("chmod 600 {}*", path.display())),
    }
}

/// Checks the free space of the disk, and that SQLite can rely on its file system.
fn check_disk_space(path: &Path) -> Finding {
    let file_system = match statfs(&parent_folder(path)) {
        Ok(file_system) => file_system,
        Err(error) => return Finding::warning("disk", format!("cannot be examined: {error}")),
    };
    let free_bytes = file_system.blocks_available().saturating_mul(file_system.block_size().unsigned_abs());
    let observation = format!("{} free", format_bytes(free_bytes));
    if [NFS_SUPER_MAGIC, SMB_SUPER_MAGIC].contains(&file_system.filesystem_type()) {
        return Finding::fault("disk", "the file is on a network file system").with_advice(
            "SQLite's locks and shared memory do not work there. Move it to a disk of this \
             machine, or use PostgreSQL.",
        );
    }
    match free_bytes {
        free_bytes if free_bytes < CRITICAL_DISK_SPACE_BYTES => Finding::fault("disk", observation).with_advice(
            "Free some space now: on a full disk every commit fails. A shorter retention of journal and history \
             helps too.",
        ),
        free_bytes if free_bytes < LOW_DISK_SPACE_BYTES => Finding::warning("disk", observation)
            .with_advice("Free some space, or shorten the retention of journal and history in the configuration."),
        _ => Finding::ok("disk", observation),
    }
}

/// Reports which process has the file open.
fn check_in_use(path: &Path) -> Finding {
    match find_lock_holder(path) {
        Ok(None) => Finding::ok("in use", "no"),
        Ok(Some(holder)) => Finding::ok("in use", holder),
        Err(error) => Finding::warning("in use", format!("cannot be determined: {error}")),
    }
}

/// Finds the process that holds the lock. A lock that is free is taken and released at once; a server that starts
/// meanwhile waits longer than that.
pub fn find_lock_holder(path: &Path) -> io::Result<Option<String>> {
    let lock = match File::open(sibling_path(path, ".lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(describe_lock_holder(lock.metadata()?.ino()))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Describes the process that has locked the file with this inode, as `/proc/locks` lists it.
fn describe_lock_holder(inode: u64) -> String {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let Some(pid) = find_locking_pid(&locks, inode) else { return "by another process".into() };
    match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(program) => format!("by {}, pid {pid}", program.trim()),
        Err(_) => format!("by pid {pid}"),
    }
}

/// Finds the process that has locked the file with this inode, in lines of `/proc/locks` such as
/// `1: FLOCK  ADVISORY  WRITE 4711 fe:00:393217 0 EOF`.
fn find_locking_pid(locks: &str, inode: u64) -> Option<u32> {
    let inode_suffix = format!(":{inode}");
    let pid_of_line = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let lock_kind = words.next()?;
        let pid = words.nth(2)?.parse().ok()?;
        (lock_kind == "FLOCK" && words.next()?.ends_with(&inode_suffix)).then_some(pid)
    };
    locks.lines().find_map(pid_of_line)
}

fn check_contents(path: &Path, depth: CheckDepth, latest_layout: i64) -> Vec<Finding> {
    let report_unreadable_contents = |error: rusqlite::Error| {
        let advice =
            "Restore a backup if the file is damaged; use another file if this one is not Pointsman's.";
        Finding::fault("contents", format!("cannot be read: {error}")).with_advice(advice)
    };
    let is_unused = || {
        matches!(find_lock_holder(path), Ok(None))
            && std::fs::metadata(sibling_path(path, "-wal")).map_or(0, |m| m.len()) == 0
    };
    let immutable = is_unused();
    let check = |immutable| {
        open_read_only(path, immutable).and_then(|conn| check_database(&conn, depth, latest_layout))
    };
    let findings = check(immutable);
    // If a process has begun to write meanwhile, the pages that were read may be inconsistent, so the check is
    // repeated.
    let findings = if immutable && !is_unused() { check(false) } else { findings };
    findings.unwrap_or_else(|error| vec![report_unreadable_contents(error)])
}

/// Opens the file read-only, and as immutable if no process uses it.
fn open_read_only(path: &Path, immutable: bool) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(format_sqlite_uri(path, immutable), flags)?;
    conn.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(conn)
}

/// Formats a path as a URI for SQLite.
fn format_sqlite_uri(path: &Path, immutable: bool) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte))
            }
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str(if immutable { "?mode=ro&immutable=1" } else { "?mode=ro" });
    uri
}

fn check_database(
    conn: &Connection,
    depth: CheckDepth,
    latest_layout: i64,
) -> rusqlite::Result<Vec<Finding>> {
    let layout = match read_layout(conn)? {
        0 if has_tables(conn)? => {
            Finding::warning("layout", "the file has tables, and none of them is Pointsman's")
                .with_advice("Check that it is the right file. A server adds its own tables to it.")
        }
        0 => Finding::ok("layout", "the file has no tables yet; the next start creates them"),
        ..0 => Finding::fault("layout", "not a number of a version; the file is damaged")
            .with_advice("Keep a copy of the file, and restore a backup."),
        layout if layout == latest_layout => Finding::ok("layout", format!("{layout}, the newest")),
        newer_layout if newer_layout > latest_layout => Finding::fault(
            "layout",
            format!(
                "{newer_layout}, written by a newer version; this version supports up to {latest_layout}"
            ),
        )
        .with_advice("Run that version, or restore a backup made before the upgrade."),
        older_layout => Finding::ok(
            "layout",
            format!("{older_layout}; the next start of this version migrates it to {latest_layout}"),
        )
        .with_advice("Make a backup first; older versions cannot open the file after that."),
    };
    let mut findings = vec![layout];
    if read_layout(conn)? == latest_layout && has_unfinished_copy(conn)? {
        let unfinished = Finding::fault("move", "a `pointsman move` to this store has not finished");
        findings.push(unfinished.with_advice("Run the same `pointsman move` again, or use another target."));
    }
    findings.push(check_integrity(conn, depth)?);
    Ok(findings)
}

/// Returns whether a store copy to this file is unfinished.
fn has_unfinished_copy(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row(
        "SELECT count(*) > 0 FROM pointsman_meta WHERE name = ?1",
        [COPY_PROGRESS_TEXT_NAME],
        |row| row.get(0),
    )
}

fn has_tables(conn: &Connection) -> rusqlite::Result<bool> {
    conn.query_row("SELECT count(*) > 0 FROM sqlite_schema", [], |row| row.get(0))
}

fn check_integrity(conn: &Connection, depth: CheckDepth) -> rusqlite::Result<Finding> {
    let (check, sound_text) = match depth {
        CheckDepth::Quick => ("quick_check", "every page is sound"),
        CheckDepth::Deep => ("integrity_check", "every page and every index is sound"),
    };
    let mut statement = conn.prepare(&format!("PRAGMA {check}({MAX_LISTED_INTEGRITY_ERRORS})"))?;
    let results = statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>()?;
    Ok(match results.as_slice() {
        [ok] if ok == "ok" => Finding::ok("contents", sound_text),
        errors => Finding::fault("contents", errors.join("; "))
            .with_advice("Stop the server, keep a copy of the file, and restore a backup."),
    })
}

/// Returns the folder that contains the file.
fn parent_folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.into(),
        Some(_) | None => ".".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_holder_is_read_from_proc_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 17 fe:00:99 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4711 fe:00:99 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 18 fe:00:99 0 EOF\n";
        assert_eq!(find_locking_pid(locks, 99), Some(4711));
        assert_eq!(find_locking_pid(locks, 9), None);
    }

    #[test]
    fn a_path_is_formatted_as_an_sqlite_uri() {
        assert_eq!(
            format_sqlite_uri(Path::new("/a b/c?d#é.db"), false),
            "file:/a%20b/c%3fd%23%c3%a9.db?mode=ro"
        );
    }
}
