//! WAL checkpoints in a background thread.
//!
//! By default SQLite's writer runs a checkpoint when the WAL has grown to some size, and every commit then waits for
//! it. So a separate thread copies committed pages into the file continuously; the writer only has to restart the WAL,
//! which costs little when most of it has been copied already.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pointsman_core::ErrorChain;
use pointsman_store::WriterStatus;
use rusqlite::Connection;

/// The interval at which the thread checks whether a checkpoint is due.
const CHECKPOINT_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The number of changed rows after which a checkpoint runs. Each checkpoint costs a disk flush that commits
/// wait for, so it should not run too often (docs/performance.md has the figures).
const ROWS_PER_CHECKPOINT: u64 = 50_000;
/// The number of commits after which a checkpoint runs: small commits fill the WAL with few rows.
const COMMITS_PER_CHECKPOINT: u64 = 4_000;

/// The background thread that runs checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    is_stop_requested: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpointer {
    pub(crate) fn start(path: &Path, writer_status: Arc<WriterStatus>) -> std::io::Result<Self> {
        let conn = Connection::open(path).map_err(std::io::Error::other)?;
        let is_stop_requested = Arc::new(AtomicBool::new(false));
        let stop_flag = is_stop_requested.clone();
        let thread = thread::Builder::new()
            .name("sqlite-checkpoint".into())
            .spawn(move || run_checkpoints(&conn, &writer_status, &stop_flag))?;
        Ok(Self { is_stop_requested, thread: Mutex::new(Some(thread)) })
    }

    /// Stops the thread, and waits until it has ended.
    pub(crate) fn stop(&self) {
        self.is_stop_requested.store(true, Ordering::Release);
        let thread = self.thread.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Stops the thread of a store that is dropped without having been closed.
impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs checkpoints when they are due, until a stop is requested.
fn run_checkpoints(conn: &Connection, writer_status: &WriterStatus, is_stop_requested: &AtomicBool) {
    let (mut checkpointed_rows, mut checkpointed_commits) = (0, 0);
    while !is_stop_requested.load(Ordering::Acquire) {
        thread::park_timeout(CHECKPOINT_CHECK_INTERVAL);
        if writer_status.rows_written().saturating_sub(checkpointed_rows) < ROWS_PER_CHECKPOINT
            && writer_status.commit_count().saturating_sub(checkpointed_commits) < COMMITS_PER_CHECKPOINT
        {
            continue;
        }
        (checkpointed_rows, checkpointed_commits) =
            (writer_status.rows_written(), writer_status.commit_count());
        // Whatever makes a checkpoint fail (a full disk, a damaged file) makes writes fail too, and they report the
        // error.
        if let Err(error) = conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())) {
            tracing::debug!(error = %ErrorChain(&error), "WAL checkpoint failed; it is retried after further writes, and the WAL grows until then");
        }
    }
}
