//! Counts and logs rows of the outbox that were set aside.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pointsman_store::SetAsideEntryLog;

use super::DrainResult;

/// The number of rows that were set aside, and the log of them.
#[derive(Debug, Default)]
pub(crate) struct RefusedRowTracker {
    count: AtomicU64,
    log: Mutex<SetAsideEntryLog>,
}

impl RefusedRowTracker {
    /// Returns the warnings for `/healthz`.
    pub(crate) fn health_warnings(&self) -> Vec<String> {
        let rows = match self.count.load(Ordering::Relaxed) {
            0 => return Vec::new(),
            1 => "1 row of the outbox was set aside and did not become an event".to_string(),
            count => format!("{count} rows of the outbox were set aside and did not become events"),
        };
        vec![format!("{rows}; `pointsman doctor` shows why, and so does pointsman.event_of(receipt)")]
    }

    /// Records rows that were just set aside.
    pub(crate) fn add(&self, drained: &DrainResult) {
        self.count.fetch_add(drained.refused_rows.len() as u64, Ordering::Relaxed);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        drained
            .refused_rows
            .iter()
            .for_each(|(number, reason)| log.count_entry(|| format!("row {number}: {reason}")));
    }

    /// Sets the number of rows that were set aside.
    pub(crate) fn set_count(&self, rows: u64) {
        self.count.store(rows, Ordering::Relaxed);
    }

    /// Logs the rows that were set aside since the last such log line, if that is long enough ago.
    pub(crate) fn log_if_due(&self) {
        let due = self.log.lock().unwrap_or_else(PoisonError::into_inner).take_due_summary(Instant::now());
        if let Some((row_count, example)) = due {
            tracing::warn!(
                row_count,
                example,
                "rows of the outbox cannot become events; moved them to pointsman.outbox_refused with the reason; correct \
                 the programs that insert them"
            );
        }
    }
}
