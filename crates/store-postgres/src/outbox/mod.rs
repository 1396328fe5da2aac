//! The outbox: events emitted in SQL, until they are journaled.
//!
//! ```text
//!   pointsman.emit(…) ──commit──▶ outbox ──drain──▶ journal, tasks, receipt
//! ```
//!
//! Only the node that has the write lock drains the outbox, in order: two nodes that each drained a part could assign
//! ids to an object's events in the wrong order.

mod progress;
mod refused_rows;
mod row;

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use pointsman_core::store::{EmitBatch, EmittedEventReceipt};
use pointsman_core::{EventId, Json, NewEvent, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::tables::{EventTable, IdempotencyTable};
use pointsman_store::{PendingClaim, Txn};
use uuid::Uuid;

use crate::error::{find_db_error, is_value_rejected};
use crate::session::query;
use crate::tables::PgTables;
use crate::writer_connection::params;
pub(crate) use progress::{OutboxProgress, ProgressStep};
pub(crate) use refused_rows::RefusedRowTracker;
use row::OutboxRow;
pub(crate) use row::is_valid_idempotency_key;

/// Limits of rows and of bytes that one transaction drains.
pub(crate) const MAX_ROWS_PER_DRAIN: i64 = 1000;
const MAX_BYTES_PER_DRAIN: i64 = 4 << 20;

/// The result of draining some rows.
#[derive(Debug, Default)]
pub(crate) struct DrainResult {
    /// Number of rows that were removed from the outbox, including those that were set aside.
    pub(crate) drained_row_count: usize,
    /// Numbers of rows that were set aside, with the reasons.
    pub(crate) refused_rows: Vec<(i64, String)>,
}

/// Set if the database rejected one of the drained rows: the number of the first of these rows, and the message.
pub(crate) type RejectedRowCell = OnceLock<(i64, String)>;

/// Journals the rows of the outbox at these numbers, at most `max_rows`. If the database rejects a value of a row,
/// `rejected` is set.
pub(crate) fn drain_rows(
    txn: &mut Txn<'_, PgTables>,
    numbers: RangeInclusive<i64>,
    max_rows: i64,
    now: Timestamp,
    rejected: &RejectedRowCell,
) -> TableResult<DrainResult> {
    // The query also sends the buffered writes of other jobs of this transaction, so that any later failure is caused
    // by these rows.
    let rows = take_rows(txn.tables, numbers, max_rows)?;
    let first = rows.first().map_or(0, |row| row.number);
    let drained = journal_rows(txn, rows, now);
    if let Err(fault) = &drained
        && is_value_rejected(fault)
        && let Some(error) = find_db_error(fault)
    {
        let _ = rejected.set((first, error.message().into()));
    }
    drained
}

/// Sets the row at a number aside, with the reason; nothing if it no longer exists.
pub(crate) fn refuse_row(
    txn: &mut Txn<'_, PgTables>,
    row_number: i64,
    reason: &str,
    now: Timestamp,
) -> TableResult<DrainResult> {
    let mut drained = DrainResult::default();
    for row in take_rows(txn.tables, row_number..=row_number, 1)? {
        drained.drained_row_count += 1;
        drained.refused_rows.push((row_number, reason.into()));
        insert_refused_row(txn.tables, row, reason.into(), now)?;
    }
    Ok(drained)
}

/// Removes rows from the outbox, and returns them.
fn take_rows(
    tables: &mut PgTables,
    numbers: RangeInclusive<i64>,
    max_rows: i64,
) -> TableResult<Vec<OutboxRow>> {
    let query = query!("outbox/take_rows", INT8, INT8, INT8, INT8);
    let params = params![*numbers.start(), *numbers.end(), max_rows, MAX_BYTES_PER_DRAIN];
    tables.query_rows(query, params)?.iter().map(OutboxRow::from_row).collect()
}

fn journal_rows(
    txn: &mut Txn<'_, PgTables>,
    rows: Vec<OutboxRow>,
    now: Timestamp,
) -> TableResult<DrainResult> {
    let mut drained = DrainResult { drained_row_count: rows.len(), ..DrainResult::default() };
    let mut receipts = ReceiptBatch::default();
    for row in rows {
        let sequenced = match row.to_emit_batch(now) {
            Ok(emit_batch) => journal_emit_batch(txn, emit_batch, now)?,
            Err(error) => Err(error.to_string()),
        };
        match sequenced {
            Ok(event) => receipts.add(&row, event),
            Err(reason) => {
                drained.refused_rows.push((row.number, reason.clone()));
                insert_refused_row(txn.tables, row, reason, now)?;
            }
        }
    }
    receipts.write(txn.tables)?;
    Ok(drained)
}

fn insert_refused_row(
    tables: &mut PgTables,
    row: OutboxRow,
    reason: String,
    now: Timestamp,
) -> TableResult<()> {
    let query = query!(
        "outbox/insert_refused_row",
        INT8,
        UUID,
        TEXT,
        TEXT,
        TEXT,
        TEXT,
        TEXT,
        TEXT,
        INT8,
        INT4,
        TEXT,
        BYTEA,
        INT8,
        TEXT,
        INT8
    );
    tables.query_rows(query, row.refused_row_params(reason, now)).map(drop)
}

/// Journals the event of a row; returns its id, or the reason why the row is set aside.
///
/// In SQL the second use of an idempotency key writes no row. So if the key has a record, another request than
/// `pointsman.emit` wrote it, at any time before this drain: an emit over HTTP, or one that creates orders, runs,
/// redrives or adoptions. The event of an emit with the same content is returned; a row with other content, or whose
/// key was used for another kind of request, is set aside. Such a row must not be an error: that would stop the outbox
/// and fail all jobs of the commit.
fn journal_emit_batch(
    txn: &mut Txn<'_, PgTables>,
    emit_batch: EmitBatch,
    now: Timestamp,
) -> TableResult<Result<EventId, String>> {
    let EmitBatch { events, idempotency_key: idempotency } = emit_batch;
    if let Some(key) = &idempotency
        && let Some((_, response)) = txn.tables.read_idempotency_record(&key.tenant, &key.key)?
    {
        let reason = format!("idempotency_key: the idempotency key {:?} was used before", key.key);
        let earlier_events: Vec<EmittedEventReceipt> = serde_json::from_str(&response).unwrap_or_default();
        let Some(event) = earlier_events.last().map(|event| event.id) else {
            return Ok(Err(format!("{reason} for another request")));
        };
        let is_same =
            earlier_events.len() == events.len() && has_same_content(txn.tables, event, events.last())?;
        return Ok(if is_same {
            Ok(event)
        } else {
            Err(format!("{reason} with other content, for event {event}"))
        });
    }
    let sequenced = txn.append_events(events, &mut PendingClaim::default(), now)?;
    if let Some(key) = &idempotency {
        let response = serde_json::to_string(&sequenced).map_err(Fault::damaged)?;
        txn.tables.write_idempotency_record(key, &response, now)?;
    }
    last_event_id(&sequenced).map(Ok)
}

/// True if an event in the journal has the content of this one. Due times and priorities are not in the journal, and do
/// not count. The content of a pruned event is unknown: the equal key decides.
fn has_same_content(
    tables: &mut PgTables,
    event: EventId,
    new_event: Option<&NewEvent>,
) -> TableResult<bool> {
    let Some(new_event) = new_event else { return Ok(false) };
    let Some(event) = tables.read_event(event)? else { return Ok(true) };
    let parse = |json: &Json| serde_json::from_str::<serde_json::Value>(json.as_str()).ok();
    Ok((&event.event_type, &event.key, &event.sub_object, &event.context)
        == (&new_event.event_type, &new_event.key, &new_event.sub_object, &new_event.context)
        && parse(&event.value) == parse(&new_event.value))
}

fn last_event_id(events: &[EmittedEventReceipt]) -> TableResult<EventId> {
    events.last().map(|event| event.id).ok_or_else(|| Fault::damaged("an emission without events"))
}

/// Receipts with the events of their rows, written all at once.
#[derive(Debug, Default)]
struct ReceiptBatch {
    row_numbers: Vec<i64>,
    receipt_ids: Vec<Uuid>,
    event_ids: Vec<i64>,
}

impl ReceiptBatch {
    fn add(&mut self, row: &OutboxRow, event: EventId) {
        if let Some(receipt) = row.receipt {
            self.row_numbers.push(row.number);
            self.receipt_ids.push(receipt);
            self.event_ids.push(event.as_i64());
        }
    }

    /// Also flushes the write batch if there are no receipts, so that a rejected value fails here.
    fn write(self, tables: &mut PgTables) -> TableResult<()> {
        let Self { row_numbers, receipt_ids: receipts, event_ids: events } = self;
        let query = query!("outbox/insert_receipts", INT8_ARRAY, UUID_ARRAY, INT8_ARRAY);
        tables.query_rows(query, params![row_numbers, receipts, events]).map(drop)
    }
}
