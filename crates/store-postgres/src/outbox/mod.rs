//! The outbox: events emitted in SQL, until they are journaled.
//!
//! ```text
//!   pointsman.emit(…) ──commit──▶ outbox ──drain──▶ journal, tasks, receipt
//! ```
//!
//! It is drained in order by the node that has the write lock, and by no other at that time: two that drained parts
//! could assign ids to an object's events in the wrong order.

mod progress;
mod refused_rows;
mod row;

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use pointsman_core::store::{EmitBatch, SequencedEvent};
use pointsman_core::{EventId, Json, NewEvent, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::tables::Tables;
use pointsman_store::{ClaimSlots, Txn};
use uuid::Uuid;

use crate::error::{format_fault, is_value_rejected};
use crate::session::query;
use crate::tables::PgTables;
use crate::writer_connection::params;
pub(crate) use progress::{OutboxProgress, ProgressStep};
pub(crate) use refused_rows::RefusedRowTracker;
use row::OutboxRow;
pub(crate) use row::is_valid_idempotency_key;

/// Limits of a transaction: rows, and bytes.
pub(crate) const MAX_ROWS_PER_DRAIN: i64 = 1000;
const MAX_BYTES_PER_DRAIN: i64 = 4 << 20;

/// The result of draining some rows.
#[derive(Debug, Default)]
pub(crate) struct DrainResult {
    pub(crate) drained_rows: usize,
    /// Numbers of rows that were set aside, with the reasons.
    pub(crate) refused_rows: Vec<(i64, String)>,
}

/// The first of the drained rows if the database rejected one of them, with its message.
pub(crate) type RejectedRowCell = OnceLock<(i64, String)>;

/// Journals the rows of the outbox at these numbers, at most `max_rows`. If the database rejects a value of theirs,
/// `rejected` is set.
pub(crate) fn drain(
    txn: &mut Txn<'_, PgTables>,
    numbers: RangeInclusive<i64>,
    max_rows: i64,
    now: Timestamp,
    rejected: &RejectedRowCell,
) -> Result<DrainResult> {
    // The query also sends what other jobs have written in this transaction, so that any later failure is caused by
    // these rows.
    let rows = take_rows(txn.tables, numbers, max_rows)?;
    let first = rows.first().map_or(0, |row| row.number);
    let drained = journal_rows(txn, rows, now);
    if let Err(fault) = &drained
        && is_value_rejected(fault)
    {
        let _ = rejected.set((first, format_fault(fault)));
    }
    drained
}

/// Sets one row aside with the database's message.
pub(crate) fn refuse_row(
    txn: &Txn<'_, PgTables>,
    n: i64,
    reason: &str,
    now: Timestamp,
) -> Result<DrainResult> {
    let mut drained = DrainResult::default();
    for row in take_rows(txn.tables, n..=n, 1)? {
        drained.drained_rows += 1;
        drained.refused_rows.push((n, reason.into()));
        insert_refused_row(txn.tables, row, reason.into(), now)?;
    }
    Ok(drained)
}

fn take_rows(tables: &PgTables, numbers: RangeInclusive<i64>, max_rows: i64) -> Result<Vec<OutboxRow>> {
    let query = query!("outbox/take_rows", INT8, INT8, INT8, INT8);
    let params = params![*numbers.start(), *numbers.end(), max_rows, MAX_BYTES_PER_DRAIN];
    tables.query_rows(query, params)?.iter().map(OutboxRow::from_row).collect()
}

fn journal_rows(txn: &mut Txn<'_, PgTables>, rows: Vec<OutboxRow>, now: Timestamp) -> Result<DrainResult> {
    let mut drained = DrainResult { drained_rows: rows.len(), ..DrainResult::default() };
    let mut receipts = ReceiptBatch::default();
    for row in rows {
        let sequenced = match row.to_emit_batch(now) {
            Ok(emission) => journal_emit_batch(txn, emission, now)?,
            Err(fault) => Err(fault.to_string()),
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

fn insert_refused_row(tables: &PgTables, row: OutboxRow, reason: String, now: Timestamp) -> Result<()> {
    let query = query!(
        "outbox/insert_refused",
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

/// Journals the event of a row; returns its id, or the reason why it is not an event.
///
/// In SQL the second use of an idempotency key writes no row. So if the key has a record, another request than
/// `pointsman.emit` wrote it, at any time before this drain: an emit over HTTP, or one that creates orders, runs,
/// redrives or adoptions. The event of an emit with the same content is returned; a row with other content, or whose
/// key was used for another kind of request, is set aside. It must not fail: that would stop the outbox and fail all
/// jobs of the commit.
fn journal_emit_batch(
    txn: &mut Txn<'_, PgTables>,
    emission: EmitBatch,
    now: Timestamp,
) -> Result<std::result::Result<EventId, String>> {
    let EmitBatch { events, idempotency } = emission;
    if let Some(used) = &idempotency
        && let Some((_, answer)) = txn.tables.read_idempotency_record(&used.tenant, &used.key)?
    {
        let reason = format!("idempotency_key: the idempotency key {:?} was used before", used.key);
        let earlier: Vec<SequencedEvent> = serde_json::from_str(&answer).unwrap_or_default();
        let Some(event) = earlier.last().map(|event| event.id) else {
            return Ok(Err(format!("{reason} for another request")));
        };
        let is_same = earlier.len() == events.len() && has_same_content(txn.tables, event, events.last())?;
        return Ok(if is_same {
            Ok(event)
        } else {
            Err(format!("{reason} with other content, for event {event}"))
        });
    }
    let sequenced = txn.append_events(events, &mut ClaimSlots::default(), now)?;
    if let Some(used) = &idempotency {
        let answer = serde_json::to_string(&sequenced).map_err(Fault::damaged)?;
        txn.tables.write_idempotency_record(used, &answer, now)?;
    }
    last_event_id(&sequenced).map(Ok)
}

/// True if an event in the journal has the content of this one. Due times and priorities are not in the journal, and do
/// not count. The content of a pruned event is unknown: the equal key decides.
fn has_same_content(tables: &PgTables, event: EventId, new: Option<&NewEvent>) -> Result<bool> {
    let Some(new) = new else { return Ok(false) };
    let Some(event) = tables.read_event(event)? else { return Ok(true) };
    let value = |json: &Json| serde_json::from_str::<serde_json::Value>(json.as_str()).ok();
    Ok((&event.kind, &event.key, &event.sub_object, &event.context)
        == (&new.kind, &new.key, &new.sub_object, &new.context)
        && value(&event.value) == value(&new.value))
}

fn last_event_id(events: &[SequencedEvent]) -> Result<EventId> {
    events.last().map(|event| event.id).ok_or_else(|| Fault::damaged("an emission without events"))
}

/// The events of receipts, written all at once.
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
    fn write(self, tables: &PgTables) -> Result<()> {
        let Self { row_numbers, receipt_ids: receipts, event_ids: events } = self;
        let query = query!("outbox/insert_receipts", INT8_ARRAY, UUID_ARRAY, INT8_ARRAY);
        tables.query_rows(query, params![row_numbers, receipts, events]).map(drop)
    }
}
