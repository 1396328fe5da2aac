//! The outbox: what was emitted in SQL becomes events.
//!
//! ```text
//!   pointsman.emit(…) ──commit──▶ outbox ──drain──▶ journal, tasks, receipt
//! ```
//!
//! It is drained in the order of arrival by whoever has the right to write, and by nobody else at that time: two who
//! each took a part could give an object's events their ids in the wrong order.

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

/// So many rows at most go in one transaction, and no more when they have so many bytes.
pub(crate) const MAX_ROWS: i64 = 1000;
const MAX_BYTES: i64 = 4 << 20;

/// What became of some rows.
#[derive(Debug, Default)]
pub(crate) struct DrainResult {
    pub(crate) rows: usize,
    /// Those that were set aside, and why.
    pub(crate) refused: Vec<(i64, String)>,
}

/// What the database could not keep, and its words for it: the first row of those that were taken.
pub(crate) type RejectedRowCell = OnceLock<(i64, String)>;

/// Sequences what stands in the outbox at these numbers, so many rows at most. If it fails for what is in them, the blame
/// says so.
pub(crate) fn drain(
    txn: &mut Txn<'_, PgTables>,
    numbers: RangeInclusive<i64>,
    max_rows: i64,
    now: Timestamp,
    rejected: &RejectedRowCell,
) -> Result<DrainResult> {
    // What others have written in this transaction goes with the question, so that whatever fails behind it is ours.
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

/// Sets one row aside for what the database said of it.
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

/// Journals an entry; answers its event, or why there is none.
///
/// In SQL the second use of an idempotency key leaves no entry. So if the key has a record, another request than
/// `pointsman.emit` wrote it, at any time before this drain: an emit over HTTP, or one that creates orders, runs, redrives
/// or adoptions. The event of an emit with the same content is returned; an entry with other content, or whose key was used
/// for another kind of request, is set aside. It must not fail: that would stop the outbox and fail all jobs of the commit.
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

/// Whether an event in the journal has the content of this one. When its tasks fall due and their priority is not in the
/// journal, and does not count. The content of an event that was pruned is not known: the key decides, and it is the same.
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

/// Which events receipts stand for, written all at once.
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

    /// Takes along what is held back, also where there are none: now it shows whether the database can keep it.
    fn write(self, tables: &PgTables) -> Result<()> {
        let Self { row_numbers, receipts, events } = self;
        let query = query!("outbox/insert_receipts", INT8_ARRAY, UUID_ARRAY, INT8_ARRAY);
        tables.query_rows(query, params![row_numbers, receipts, events]).map(drop)
    }
}
