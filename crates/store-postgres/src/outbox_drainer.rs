//! The background job that drains the outbox.
//!
//! The drainer sleeps until an emit notifies it, and polls as well: a transaction that emitted before the drainer fell
//! asleep and commits afterwards does not notify. The poll interval starts short and grows, so that such an event waits
//! about as long again as its transaction took, and an idle node hardly polls. A poll that finds nothing is one plain
//! read.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::outage::OutageTracker;
use pointsman_core::store::{EmitBatch, IdempotencyKey, StoreError};
use pointsman_core::{ErrorChain, EventType, NewEvent, ObjectKey, Tenant};
use pointsman_store::caller_time_source::CallerTimeSource;
use pointsman_store::error::TableResult;
use pointsman_store::notifier::PeerNotifier;
use pointsman_store::{JobPosition, JobRequest, Txn, Writer, add_emit_batches_to_read_set};
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;

use crate::outbox::{self, DrainResult, OutboxProgress, ProgressStep, RefusedRowTracker, RejectedRowCell};
use crate::pool::SessionPool;
use crate::rows::read_column;
use crate::session::{Query, query};
use crate::tables::PgTables;

/// The shortest poll interval, which follows a poll that found rows, and the longest.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(2);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Interval between two deletions of expired rows.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);
/// Limit of rows that one statement deletes.
const MAX_ROWS_PER_DELETE: i64 = 5000;
/// Retention in seconds of receipts and idempotency keys, and of refused rows.
const RECEIPT_RETENTION_SECONDS: i64 = 24 * 3600;
const REFUSED_RETENTION_SECONDS: i64 = 30 * RECEIPT_RETENTION_SECONDS;

/// Moves rows from the outbox to the journal.
struct OutboxDrainer {
    pool: SessionPool,
    writer: Writer<PgTables>,
    /// The source of the time: no request starts a drain, so that no caller passes the time.
    caller_time: Arc<CallerTimeSource>,
    refused_row_tracker: Arc<RefusedRowTracker>,
}

/// The state of the outbox, as the drainer polls it.
struct OutboxState {
    progress: OutboxProgress,
    /// The drainers sleep, so that the next emit notifies them.
    is_drainer_asleep: bool,
    /// The number of the last waiting row.
    last_waiting_row_number: Option<i64>,
    /// The waiting rows, with only what determines the read set: object and idempotency key.
    emits_to_prefetch: Vec<EmitBatch>,
}

/// Why rows were not drained.
enum DrainError {
    /// The database rejects a value of the row with this number, or of a later one, with this message.
    RejectedRow(i64, String),
    /// The transaction failed for another reason; the rows stay in the outbox.
    StoreFailed(StoreError),
}

/// Drains the outbox, as long as the store is open.
pub(crate) async fn run_drainer(
    notifier: Arc<PeerNotifier>,
    pool: SessionPool,
    writer: Writer<PgTables>,
    caller_time: Arc<CallerTimeSource>,
    refused_row_tracker: Arc<RefusedRowTracker>,
) {
    let drainer = OutboxDrainer { pool, writer, caller_time, refused_row_tracker };
    let mut poll_interval = MIN_POLL_INTERVAL;
    // The first cleanup retries what fails here.
    let _ = drainer.drain_rows_at_or_below_progress().await;
    let _ = drainer.update_refused_row_count().await;
    let mut last_cleanup = Instant::now();
    let mut outage = OutageTracker::default();
    loop {
        let (drained, now) = (drainer.drain_until_empty().await, std::time::Instant::now());
        match &drained {
            Ok(_) if outage.record_success(now).is_some() => {
                tracing::info!("draining the outbox works again")
            }
            Ok(_) => {}
            Err(StoreError::Closed) => return,
            Err(error) if outage.record_failure(now).is_some() => {
                tracing::warn!(
                    error = %ErrorChain(&error),
                    "could not drain the outbox; events emitted in SQL wait; run `pointsman doctor` if it persists"
                );
            }
            Err(_) => {}
        }
        poll_interval = match drained {
            Ok(0) => (poll_interval * 2).min(MAX_POLL_INTERVAL),
            Ok(_) => MIN_POLL_INTERVAL,
            Err(_) => MAX_POLL_INTERVAL,
        };
        drainer.refused_row_tracker.log_if_due();
        if last_cleanup.elapsed() >= CLEANUP_INTERVAL {
            last_cleanup = Instant::now();
            if let Err(error) = drainer.delete_expired_receipts_keys_refused().await {
                tracing::debug!(
                    error = %ErrorChain(&error),
                    "could not delete expired receipts, idempotency keys and refused rows of the outbox; retrying in a \
                     minute"
                );
            }
        }
        tokio::select! {
            () = notifier.outbox_signal.notified() => poll_interval = MIN_POLL_INTERVAL,
            () = sleep(poll_interval) => {}
        }
    }
}

