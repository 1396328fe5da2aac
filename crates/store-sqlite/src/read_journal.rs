//! Reads events and objects.

use std::sync::Arc;

use pointsman_core::journal::{EventPage, JournalRange};
use pointsman_core::store::{EventView, JournalQuery, LaneView, MAX_CAUSED_EVENTS, ObjectView};
use pointsman_core::{Event, EventId, ObjectKey, TaskSeq, Tenant};
use pointsman_store::expand_sql;
use pointsman_store::row::ObjectNumber;
use pointsman_store::views::{
    JournalPageBuilder, LANES_READ_PER_OBJECT_VIEW, MAX_PAGE_PAYLOAD_BYTES, build_object_view,
    event_payload_size,
};
use rusqlite::Connection;

use crate::error::{Fault, TableResult};
use crate::read_tasks;
use crate::tables::events::event_from_row;
use crate::tables::queries::{query_all, query_first, task_seq_from_row};
use crate::tables::{active_tasks, events, lanes};

pub(crate) fn read_journal_range(conn: &Connection) -> TableResult<JournalRange> {
    let sql = "SELECT coalesce((SELECT text FROM pointsman_meta WHERE name = 'expired_up_to'), 0),
                      coalesce((SELECT max(id) FROM pointsman_journal), 0)";
    let (expired_up_to, newest): (i64, i64) =
        conn.prepare_cached(sql)?.query_row([], |r| Ok((r.get(0)?, r.get(1)?)))?;
    let expired_up_to = EventId::from_i64(expired_up_to);
    Ok(JournalRange {
        last_expired_event_id: expired_up_to,
        newest_event_id: EventId::from_i64(newest).max(expired_up_to),
    })
}

pub(crate) fn read_event_page(conn: &Connection, query: &JournalQuery) -> TableResult<EventPage> {
    let mut page = JournalPageBuilder::new(query, read_journal_range(conn)?);
    let sql = match query.backwards {
        false => {
            expand_sql!("SELECT :event_columns FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id")
        }
        true => expand_sql!(
            "SELECT :event_columns FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id DESC"
        ),
    };
    let (after, until) = page.id_range_to_scan();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query((after.as_i64(), until.as_i64()))?;
    while let Some(row) = rows.next()? {
        if !page.scan_event(event_from_row(row)?) {
            break;
        }
    }
    Ok(page.into_page())
}

pub(crate) fn read_event_view(conn: &Connection, id: EventId) -> TableResult<Option<EventView>> {
    let journal_range = read_journal_range(conn)?;
    if id <= journal_range.last_expired_event_id {
        return Ok(None);
    }
    let Some(event) = events::read_event(conn, id)? else { return Ok(None) };
    let mut tasks = Vec::new();
    for seq in list_task_seqs_of_event(conn, id)? {
        tasks.extend(read_tasks::read_task(conn, seq)?);
    }
    let caused_events = list_transitively_caused_events(conn, id)?;
    Ok(Some(EventView { event: Arc::new(event), tasks, caused_events, journal_range }))
}

/// Lists the events that an event caused: those it caused directly first, then those that they caused, and so on.
fn list_transitively_caused_events(conn: &Connection, id: EventId) -> TableResult<Vec<Arc<Event>>> {
    let sql = expand_sql!("SELECT :event_columns FROM pointsman_journal WHERE cause_event = ?1 ORDER BY id");
    let mut statement = conn.prepare_cached(sql)?;
    let mut found: Vec<Arc<Event>> = Vec::new();
    let (mut cause, mut followed, mut bytes) = (id, 0, 0);
    let is_full = |found: &[Arc<Event>], bytes: usize| {
        found.len() >= MAX_CAUSED_EVENTS || bytes >= MAX_PAGE_PAYLOAD_BYTES
    };
    while !is_full(&found, bytes) {
        let mut rows = statement.query([cause.as_i64()])?;
        while !is_full(&found, bytes)
            && let Some(row) = rows.next()?
        {
            let event = event_from_row(row)?;
            bytes += event_payload_size(&event);
            found.push(Arc::new(event));
        }
        let Some(next) = found.get(followed) else { break };
        cause = next.id;
        followed += 1;
    }
    Ok(found)
}

/// Lists the tasks of an event: those that were created when it was journaled, and those of replays.
pub(crate) fn list_task_seqs_of_event(conn: &Connection, event: EventId) -> TableResult<Vec<TaskSeq>> {
    let sql = "SELECT first_task, tasks FROM pointsman_journal WHERE id = ?1";
    let own_tasks = query_first(conn, sql, [event.as_i64()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (first_task, task_count): (i64, i64) = own_tasks.unwrap_or((0, 0));
    let sql = "SELECT seq FROM pointsman_task WHERE late = 1 AND event = ?1
               UNION ALL SELECT seq FROM pointsman_history WHERE late = 1 AND event = ?1";
    let mut seqs = query_all(conn, sql, [event.as_i64()], task_seq_from_row)?;
    seqs.extend((first_task..first_task + task_count).map(TaskSeq));
    seqs.sort_unstable();
    seqs.dedup();
    Ok(seqs)
}

/// Reads an object's events, from the last one back to the oldest retained one, and its lanes.
pub(crate) fn read_object_view(
    conn: &Connection,
    tenant: &Tenant,
    key: &ObjectKey,
    limit: usize,
) -> TableResult<Option<ObjectView>> {
    let journal_range = read_journal_range(conn)?;
    let sql = "SELECT last_event, number FROM pointsman_object WHERE tenant = ?1 AND key = ?2";
    let found = query_first(conn, sql, (tenant.as_str(), key.as_str()), |row| {
        Ok((EventId::from_i64(row.get(0)?), row.get(1)?))
    })?;
    let Some((last, number)) = found else { return Ok(None) };
    let events = list_object_events(conn, last, journal_range, limit)?;
    Ok(Some(build_object_view(last, events, list_object_lanes(conn, number)?, journal_range)))
}

fn list_object_events(
    conn: &Connection,
    last: EventId,
    journal_range: JournalRange,
    limit: usize,
) -> TableResult<Vec<Arc<Event>>> {
    let mut events = Vec::new();
    let mut next = Some(last);
    let mut bytes = 0;
    while let Some(id) = next.filter(|id| {
        *id > journal_range.last_expired_event_id && events.len() < limit && bytes < MAX_PAGE_PAYLOAD_BYTES
    }) {
        let Some(event) = events::read_event(conn, id)? else { break };
        next = event.prev;
        bytes += event_payload_size(&event);
        events.push(Arc::new(event));
    }
    Ok(events)
}

/// Lists the first lanes of an object that have tasks. Each lane is found by an index search after the previous lane,
/// so that the cost does not depend on the number of tasks in a lane.
fn list_object_lanes(conn: &Connection, object: ObjectNumber) -> TableResult<Vec<LaneView>> {
    let mut found = Vec::new();
    let Some(lane_range) = pointsman_store::lane_range_of_object(object) else { return Ok(found) };
    let (mut from, last) = lane_range.into_inner();
    while found.len() < LANES_READ_PER_OBJECT_VIEW
        && let Some((lane, seq)) = lanes::find_first_occupied_lane(conn, from, last)?
    {
        let head = active_tasks::read_active_task(conn, seq)?
            .ok_or_else(|| Fault::damaged(format!("task {} is missing", seq.0)))?;
        let task_count = lanes::count_lane_tasks(conn, lane, LaneView::MAX_COUNTED_TASKS)?;
        found.push(LaneView::new(read_tasks::build_active_task(conn, head)?, task_count));
        from = lane + 1;
    }
    Ok(found)
}
