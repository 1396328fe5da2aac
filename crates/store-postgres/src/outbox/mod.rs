//! The outbox: what was emitted in SQL becomes events.
//!
//! ```text
//!   pointsman.emit(…) ──commit──▶ outbox ──drain──▶ journal, tasks, receipt
//! ```
//!
//! It is drained in the order of arrival by whoever has the right to write, and by nobody else at that time: two who
//! each took a part could give an object's events their ids in the wrong order.

mod entry;
mod mark;
mod refused;

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use pointsman_core::store::{Emission, Sequenced};
use pointsman_core::{EventId, Json, NewEvent, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::tables::Tables;
use pointsman_store::{Room, Txn};
use uuid::Uuid;

use crate::error::{is_of_contents, words};
use crate::link::params;
use crate::session::query;
use crate::tables::PgTables;
use entry::Entry;
pub(crate) use entry::is_idempotency_key;
pub(crate) use mark::{Standing, Step};
pub(crate) use refused::RefusedRows;

/// So many rows at most go in one transaction, and no more when they have so many bytes.
pub(crate) const MOST: i64 = 1000;
const MOST_BYTES: i64 = 4 << 20;

/// What became of some rows.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    pub(crate) rows: usize,
    /// Those that were set aside, and why.
    pub(crate) refused: Vec<(i64, String)>,
}

/// What the database could not keep, and its words for it: the first row of those that were taken.
pub(crate) type Blame = OnceLock<(i64, String)>;

/// Sequences what stands in the outbox at these numbers, so many rows at most. If it fails for what is in them, the blame
/// says so.
pub(crate) fn drain(
    txn: &mut Txn<'_, PgTables>,
    numbers: RangeInclusive<i64>,
    most: i64,
    now: Timestamp,
    blame: &Blame,
) -> Result<Drained> {
    // What others have written in this transaction goes with the question, so that whatever fails behind it is ours.
    let rows = take(txn.tables, numbers, most)?;
    let first = rows.first().map_or(0, |entry| entry.n);
    let drained = keep(txn, rows, now);
    if let Err(fault) = &drained
        && is_of_contents(fault)
    {
        let _ = blame.set((first, words(fault)));
    }
    drained
}

/// Sets one row aside for what the database said of it.
pub(crate) fn set_aside(txn: &Txn<'_, PgTables>, n: i64, reason: &str, now: Timestamp) -> Result<Drained> {
    let mut drained = Drained::default();
    for entry in take(txn.tables, n..=n, 1)? {
        drained.rows += 1;
        drained.refused.push((n, reason.into()));
        refuse(txn.tables, entry, reason.into(), now)?;
    }
    Ok(drained)
}

fn take(tables: &PgTables, numbers: RangeInclusive<i64>, most: i64) -> Result<Vec<Entry>> {
    let take = query!("outbox/take", INT8, INT8, INT8, INT8);
    let asked = params![*numbers.start(), *numbers.end(), most, MOST_BYTES];
    tables.ask(take, asked)?.iter().map(Entry::of).collect()
}

fn keep(txn: &mut Txn<'_, PgTables>, rows: Vec<Entry>, now: Timestamp) -> Result<Drained> {
    let mut drained = Drained { rows: rows.len(), ..Drained::default() };
    let mut receipts = Receipts::default();
    for entry in rows {
        let sequenced = match entry.emission(now) {
            Ok(emission) => sequence(txn, emission, now)?,
            Err(fault) => Err(fault.to_string()),
        };
        match sequenced {
            Ok(event) => receipts.note(&entry, event),
            Err(reason) => {
                drained.refused.push((entry.n, reason.clone()));
                refuse(txn.tables, entry, reason, now)?;
            }
        }
    }
    receipts.write(txn.tables)?;
    Ok(drained)
}

fn refuse(tables: &PgTables, entry: Entry, reason: String, now: Timestamp) -> Result<()> {
    let refuse = query!(
        "outbox/refuse",
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
    tables.ask(refuse, entry.set_aside(reason, now)).map(drop)
}

/// Journals an entry; answers its event, or why there is none.
///
/// In SQL the second use of an idempotency key leaves no entry. So if the key has a record, another request than
/// `pointsman.emit` wrote it, at any time before this drain: an emit over HTTP, or one that creates orders, runs, redrives
/// or adoptions. The event of an emit with the same content is returned; an entry with other content, or whose key was used
/// for another kind of request, is set aside. It must not fail: that would stop the outbox and fail all jobs of the commit.
fn sequence(
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
        let is_same = earlier.len() == events.len() && has_content_of(txn.tables, event, events.last())?;
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
    last_of(&sequenced).map(Ok)
}

/// Whether an event in the journal has the content of this one. When its tasks fall due and their priority is not in the
/// journal, and does not count. The content of an event that was pruned is not known: the key decides, and it is the same.
fn has_content_of(tables: &PgTables, event: EventId, new: Option<&NewEvent>) -> Result<bool> {
    let Some(new) = new else { return Ok(false) };
    let Some(event) = tables.event(event)? else { return Ok(true) };
    let value = |json: &Json| serde_json::from_str::<serde_json::Value>(json.as_str()).ok();
    Ok((&event.kind, &event.key, &event.sub, &event.context) == (&new.kind, &new.key, &new.sub, &new.context)
        && value(&event.value) == value(&new.value))
}

fn last_of(events: &[Sequenced]) -> Result<EventId> {
    events.last().map(|event| event.id).ok_or_else(|| Fault::damaged("an emission without events"))
}

/// Which events receipts stand for, written all at once.
#[derive(Debug, Default)]
struct Receipts {
    places: Vec<i64>,
    receipts: Vec<Uuid>,
    events: Vec<i64>,
}

impl Receipts {
    fn note(&mut self, entry: &Entry, event: EventId) {
        if let Some(receipt) = entry.receipt {
            self.places.push(entry.n);
            self.receipts.push(receipt);
            self.events.push(event.as_i64());
        }
    }

    /// Takes along what is held back, also where there are none: now it shows whether the database can keep it.
    fn write(self, tables: &PgTables) -> Result<()> {
        let Self { places, receipts, events } = self;
        let note = query!("outbox/note_receipts", INT8_ARRAY, UUID_ARRAY, INT8_ARRAY);
        tables.ask(note, params![places, receipts, events]).map(drop)
    }
}