impl OutboxDrainer {
    /// Drains the outbox until it is empty, and lets the next emit notify the drainer. Returns the number of drained
    /// rows.
    async fn drain_until_empty(&self) -> Result<usize, StoreError> {
        let mut drained = 0;
        loop {
            let OutboxState {
                progress,
                is_drainer_asleep,
                last_waiting_row_number: last_waiting_row,
                emits_to_prefetch,
            } = self.read_outbox_state().await?;
            self.advance_progress(&progress).await?;
            match last_waiting_row {
                Some(last) => {
                    drained += self.drain_rows(progress.scan_after() + 1..=last, emits_to_prefetch).await?
                }
                None if is_drainer_asleep => return Ok(drained),
                // An emit that read the flag before this does not notify; a poll after its commit finds it.
                None => self.execute(query!("outbox/mark_drainer_asleep"), []).await.map(drop)?,
            }
        }
    }

    /// Reads the state of the outbox and the next waiting rows.
    async fn read_outbox_state(&self) -> Result<OutboxState, StoreError> {
        self.pool
            .run_single_statement((), |session, ()| {
                Box::pin(async {
                    let rows = session
                        .query(query!("outbox/read_outbox_state", INT8), &[&outbox::MAX_ROWS_PER_DRAIN])
                        .await?;
                    OutboxState::from_rows(&rows)
                })
            })
            .await
    }

    /// Drains the rows at these numbers. If the database rejects one of them, drains them row by row, so that
    /// only rejected rows are set aside.
    async fn drain_rows(
        &self,
        numbers: RangeInclusive<i64>,
        emits_to_prefetch: Vec<EmitBatch>,
    ) -> Result<usize, StoreError> {
        match self.drain_batch(numbers.clone(), outbox::MAX_ROWS_PER_DRAIN, emits_to_prefetch).await {
            Err(DrainError::RejectedRow(..)) => {}
            Err(DrainError::StoreFailed(error)) => return Err(error),
            Ok(drained_count) => return Ok(drained_count),
        }
        let mut drained_count = 0;
        loop {
            drained_count += match self.drain_batch(numbers.clone(), 1, vec![]).await {
                Ok(0) => return Ok(drained_count),
                Ok(drained) => drained,
                Err(DrainError::RejectedRow(number, reason)) => self.refuse_row(number, reason).await?,
                Err(DrainError::StoreFailed(error)) => return Err(error),
            };
        }
    }

