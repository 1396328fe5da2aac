//! Reads of the journal and of objects.

use std::sync::Arc;

use pointsman_core::journal::{EventPage, JournalRange};
use pointsman_core::store::{EventView, JournalQuery, MAX_CAUSED_EVENTS, ObjectView};
use pointsman_core::{Event, EventId, ObjectKey, TaskSeq, Tenant};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::views::{JournalPageBuilder, MAX_PAGE_PAYLOAD_BYTES, build_object_view};
use redis::Value;

use super::{ChunkSize, tasks};
use crate::codec::MemberBuilder;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::{Index, Keys};
use crate::overlay::{TransactionOverlay, decode_journal_entries, decode_strings};
use crate::reader::{MAX_OPTIMISTIC_ATTEMPTS, SnapshotReader, decode_store_state, read_store_state_command};
use crate::rows;
use crate::script;
use crate::store_state::StoreState;

/// Reads a page of the journal. Writes of peers do not make it inconsistent: events never change, and new ones follow the
/// newest event of the store state that was read first. But if events of the page expire meanwhile, it may have gaps. So
/// the id up to which events have expired is read again after each chunk.
pub(crate) fn read_journal_page(reader: &mut SnapshotReader, query: &JournalQuery) -> TableResult<EventPage> {
    for _ in 0..MAX_OPTIMISTIC_ATTEMPTS {
        if let Some(page) = try_read_journal_page(&mut reader.overlay, query)? {
            return Ok(page);
        }
    }
    reader.read_under_write_lock(|overlay, _| {
        try_read_journal_page(overlay, query)?.ok_or_else(|| Fault::damaged("a journal page with gaps"))
    })
}

/// Reads a page of the journal; `None` if events of it expired meanwhile.
fn try_read_journal_page(
    overlay: &mut TransactionOverlay,
    query: &JournalQuery,
) -> TableResult<Option<EventPage>> {
    let mut chunk = ChunkSize::for_limit(query.limit);
    let (mut after, mut until) = (query.after_event_id, query.up_to_event_id.unwrap_or(EventId::MAX));
    let TransactionOverlay { connection, keys, .. } = overlay;
    let chunk_command = |after, until, chunk: ChunkSize| {
        journal_range_command(keys, query.backwards, after, until, chunk.rows())
    };
    let first_commands =
        [read_store_state_command(keys), chunk_command(after, until, chunk), read_store_state_command(keys)];
    let mut replies = connection.execute_all(&first_commands)?.into_iter();
    let store_state = decode_store_state(replies.next().unwrap_or(Value::Nil))?;
    let mut page = JournalPageBuilder::new(query, store_state.journal_range());
    let (low, high) = page.id_range_to_scan();
    loop {
        let found = decode_journal_entries(replies.next().unwrap_or(Value::Nil))?;
        if decode_store_state(replies.next().unwrap_or(Value::Nil))?.counters.expired_up_to > low {
            return Ok(None);
        }
        for (id, row) in &found {
            (after, until) = if query.backwards { (after, preceding_id(*id)) } else { (*id, until) };
            if *id > low && *id <= high && !page.scan_event(rows::decode_event(*id, row)?.into_event()?) {
                return Ok(Some(page.into_page()));
            }
        }
        (after, until) = (after.max(low), until.min(high));
        if found.len() < chunk.rows() || after >= until {
            return Ok(Some(page.into_page()));
        }
        chunk = chunk.next_after(found.iter().map(|(_, row)| row.len()).sum());
        replies = connection
            .execute_all(&[chunk_command(after, until, chunk), read_store_state_command(keys)])?
            .into_iter();
    }
}

fn preceding_id(id: EventId) -> EventId {
    EventId::from_i64(id.as_i64() - 1)
}

/// Returns the command that reads the events after one id up to another (included), in either order.
fn journal_range_command(
    keys: &Keys,
    backwards: bool,
    after: EventId,
    until: EventId,
    limit: usize,
) -> CommandArgs {
    let (after, until, limit) = (format!("({after}-0"), format!("{until}-0"), limit.to_string());
    match backwards {
        false => args!["XRANGE", keys.journal_key(), after, until, "COUNT", limit],
        true => args!["XREVRANGE", keys.journal_key(), until, after, "COUNT", limit],
    }
}

