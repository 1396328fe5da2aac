//! The outbox of document 001: producers in any language leave events in a list of their object, and put the object into
//! the line of those that have events. Here they become events of the journal.
//!
//! ```text
//!   producer's MULTI: LPUSH OBJ:events …, LPUSH objects.with.events OBJ
//!       │ take.lua      a worker takes the object out of the line, and holds it
//!       │ serve.lua     its next event goes into flight and gets an id; others are looked at
//!       │ serve (here)  ids, prev, routes, tasks
//!       ▼ commit.lua    all of them are acknowledged, journaled and routed in one step, and the object is let go
//! ```
//!
//! Whoever emits directly to an object journals first what lies in its outbox, whoever holds it: its events keep the order in
//! which they were left.

mod drainer;
mod entry;
pub(crate) mod stray;

use pointsman_core::{EventId, NewEvent, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::tables::Foreseen;
use pointsman_store::{Room, SetAsideLog, Txn, foresee_emissions};

use crate::tables::RedisTables;
use crate::tables::outbox::{OutboxContents, OutboxRemainder};
pub(crate) use drainer::{run, sweep};
pub(crate) use entry::element;
use entry::read;

/// So many pieces of what was left are journaled before the jobs of a transaction: those that write to other objects wait
/// for them.
const PIECES: usize = 4;

/// Something of an outbox, read: an event, or why it is none.
struct Left {
    event: std::result::Result<NewEvent, String>,
    given: Option<EventId>,
}

/// Journals what was left for the objects of a transaction. Where that is much, it is committed a piece at a time before the
/// transaction itself. Answers whether it is all: if not, whoever writes to one of these objects waits for the next one.
pub(crate) fn serve(txn: &mut Txn<'_, RedisTables>) -> Result<bool> {
    let mut all = journal_all(txn)?;
    for _ in 1..PIECES {
        if all {
            break;
        }
        txn.state.flush(txn.tables)?;
        txn.tables.commit_and_continue()?;
        all = journal_all(txn)?;
    }
    log_set_aside(txn.tables);
    Ok(all)
}

/// Logs entries that were set aside, if the last such line is long enough ago.
fn log_set_aside(tables: &RedisTables) {
    let due = tables.set_aside_log.borrow_mut().take_due(std::time::Instant::now());
    if let Some((entries, example)) = due {
        tracing::warn!(
            entries,
            example,
            "outbox entries are not events; moved them to events.set.aside, where `pointsman doctor` shows the newest"
        );
    }
}

/// Journals what was found; answers whether that was all. What is in flight goes first, by the ids that it was given.
fn journal_all(txn: &mut Txn<'_, RedisTables>) -> Result<bool> {
    let (found, given) = txn.tables.take_outbox_contents();
    txn.state.reserve_ids(given);
    let all = txn.tables.record_outbox_backlog(&found);
    if found.is_empty() {
        return Ok(all);
    }
    let now = txn.tables.caller_time.now();
    let left: Vec<(OutboxContents, Vec<Left>)> =
        found.into_iter().map(|found| understand(found, now)).collect();
    look_ahead(txn, &left)?;
    for (found, events) in &left {
        let headers = headers(found, events, now, &mut txn.tables.set_aside_log.borrow_mut());
        txn.tables.acknowledge_outbox_entries(found, headers);
    }
    let events = left.into_iter().flat_map(|(_, events)| events);
    let (mut flying, queued): (Vec<Left>, Vec<Left>) = events.partition(|left| left.given.is_some());
    flying.sort_by_key(|left| left.given);
    journal(txn, flying, now)?;
    journal(txn, queued, now)?;
    Ok(all)
}

/// Reads what was found in an object's outbox.
fn understand(found: OutboxContents, now: Timestamp) -> (OutboxContents, Vec<Left>) {
    if found.remainder == OutboxRemainder::NotAList {
        let object = String::from_utf8_lossy(&found.object);
        tracing::warn!(%object, "what lies in the place of an object's events is no list, and was left there");
    }
    let given = found.in_flight_id.as_ref().and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
    let events = found.entries.iter().enumerate().map(|(index, entry)| Left {
        event: read(&found.object, entry, now),
        given: given.filter(|_| index == 0),
    });
    let events = events.collect();
    (found, events)
}

/// Fetches what journaling these will look at.
fn look_ahead(txn: &mut Txn<'_, RedisTables>, left: &[(OutboxContents, Vec<Left>)]) -> Result<()> {
    let events = left.iter().flat_map(|(_, events)| events).filter_map(|left| left.event.as_ref().ok());
    let emission = pointsman_core::store::Emission { events: events.cloned().collect(), idempotency: None };
    let mut foreseen = Foreseen::default();
    foresee_emissions(&(vec![emission], None), txn.state, &mut foreseen);
    txn.tables.prefetch(&foreseen)
}

fn journal(txn: &mut Txn<'_, RedisTables>, events: Vec<Left>, now: Timestamp) -> Result<()> {
    for Left { event, given } in events {
        if let Ok(event) = event {
            txn.journal_given(event, given, &mut Room::default(), now)?;
        }
    }
    Ok(())
}

/// What stands before each event that is set aside; nothing for those that are journaled.
fn headers(found: &OutboxContents, events: &[Left], now: Timestamp, log: &mut SetAsideLog) -> Vec<String> {
    let header = |left: &Left| match &left.event {
        Ok(_) => String::new(),
        Err(reason) => {
            let object = String::from_utf8_lossy(&found.object);
            log.add(|| format!("object {object:?}: {reason}"));
            let told = serde_json::json!({"object": object, "reason": reason, "at": now});
            format!("{told}\n")
        }
    };
    events.iter().map(header).collect()
}
