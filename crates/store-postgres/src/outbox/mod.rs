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

use pointsman_core::store::{Emission, Sequenced};
use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::tables::Tables;
use pointsman_store::{Room, Txn};
use uuid::Uuid;

use crate::link::params;
use crate::session::query;
use crate::tables::PgTables;
use entry::Entry;
pub(crate) use mark::{Standing, Step};

/// So many rows at most go in one transaction, and no more when they have so many bytes.
pub(crate) const MOST: i64 = 1000;
const MOST_BYTES: i64 = 4 << 20;

/// Sequences what stands in the outbox behind one number and not behind another. Answers how many rows it took.
pub(crate) fn drain(txn: &mut Txn<'_, PgTables>, behind: i64, up_to: i64, now: Timestamp) -> Result<usize> {
    let take = query!("outbox/take", INT8, INT8, INT8, INT8);
    let rows = txn.tables.ask(take, params![behind, up_to, MOST, MOST_BYTES])?;
    let mut receipts = Receipts::default();
    for row in &rows {
        let entry = Entry::of(row)?;
        match entry.emission(now) {
            Ok(emission) => receipts.note(&entry, sequence(txn, emission, now)?),
            Err(fault) => {
                tracing::warn!(n = entry.n, %fault, "a row of the outbox is not an event and was set aside");
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
                txn.tables.ask(refuse, entry.set_aside(&fault, now))?;
            }
        }
    }
    receipts.write(txn.tables)?;
    Ok(rows.len())
}

/// Journals what an entry asks for. If its idempotency key was used before, it was over HTTP, because in SQL the second
/// to use it leaves no entry: then it stands for the event that was made then.
fn sequence(txn: &mut Txn<'_, PgTables>, emission: Emission, now: Timestamp) -> Result<EventId> {
    let Emission { events, idempotency } = emission;
    if let Some(used) = &idempotency
        && let Some((_, answer)) = txn.tables.answer(&used.tenant, &used.key)?
    {
        let earlier: Vec<Sequenced> = serde_json::from_str(&answer).map_err(Fault::damaged)?;
        return last_of(&earlier);
    }
    let sequenced = txn.journal(events, &mut Room::default(), now)?;
    if let Some(used) = &idempotency {
        let answer = serde_json::to_string(&sequenced).map_err(Fault::damaged)?;
        txn.tables.put_answer(used, &answer, now)?;
    }
    last_of(&sequenced)
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

    fn write(self, tables: &PgTables) -> Result<()> {
        if self.places.is_empty() {
            return Ok(());
        }
        let Self { places, receipts, events } = self;
        let note = query!("outbox/note_receipts", INT8_ARRAY, UUID_ARRAY, INT8_ARRAY);
        tables.ask(note, params![places, receipts, events]).map(drop)
    }
}
