//! Folding the log back into the file, beside the writer.
//!
//! SQLite lets the writer do it when the log has grown to some size, and everybody who waits for a commit then waits
//! for that, too. So a thread of its own copies what has been committed as it comes; what is left to the writer is to
//! start the log anew, which costs little when most of it lies in the file already.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pointsman_store::Work;
use rusqlite::Connection;

/// How often the thread looks.
const LOOK: Duration = Duration::from_millis(50);
/// After so many changed rows or commits it copies. Each time costs the disk a flush that commits then wait for, so that
/// it is not done too often (docs/performance.md has the figures); small commits fill the log with few rows.
const ENOUGH_ROWS: u64 = 50_000;
const ENOUGH_COMMITS: u64 = 4_000;

/// The thread.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpointer {
    pub(crate) fn start(path: &Path, work: Arc<Work>) -> std::io::Result<Self> {
        let conn = Connection::open(path).map_err(std::io::Error::other)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("sqlite-checkpoint".into())
            .spawn(move || run(&conn, &work, &stopped))?;
        Ok(Self { stop, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A store that is dropped without having been closed leaves nothing behind either.
impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(conn: &Connection, work: &Work, stopped: &AtomicBool) {
    let (mut rows, mut commits) = (0, 0);
    while !stopped.load(Ordering::Acquire) {
        thread::park_timeout(LOOK);
        if work.rows().saturating_sub(rows) < ENOUGH_ROWS
            && work.commits().saturating_sub(commits) < ENOUGH_COMMITS
        {
            continue;
        }
        (rows, commits) = (work.rows(), work.commits());
        // Where it cannot (a full disk, a damaged file), the writer will find out and say so.
        if let Err(error) = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::debug!(%error, "the log could not be folded back");
        }
    }
}
