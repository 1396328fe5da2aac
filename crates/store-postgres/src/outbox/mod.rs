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

use pointsman_core::store::{Emission, Sequenced};
use pointsman_core::{EventId, Json, NewEvent, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::tables::Tables;
use pointsman_store::{Room, Txn};
use uuid::Uuid;

use crate::error::{fault_text, is_value_rejected};
use crate::session::query;
use crate::tables::PgTables;
use crate::writer_connection::params;
pub(crate) use progress::{OutboxProgress, ProgressStep};
pub(crate) use refused_rows::RefusedRows;
use row::OutboxRow;
pub(crate) use row::is_idempotency_key;

/// Limits of a transaction: rows, and bytes.
pub(crate) const MAX_ROWS: i64 = 1000;
const MAX_BYTES: i64 = 4 << 20;

/// The result of draining some rows.
#[derive(Debug, Default)]
pub(crate) struct DrainResult {
    pub(crate) rows: usize,
    /// Numbers of rows that were set aside, with the reasons.
    pub(crate) refused: Vec<(i64, String)>,
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
    let first = rows.first().map_or(0, |row| row.n);
    let drained = journal_rows(txn, rows, now);
    if let Err(fault) = &drained
        && is_value_rejected(fault)
    {
        let _ = rejected.set((first, fault_text(fault)));
    }
    drained
}

/// Sets one row aside with the database's message.
pub(crate) fn set_row_aside(
    txn: &Txn<'_, PgTables>,
    n: i64,
    reason: &str,
    now: Timestamp,
) -> Result<DrainResult> {
    let mut drained = DrainResult::default();
    for row in take_rows(txn.tables, n..=n, 1)? {
        drained.rows += 1;
        drained.refused.push((n, reason.into()));
        insert_refused_row(txn.tables, row, reason.into(), now)?;
    }
    Ok(drained)
}

fn take_rows(tables: &PgTables, numbers: RangeInclusive<i64>, max_rows: i64) -> Result<Vec<OutboxRow>> {
    let query = query!("outbox/take_rows", INT8, INT8, INT8, INT8);
    let params = params![*numbers.start(), *numbers.end(), max_rows, MAX_BYTES];
    tables.query_rows(query, params)?.iter().map(OutboxRow::from_row).collect()
}

fn journal_rows(txn: &mut Txn<'_, PgTables>, rows: Vec<OutboxRow>, now: Timestamp) -> Result<DrainResult> {
    let mut drained = DrainResult { rows: rows.len(), ..DrainResult::default() };
    let mut receipts = Receipts::default();
    for row in rows {
        let sequenced = match row.to_emission(now) {
            Ok(emission) => journal_emission(txn, emission, now)?,
            Err(fault) => Err(fault.to_string()),
        };
        match sequenced {
            Ok(event) => receipts.add(&row, event),
            Err(reason) => {
                drained.refused.push((row.n, reason.clone()));
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
fn journal_emission(
    txn: &mut Txn<'_, PgTables>,
    emission: Emission,
    now: Timestamp,
) -> Result<std::result::Result<EventId, String>> {
    let Emission { events, idempotency } = emission;
    if let Some(used) = &idempotency
        && let Some((_, answer)) = txn.tables.answer(&used.tenant, &used.key)?
    {
        let reason = format!("idempotency_key: the idempotency key {:?} was used before", used.key);
        let earlier: Vec<Sequenced> = serde_json::from_str(&answer).unwrap_or_default();
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
    let sequenced = txn.journal(events, &mut Room::default(), now)?;
    if let Some(used) = &idempotency {
        let answer = serde_json::to_string(&sequenced).map_err(Fault::damaged)?;
        txn.tables.put_answer(used, &answer, now)?;
    }
    last_event_id(&sequenced).map(Ok)
}

/// True if an event in the journal has the content of this one. Due times and priorities are not in the journal, and do
/// not count. The content of a pruned event is unknown: the equal key decides.
fn has_same_content(tables: &PgTables, event: EventId, new: Option<&NewEvent>) -> Result<bool> {
    let Some(new) = new else { return Ok(false) };
    let Some(event) = tables.event(event)? else { return Ok(true) };
    let value = |json: &Json| serde_json::from_str::<serde_json::Value>(json.as_str()).ok();
    Ok((&event.kind, &event.key, &event.sub, &event.context) == (&new.kind, &new.key, &new.sub, &new.context)
        && value(&event.value) == value(&new.value))
}

fn last_event_id(events: &[Sequenced]) -> Result<EventId> {
    events.last().map(|event| event.id).ok_or_else(|| Fault::damaged("an emission without events"))
}

/// The events of receipts, written all at once.
#[derive(Debug, Default)]
struct Receipts {
    row_numbers: Vec<i64>,
    receipts: Vec<Uuid>,
    events: Vec<i64>,
}

impl Receipts {
    fn add(&mut self, row: &OutboxRow, event: EventId) {
        if let Some(receipt) = row.receipt {
            self.row_numbers.push(row.n);
            self.receipts.push(receipt);
            self.events.push(event.as_i64());
        }
    }

    /// Also flushes the write batch if there are no receipts, so that a rejected value fails here.
    fn write(self, tables: &PgTables) -> Result<()> {
        let Self { row_numbers, receipts, events } = self;
        let query = query!("outbox/insert_receipts", INT8_ARRAY, UUID_ARRAY, INT8_ARRAY);
        tables.query_rows(query, params![row_numbers, receipts, events]).map(drop)
    }
}
