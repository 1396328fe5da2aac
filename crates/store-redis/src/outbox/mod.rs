//! The outbox of document 001: producers in any language push events to a list of their object, and the object's name to
//! the queue of objects with events. This module journals the events.
//!
//! ```text
//!   producer's MULTI: LPUSH OBJ:events …, LPUSH objects.with.events OBJ
//!       │ claim_objects.lua   a worker removes the object from the queue and becomes its owner
//!       │ read_outboxes.lua   moves its next event in flight, with an assigned id, and reads the following ones
//!       │ journal_outboxes    assigns ids and prev, and creates tasks (this file)
//!       ▼ commit.lua          journals the events, acknowledges their entries and releases the object, in one step
//! ```
//!
//! A transaction that emits to an object directly journals its outbox first, whichever worker owns the object, so that
//! events keep the order in which they were pushed and emitted.

mod drainer;
mod entry;
pub(crate) mod orphaned_objects;

use pointsman_core::{EventId, NewEvent, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::tables::ReadSet;
use pointsman_store::{PendingClaim, SetAsideEntryLog, Txn, add_emit_batches_to_read_set};

use crate::tables::RedisTables;
use crate::tables::outbox::{OutboxContents, OutboxRemainder};
pub(crate) use drainer::{drain_outbox, requeue_objects_of_dead_workers};
pub(crate) use entry::encode_entry;
use entry::parse_entry;

/// Maximum number of rounds in which entries are journaled before the jobs of a transaction: jobs on other objects wait
/// meanwhile.
const MAX_JOURNAL_ROUNDS: usize = 4;

/// A parsed outbox entry: an event, or why it is not one.
struct ParsedEntry {
    event: Result<NewEvent, String>,
    assigned_id: Option<EventId>,
}

/// Journals the outbox entries of the objects of a transaction. A large backlog is committed in rounds before the
/// transaction itself. Returns whether all entries were journaled: if not, jobs on these objects wait for the next
/// transaction.
pub(crate) fn journal_outboxes(txn: &mut Txn<'_, RedisTables>) -> TableResult<bool> {
    let mut journaled_all = journal_fetched_outboxes(txn)?;
    for _ in 1..MAX_JOURNAL_ROUNDS {
        if journaled_all {
            break;
        }
        txn.state.flush_changes(txn.tables)?;
        txn.tables.commit_keeping_write_lock()?;
        journaled_all = journal_fetched_outboxes(txn)?;
    }
    log_set_aside_entries(txn.tables);
    Ok(journaled_all)
}

/// Logs how many entries were set aside since the last such line, if that line is long enough ago.
fn log_set_aside_entries(tables: &mut RedisTables) {
    let summary = tables.set_aside_log.take_due_summary(std::time::Instant::now());
    if let Some((entry_count, example)) = summary {
        tracing::warn!(
            entry_count,
            example,
            "outbox entries are not events; moved them to events.set.aside, where `pointsman doctor` shows the newest"
        );
    }
}

/// Journals the outbox entries that were fetched; returns whether no object that the transaction emits to has further ones.
/// Events in flight go first, by their assigned ids.
fn journal_fetched_outboxes(txn: &mut Txn<'_, RedisTables>) -> TableResult<bool> {
    let (outboxes, highest_assigned_id) = txn.tables.take_outboxes_and_last_assigned_id();
    txn.state.reserve_event_ids(highest_assigned_id);
    let has_no_backlog = txn.tables.record_outbox_backlog(&outboxes);
    if outboxes.is_empty() {
        return Ok(has_no_backlog);
    }
    let now = txn.tables.caller_time.now();
    let parsed: Vec<(OutboxContents, Vec<ParsedEntry>)> =
        outboxes.into_iter().map(|outbox| parse_outbox(outbox, now)).collect();
    prefetch_rows_for_events(txn, &parsed)?;
    for (outbox, events) in &parsed {
        let headers = build_set_aside_headers(outbox, events, now, &mut txn.tables.set_aside_log);
        txn.tables.acknowledge_outbox_entries(outbox, headers);
    }
    let events = parsed.into_iter().flat_map(|(_, events)| events);
    let (mut in_flight, queued): (Vec<ParsedEntry>, Vec<ParsedEntry>) =
        events.partition(|parsed| parsed.assigned_id.is_some());
    in_flight.sort_by_key(|parsed| parsed.assigned_id);
    journal_entries(txn, in_flight, now)?;
    journal_entries(txn, queued, now)?;
    Ok(has_no_backlog)
}

/// Parses the entries of an object's outbox.
fn parse_outbox(outbox: OutboxContents, now: Timestamp) -> (OutboxContents, Vec<ParsedEntry>) {
    if outbox.remainder == OutboxRemainder::NotAList {
        let object = String::from_utf8_lossy(&outbox.object);
        tracing::warn!(
            %object,
            "outbox key of the object is not a list; its events are not journaled until the key is deleted or renamed"
        );
    }
    let assigned_id = outbox.in_flight_id.as_ref().and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
    let events = outbox.entries.iter().enumerate().map(|(index, entry)| ParsedEntry {
        event: parse_entry(&outbox.object, entry, now),
        assigned_id: assigned_id.filter(|_| index == 0),
    });
    let events = events.collect();
    (outbox, events)
}

/// Fetches the rows that are needed to journal these events.
fn prefetch_rows_for_events(
    txn: &mut Txn<'_, RedisTables>,
    parsed: &[(OutboxContents, Vec<ParsedEntry>)],
) -> TableResult<()> {
    let events = parsed.iter().flat_map(|(_, events)| events).filter_map(|parsed| parsed.event.as_ref().ok());
    let batch = pointsman_core::store::EmitBatch { events: events.cloned().collect(), idempotency_key: None };
    let mut read_set = ReadSet::default();
    add_emit_batches_to_read_set(&(vec![batch], None), txn.state, &mut read_set);
    txn.tables.prefetch_read_set(&read_set)
}

fn journal_entries(
    txn: &mut Txn<'_, RedisTables>,
    events: Vec<ParsedEntry>,
    now: Timestamp,
) -> TableResult<()> {
    for ParsedEntry { event, assigned_id } in events {
        if let Ok(event) = event {
            txn.append_event_with_preassigned_id(event, assigned_id, &mut PendingClaim::default(), now)?;
        }
    }
    Ok(())
}

/// Returns a header for each entry, and counts the entries that are set aside: the header is the line written before
/// such an entry, and empty for an event.
fn build_set_aside_headers(
    outbox: &OutboxContents,
    events: &[ParsedEntry],
    now: Timestamp,
    log: &mut SetAsideEntryLog,
) -> Vec<String> {
    let header = |parsed: &ParsedEntry| match &parsed.event {
        Ok(_) => String::new(),
        Err(reason) => {
            let object = String::from_utf8_lossy(&outbox.object);
            log.count_entry(|| format!("object {object:?}: {reason}"));
            let header = serde_json::json!({"object": object, "reason": reason, "at": now});
            format!("{header}\n")
        }
    };
    events.iter().map(header).collect()
}