    /// Drains at most `max_rows` of these rows in one transaction.
    async fn drain_batch(
        &self,
        numbers: RangeInclusive<i64>,
        max_rows: i64,
        emits_to_prefetch: Vec<EmitBatch>,
    ) -> Result<usize, DrainError> {
        let (now, rejected) = (self.caller_time.now(), Arc::new(RejectedRowCell::new()));
        let request = JobRequest {
            position: JobPosition::First,
            input: (emits_to_prefetch, None),
            add_to_read_set: add_emit_batches_to_read_set,
        };
        let rejected_in_drain = rejected.clone();
        let drain = move |txn: &mut Txn<'_, PgTables>, _| {
            outbox::drain_rows(txn, numbers, max_rows, now, &rejected_in_drain)
        };
        match (self.writer.run_job(request, drain).await, rejected.get()) {
            (Ok(drained), _) => Ok(self.record_drain_result(&drained)),
            (Err(_), Some((number, reason))) => Err(DrainError::RejectedRow(*number, reason.clone())),
            (Err(error), None) => Err(DrainError::StoreFailed(error)),
        }
    }

    /// Sets a row aside, in `pointsman.outbox_refused`; returns the number of drained rows.
    async fn refuse_row(&self, number: i64, reason: String) -> Result<usize, StoreError> {
        let now = self.caller_time.now();
        let drained =
            self.writer.run_in_transaction(move |txn| outbox::refuse_row(txn, number, &reason, now)).await?;
        Ok(self.record_drain_result(&drained))
    }

    /// Drains rows at or below the progress, which are not polled: only manual inserts with a number can be there.
    async fn drain_rows_at_or_below_progress(&self) -> Result<(), StoreError> {
        let last = self.pool.run_single_statement((), |session, ()| {
            Box::pin(async {
                let rows = session.query(query!("outbox/find_last_row_up_to_progress"), &[]).await?;
                rows.first().map(|row| read_column(row, 0)).transpose()
            })
        });
        if let Some(last) = last.await? {
            while self.drain_rows(i64::MIN..=last, vec![]).await? > 0 {}
        }
        Ok(())
    }

    /// Writes the progress of the outbox, if it can advance.
    async fn advance_progress(&self, progress: &OutboxProgress) -> Result<(), StoreError> {
        match progress.next_step() {
            ProgressStep::NoWrite => Ok(()),
            ProgressStep::SetEmptyUpTo(number) => {
                self.execute(query!("outbox/set_empty_up_to", INT8), [number]).await.map(drop)
            }
            ProgressStep::RecordCandidate => {
                let set_candidate = query!("outbox/record_progress_candidate", INT8, INT8);
                self.execute(set_candidate, [progress.empty_up_to, progress.last_number]).await.map(drop)
            }
        }
    }

    /// Deletes expired receipts, idempotency keys and refused rows, in batches.
    async fn delete_expired_receipts_keys_refused(&self) -> Result<(), StoreError> {
        self.drain_rows_at_or_below_progress().await?;
        for (query, max_age) in [
            (query!("outbox/delete_expired_receipts", INT8, INT8), RECEIPT_RETENTION_SECONDS),
            (query!("outbox/delete_expired_idempotency_keys", INT8, INT8), RECEIPT_RETENTION_SECONDS),
            (query!("outbox/delete_expired_refused_rows", INT8, INT8), REFUSED_RETENTION_SECONDS),
        ] {
            while self.execute(query, [max_age, MAX_ROWS_PER_DELETE]).await?
                == MAX_ROWS_PER_DELETE.unsigned_abs()
            {}
        }
        self.update_refused_row_count().await
    }

    /// Updates the number of refused rows, which `/healthz` reports.
    async fn update_refused_row_count(&self) -> Result<(), StoreError> {
        let count = self.pool.run_single_statement((), |session, ()| {
            Box::pin(async {
                let rows = session.query(query!("outbox/count_refused_rows"), &[]).await?;
                rows.first().map_or(Ok(0), |row| read_column::<i64>(row, 0))
            })
        });
        self.refused_row_tracker.set_count(count.await?.unsigned_abs());
        Ok(())
    }

    /// Records the rows that were set aside; returns the number of drained rows.
    fn record_drain_result(&self, drained: &DrainResult) -> usize {
        self.refused_row_tracker.add(drained);
        drained.drained_row_count
    }

    /// Executes a single statement in a transaction of its own.
    async fn execute<const N: usize>(
        &self,
        query: &'static Query,
        numbers: [i64; N],
    ) -> Result<u64, StoreError> {
        self.pool
            .run_single_statement(numbers, move |session, numbers| {
                Box::pin(async move {
                    let params = numbers.each_ref().map(|number| number as _);
                    Ok(session.execute(query, &params).await?)
                })
            })
            .await
    }
}