pub(crate) fn read_event_view(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
    id: EventId,
) -> TableResult<Option<EventView>> {
    let journal_range = store_state.journal_range();
    if id <= journal_range.last_expired_event_id {
        return Ok(None);
    }
    let Some(event) = overlay.read_event(id)? else { return Ok(None) };
    let seqs = list_task_seqs_of_event(overlay, id)?;
    let tasks = tasks::read_tasks_with_attempts(overlay, &seqs)?;
    let caused = read_caused_events(overlay, id)?;
    Ok(Some(EventView { event: Arc::new(event), tasks, caused_events: caused, journal_range }))
}

/// Reads the events that an event caused, directly or indirectly, nearest first.
fn read_caused_events(overlay: &mut TransactionOverlay, id: EventId) -> TableResult<Vec<Arc<Event>>> {
    let keys = vec![overlay.keys.journal_key(), overlay.keys.index_key(&Index::CausedEvents)];
    let limit = [MAX_CAUSED_EVENTS, MAX_PAGE_PAYLOAD_BYTES].map(|limit| to_arg(limit.to_string()));
    let arguments = [args![MemberBuilder::from_i64(id.as_i64()).finish()], limit.to_vec()].concat();
    let found = decode_journal_entries(
        overlay.connection.execute(script::CAUSED_EVENTS.build_evalsha_command(keys, arguments))?,
    )?;
    found.iter().map(|(id, row)| Ok(Arc::new(rows::decode_event(*id, row)?.into_event()?))).collect()
}

/// Lists the tasks of an event: those that were created with it, and later ones.
pub(super) fn list_task_seqs_of_event(
    overlay: &mut TransactionOverlay,
    event: EventId,
) -> TableResult<Vec<TaskSeq>> {
    let created = overlay.list_tasks_created_with_event(event)?;
    let mut seqs = overlay.read_task_seqs_from_index(
        &Index::OutOfOrderTasks,
        &MemberBuilder::from_i64(event.as_i64()).finish(),
        1,
        usize::MAX,
    )?;
    seqs.extend(created);
    seqs.sort_unstable();
    seqs.dedup();
    Ok(seqs)
}

/// Reads the events of an object, newest first as far as they are retained, and its lanes.
pub(crate) fn read_object_view(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
    tenant: &Tenant,
    key: &ObjectKey,
    limit: usize,
) -> TableResult<Option<ObjectView>> {
    let journal_range = store_state.journal_range();
    let Some(object) = overlay.read_object(tenant, key.as_str())? else { return Ok(None) };
    let mut events: Vec<Arc<Event>> = Vec::new();
    for row in read_object_event_rows(overlay, object.last_event, journal_range, limit)? {
        let id = events.last().map_or(Some(object.last_event), |later| later.prev);
        let id = id.ok_or_else(|| Fault::damaged("an event before the first"))?;
        events.push(Arc::new(rows::decode_event(id, &row)?.into_event()?));
    }
    Ok(Some(build_object_view(
        object.last_event,
        events,
        tasks::read_object_lanes(overlay, object.number)?,
        journal_range,
    )))
}

/// Reads the encoded events of an object that have not expired, newest first.
fn read_object_event_rows(
    overlay: &mut TransactionOverlay,
    last: EventId,
    journal_range: JournalRange,
    limit: usize,
) -> TableResult<Vec<Vec<u8>>> {
    let (last, expired_up_to) = (last.to_string(), journal_range.last_expired_event_id.to_string());
    let arguments = args![last, expired_up_to, limit.to_string(), MAX_PAGE_PAYLOAD_BYTES.to_string()];
    decode_strings(
        overlay.connection.execute(
            script::OBJECT_EVENTS.build_evalsha_command(vec![overlay.keys.journal_key()], arguments),
        )?,
    )
}
