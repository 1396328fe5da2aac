//! Status of the writer: what it has done since the start, and whether it can write now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use pointsman_core::ErrorChain;
use pointsman_core::outage::{OutageNotice, OutageTracker};
use pointsman_core::store::StoreError;

/// A transaction that takes longer than this is described as a write problem.
const SLOW_COMMIT_THRESHOLD: Duration = Duration::from_secs(10);

/// Statistics of the writer, and its current outage or slow commit.
#[derive(Debug, Default)]
pub struct WriterStatus {
    commit_count: AtomicU64,
    rows_written: AtomicU64,
    transaction: Mutex<TransactionStatus>,
}

/// The current transaction, and the outage that the last ones are part of.
#[derive(Debug, Default)]
struct TransactionStatus {
    /// When the current transaction began; `None` between transactions.
    begun_at: Option<Instant>,
    outage: OutageTracker,
}

impl WriterStatus {
    pub fn commit_count(&self) -> u64 {
        self.commit_count.load(Ordering::Relaxed)
    }

    pub fn rows_written(&self) -> u64 {
        self.rows_written.load(Ordering::Relaxed)
    }

    /// Describes the outage or the slow commit that keeps the writer from writing; `None` if there is none. The cause
    /// is in the log. Heartbeats write every few seconds, so the description is at most that old.
    pub fn describe_write_problem(&self, now: Instant) -> Option<String> {
        let transaction = self.lock_transaction();
        let elapsed_since = |then: Instant| now.saturating_duration_since(then);
        if let Some(since) = transaction.outage.failing_since() {
            return Some(format!("commits have failed for {} s", elapsed_since(since).as_secs()));
        }
        let slow_commit_duration =
            transaction.begun_at.map(elapsed_since).filter(|time| *time > SLOW_COMMIT_THRESHOLD)?;
        Some(format!("a commit has been under way for {} s", slow_commit_duration.as_secs()))
    }

    pub(crate) fn record_commit(&self, rows: u64) {
        self.commit_count.fetch_add(1, Ordering::Relaxed);
        self.rows_written.store(rows, Ordering::Relaxed);
    }

    /// Records the beginning of a transaction.
    pub(crate) fn record_transaction_begin(&self, now: Instant) {
        self.lock_transaction().begun_at = Some(now);
    }

    /// Records the end of a transaction, and logs the beginning and end of an outage.
    pub(crate) fn record_transaction_end(&self, outcome: &Result<(), StoreError>, now: Instant) {
        let mut transaction = self.lock_transaction();
        transaction.begun_at = None;
        let notice = match outcome {
            Ok(()) => transaction.outage.record_success(now),
            Err(_) => transaction.outage.record_failure(now),
        };
        let error = outcome.as_ref().err().map(|error| ErrorChain(error).to_string()).unwrap_or_default();
        match notice {
            None => {}
            Some(OutageNotice::Started) => tracing::error!(
                error,
                "the store cannot be written; callers get errors until it can; check the database if this persists"
            ),
            Some(OutageNotice::Ongoing { failures }) => {
                tracing::error!(
                    error,
                    failed_transactions = failures,
                    "the store still cannot be written; callers get errors; check the database"
                );
            }
            Some(OutageNotice::Ended { duration, failures }) => {
                tracing::info!(
                    failed_transactions = failures,
                    outage_seconds = duration.as_secs(),
                    "the store can be written again"
                );
            }
        }
    }

    fn lock_transaction(&self) -> MutexGuard<'_, TransactionStatus> {
        self.transaction.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Logs when reads begin to fail, and when they succeed again.
#[derive(Debug, Default)]
pub struct ReadOutageLog(Mutex<OutageTracker>);

impl ReadOutageLog {
    pub fn record_read_result<T>(&self, read: &Result<T, StoreError>) {
        let now = Instant::now();
        let mut outage = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let notice = match read {
            Ok(_) => outage.record_success(now),
            Err(StoreError::Closed | StoreError::Full(_)) => None,
            Err(StoreError::Unavailable(_) | StoreError::Damaged(_)) => outage.record_failure(now),
        };
        let error = read.as_ref().err().map(|error| ErrorChain(error).to_string()).unwrap_or_default();
        match notice {
            None => {}
            Some(OutageNotice::Started) => tracing::warn!(
                error,
                "the store cannot be read; readers get errors until it can; check the database if this persists"
            ),
            Some(OutageNotice::Ongoing { failures }) => {
                tracing::warn!(
                    error,
                    failed_reads = failures,
                    "the store still cannot be read; readers get errors; check the database"
                );
            }
            Some(OutageNotice::Ended { duration, failures }) => {
                tracing::info!(
                    failed_reads = failures,
                    outage_seconds = duration.as_secs(),
                    "the store can be read again"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_problem_lasts_from_a_failure_to_the_next_success() {
        let (status, start) = (WriterStatus::default(), Instant::now());
        let failure = Err(StoreError::unavailable("the disk is full"));
        assert_eq!(status.describe_write_problem(start), None);
        status.record_transaction_begin(start);
        status.record_transaction_end(&failure, start);
        status.record_transaction_begin(start + SLOW_COMMIT_THRESHOLD);
        assert_eq!(
            status.describe_write_problem(start + SLOW_COMMIT_THRESHOLD).as_deref(),
            Some("commits have failed for 10 s")
        );
        status.record_transaction_end(&Ok(()), start + SLOW_COMMIT_THRESHOLD);
        assert_eq!(status.describe_write_problem(start + SLOW_COMMIT_THRESHOLD), None);
    }

    #[test]
    fn slow_commit_is_reported_as_a_write_problem() {
        let (status, start) = (WriterStatus::default(), Instant::now());
        status.record_transaction_begin(start);
        assert_eq!(status.describe_write_problem(start + SLOW_COMMIT_THRESHOLD), None);
        let problem = status.describe_write_problem(start + SLOW_COMMIT_THRESHOLD * 2);
        assert_eq!(problem.as_deref(), Some("a commit has been under way for 20 s"));
    }
}
