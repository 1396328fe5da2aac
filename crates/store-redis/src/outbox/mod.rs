//! The outbox of document 001: producers in any language push events to a list of their object, and the object to
//! the queue of objects with events. This module journals them.
//!
//! ```text
//!   producer's MULTI: LPUSH OBJ:events …, LPUSH objects.with.events OBJ
//!       │ claim_objects.lua      a worker takes the object out of the line, and holds it
//!       │ read_outboxes.lua     its next event goes into flight and gets an id; others are looked at
//!       │ serve (here)  ids, prev, routes, tasks
//!       ▼ commit.lua    all of them are acknowledged, journaled and routed in one step, and the object is let go
//! ```
//!
//! A direct emit to an object first journals its outbox, whichever worker owns it: events keep the order in
//! which they were pushed.

mod drainer;
mod entry;
pub(crate) mod orphaned;

use pointsman_core::{EventId, NewEvent, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::tables::ReadSet;
use pointsman_store::{ClaimSlots, SetAsideEntryLog, Txn, add_emit_batches_to_read_set};

use crate::tables::RedisTables;
use crate::tables::outbox::{OutboxContents, OutboxRemainder};
pub(crate) use drainer::{drain_forever, requeue_forever};
pub(crate) use entry::encode_entry;
use entry::parse_entry;

/// Maximum number of rounds of entries journaled before the jobs of a transaction, because jobs on other objects wait
/// for it.
const MAX_ROUNDS: usize = 4;

/// A parsed outbox entry: an event, or why it is not one.
struct ParsedEntry {
    event: std::result::Result<NewEvent, String>,
    assigned_id: Option<EventId>,
}

/// Journals the outbox entries of the objects of a transaction. A large backlog is committed in rounds before the
/// transaction itself. Returns whether it was all: if not, jobs on these objects wait for the next transaction.
pub(crate) fn journal_outboxes(txn: &mut Txn<'_, RedisTables>) -> Result<bool> {
    let mut all = journal_contents(txn)?;
    for _ in 1..MAX_ROUNDS {
        if all {
            break;
        }
        txn.state.flush_changes(txn.tables)?;
        txn.tables.commit_and_continue()?;
        all = journal_contents(txn)?;
    }
    log_set_aside(txn.tables);
    Ok(all)
}

/// Logs entries that were set aside, if the last such line is long enough ago.
fn log_set_aside(tables: &RedisTables) {
    let due = tables.set_aside_log.borrow_mut().take_due_summary(std::time::Instant::now());
    if let Some((entries, example)) = due {
        tracing::warn!(
            entries,
            example,
            "outbox entries are not events; moved them to events.set.aside, where `pointsman doctor` shows the newest"
        );
    }
}

/// Journals the read entries; returns whether these were all. In-flight events go first, by their assigned ids.
fn journal_contents(txn: &mut Txn<'_, RedisTables>) -> Result<bool> {
    let (found, assigned_id) = txn.tables.take_outbox_contents();
    txn.state.reserve_event_ids(assigned_id);
    let all = txn.tables.record_outbox_backlog(&found);
    if found.is_empty() {
        return Ok(all);
    }
    let now = txn.tables.caller_time.now();
    let parsed: Vec<(OutboxContents, Vec<ParsedEntry>)> =
        found.into_iter().map(|found| parse_contents(found, now)).collect();
    prefetch_for_events(txn, &parsed)?;
    for (found, events) in &parsed {
        let headers = set_aside_headers(found, events, now, &mut txn.tables.set_aside_log.borrow_mut());
        txn.tables.acknowledge_outbox_entries(found, headers);
    }
    let events = parsed.into_iter().flat_map(|(_, events)| events);
    let (mut in_flight, queued): (Vec<ParsedEntry>, Vec<ParsedEntry>) =
        events.partition(|parsed| parsed.assigned_id.is_some());
    in_flight.sort_by_key(|parsed| parsed.assigned_id);
    journal_entries(txn, in_flight, now)?;
    journal_entries(txn, queued, now)?;
    Ok(all)
}

/// Parses the entries of an object's outbox.
fn parse_contents(found: OutboxContents, now: Timestamp) -> (OutboxContents, Vec<ParsedEntry>) {
    if found.remainder == OutboxRemainder::NotAList {
        let object = String::from_utf8_lossy(&found.object);
        tracing::warn!(%object, "outbox key of the object is not a list; skipping it, delete or rename the key");
    }
    let assigned_id = found.in_flight_id.as_ref().and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
    let events = found.entries.iter().enumerate().map(|(index, entry)| ParsedEntry {
        event: parse_entry(&found.object, entry, now),
        assigned_id: assigned_id.filter(|_| index == 0),
    });
    let events = events.collect();
    (found, events)
}

/// Fetches the rows needed to journal these events.
fn prefetch_for_events(
    txn: &mut Txn<'_, RedisTables>,
    parsed: &[(OutboxContents, Vec<ParsedEntry>)],
) -> Result<()> {
    let events = parsed.iter().flat_map(|(_, events)| events).filter_map(|parsed| parsed.event.as_ref().ok());
    let emission = pointsman_core::store::EmitBatch { events: events.cloned().collect(), idempotency: None };
    let mut read_set = ReadSet::default();
    add_emit_batches_to_read_set(&(vec![emission], None), txn.state, &mut read_set);
    txn.tables.prefetch(&read_set)
}

fn journal_entries(txn: &mut Txn<'_, RedisTables>, events: Vec<ParsedEntry>, now: Timestamp) -> Result<()> {
    for ParsedEntry { event, assigned_id } in events {
        if let Ok(event) = event {
            txn.append_event_with_id(event, assigned_id, &mut ClaimSlots::default(), now)?;
        }
    }
    Ok(())
}

/// Returns the header of each set-aside entry; empty for journaled ones.
fn set_aside_headers(
    found: &OutboxContents,
    events: &[ParsedEntry],
    now: Timestamp,
    log: &mut SetAsideEntryLog,
) -> Vec<String> {
    let header = |parsed: &ParsedEntry| match &parsed.event {
        Ok(_) => String::new(),
        Err(reason) => {
            let object = String::from_utf8_lossy(&found.object);
            log.count_entry(|| format!("object {object:?}: {reason}"));
            let header = serde_json::json!({"object": object, "reason": reason, "at": now});
            format!("{header}\n")
        }
    };
    events.iter().map(header).collect()
}