impl OutboxState {
    fn from_rows(rows: &[Row]) -> TableResult<Self> {
        let mut state = Self {
            progress: OutboxProgress::default(),
            is_drainer_asleep: true,
            last_waiting_row_number: None,
            emits_to_prefetch: vec![],
        };
        for row in rows {
            let number: Option<i64> = read_column(row, 7)?;
            if state.last_waiting_row_number.is_none() {
                state.is_drainer_asleep = read_column(row, 0)?;
                state.progress = decode_progress(row, number)?;
            }
            if let Some(number) = number {
                state.last_waiting_row_number = Some(number);
                state.emits_to_prefetch.extend(decode_emit_to_prefetch(row)?);
            }
        }
        Ok(state)
    }
}

fn decode_progress(row: &Row, first_waiting: Option<i64>) -> TableResult<OutboxProgress> {
    Ok(OutboxProgress {
        empty_up_to: read_column(row, 1)?,
        candidate_number: read_column(row, 2)?,
        candidate_xact: read_column(row, 3)?,
        oldest_active_xact: read_column(row, 4)?,
        next_xact: read_column(row, 5)?,
        last_number: read_column(row, 6)?,
        first_waiting_row_number: first_waiting,
    })
}

/// Decodes the object and the idempotency key of a row, for the read set. None if the row is not an event.
fn decode_emit_to_prefetch(row: &Row) -> TableResult<Option<EmitBatch>> {
    let (event_type, tenant): (&str, &str) = (read_column(row, 8)?, read_column(row, 9)?);
    let (key, idempotency_key): (Option<&str>, Option<&str>) = (read_column(row, 10)?, read_column(row, 11)?);
    let (Ok(event_type), Ok(tenant)) = (EventType::new(event_type), Tenant::new(tenant)) else {
        return Ok(None);
    };
    let Ok(key) = key.map(ObjectKey::new).transpose() else { return Ok(None) };
    let idempotency_key = idempotency_key.filter(|key| outbox::is_valid_idempotency_key(key));
    let idempotency = idempotency_key.map(|key| IdempotencyKey {
        tenant: tenant.clone(),
        key: key.into(),
        request_digest: Default::default(),
    });
    let event = NewEvent { key, tenant, ..NewEvent::new(event_type) };
    Ok(Some(EmitBatch { events: vec![event], idempotency_key: idempotency }))
}

#[cfg(test)]
mod tests {
    use pointsman_core::Timestamp;
    use pointsman_testing::shared_postgres;

    use super::*;
    use crate::Postgres;

    #[tokio::test]
    async fn expired_receipts_keys_and_refused_rows_are_deleted() {
        let url = shared_postgres().unwrap().create_database().unwrap();
        let store = Postgres::open(&url, Timestamp::from_millis(1_800_000_000_000)).await.unwrap();
        let (pool, writer, caller_time) = (
            store.database().session_pool.clone(),
            store.writer().clone(),
            store.database().caller_time.clone(),
        );
        let drainer = OutboxDrainer { pool, writer, caller_time, refused_row_tracker: Arc::default() };
        let (server, database) = (shared_postgres().unwrap(), url.rsplit('/').next().unwrap());
        let insert_rows_sql = "
            CREATE FUNCTION ago(i bigint) RETURNS bigint LANGUAGE sql AS
                $$ SELECT extract(epoch FROM now() - (i - 0.5) * interval '1 minute')::bigint * 1000000 $$;
            INSERT INTO pointsman.receipt SELECT i, gen_random_uuid(), ago(12001 - i) FROM generate_series(1, 12000) i;
            INSERT INTO pointsman.outbox_idempotency_key SELECT 'default', i, '', gen_random_uuid(), ago(i)
                FROM generate_series(1, 12000) i;
            INSERT INTO pointsman.outbox_refused (n, type, tenant, value, priority, at, reason, refused_at)
                SELECT i, '', '', '', 0, 0, '', ago(i * 60 * 24) FROM generate_series(1, 60) i";
        server.query(database, insert_rows_sql).unwrap();
        drainer.delete_expired_receipts_keys_refused().await.unwrap();
        for (table, expected_count) in
            [("receipt", 24 * 60), ("outbox_idempotency_key", 24 * 60), ("outbox_refused", 30)]
        {
            let count = server.query(database, &format!("SELECT count(*) FROM pointsman.{table}")).unwrap();
            assert_eq!(count, [[Some(expected_count.to_string())]], "{table}");
        }
    }
}
