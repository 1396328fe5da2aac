//! Reading events.

use std::sync::Arc;

use pointsman_core::journal::{Extent, Page};
use pointsman_core::store::{EventView, MOST_CAUSED, ObjectView, Read};
use pointsman_core::{Cause, Context, Event, EventId, HandlingKey, Json, ObjectKey, TaskSeq, Tenant};
use rusqlite::{Connection, OptionalExtension, Row};

use crate::error::{Fault, Result};
use crate::read_tasks;

/// So many events at most are looked at for one page; the page says how far it came.
const SCAN: usize = 20_000;
/// So many bytes of payload at most come in one page.
const PAGE_BYTES: usize = 8 << 20;

/// The columns of an event, in the order that [`event_of`] reads them.
macro_rules! event {
    () => {
        "id, prev, type, key, sub, tenant, value, context, cause_event, cause_task, depth"
    };
}

pub(crate) fn extent(conn: &Connection) -> Result<Extent> {
    let sql = "SELECT coalesce((SELECT value FROM pointsman_meta WHERE name = 'forgotten'), 0),
                      coalesce((SELECT max(id) FROM pointsman_journal), 0)";
    let (forgotten, newest): (i64, i64) =
        conn.prepare_cached(sql)?.query_row([], |r| Ok((r.get(0)?, r.get(1)?)))?;
    let forgotten = EventId::from_i64(forgotten);
    Ok(Extent { forgotten, head: EventId::from_i64(newest).max(forgotten) })
}

pub(crate) fn load_event(conn: &Connection, id: EventId) -> Result<Option<Event>> {
    let sql = concat!("SELECT ", event!(), " FROM pointsman_journal WHERE id = ?1");
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([id.as_i64()])?;
    rows.next()?.map(event_of).transpose()
}

fn event_of(row: &Row<'_>) -> Result<Event> {
    let text = |index: usize| -> Result<&str> { row.get_ref(index)?.as_str().map_err(Fault::damaged) };
    let key = |index: usize| -> Result<Option<ObjectKey>> {
        Ok(row.get_ref(index)?.as_str_or_null().map_err(Fault::damaged)?.map(ObjectKey::trusted))
    };
    let context = match row.get_ref(7)?.as_str_or_null().map_err(Fault::damaged)? {
        Some(json) => serde_json::from_str(json).map_err(Fault::damaged)?,
        None => Context::new(),
    };
    let cause_event = row.get::<_, Option<i64>>(8)?.map(EventId::from_i64);
    let cause = match row.get::<_, Option<i64>>(9)? {
        Some(task) => Some(Cause { event: cause_event, task: TaskSeq(task), depth: row.get(10)? }),
        None => None,
    };
    Ok(Event {
        id: EventId::from_i64(row.get(0)?),
        prev: row.get::<_, Option<i64>>(1)?.map(EventId::from_i64),
        kind: HandlingKey::new(text(2)?).map_err(Fault::damaged)?,
        key: key(3)?,
        sub: key(4)?,
        tenant: match text(5)? {
            "" => Tenant::nobody(),
            name => Tenant::new(name).map_err(Fault::damaged)?,
        },
        value: Json::trusted(text(6)?),
        context,
        cause,
    })
}

/// About how many bytes an event takes.
fn weight(event: &Event) -> usize {
    let context: usize = event.context.iter().map(|(name, value)| name.len() + value.len()).sum();
    event.value.as_str().len() + context
}

pub(crate) fn page(conn: &Connection, read: &Read) -> Result<Page> {
    let extent = extent(conn)?;
    let low = read.after.max(extent.forgotten);
    let high = read.until.unwrap_or(EventId::MAX).min(extent.head);
    let sql = match read.backwards {
        false => {
            concat!("SELECT ", event!(), " FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id")
        }
        true => concat!(
            "SELECT ",
            event!(),
            " FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id DESC"
        ),
    };
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query((low.as_i64(), high.as_i64()))?;
    let mut page =
        Page { events: Vec::new(), scanned: if read.backwards { low } else { high.max(low) }, extent };
    let (mut looked_at, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        let event = event_of(row)?;
        looked_at += 1;
        let id = event.id;
        if read.filter.matches(&event) {
            bytes += weight(&event);
            page.events.push(Arc::new(event));
        }
        if page.events.len() >= read.limit || looked_at >= SCAN || bytes >= PAGE_BYTES {
            page.scanned = id;
            break;
        }
    }
    Ok(page)
}

pub(crate) fn event_view(conn: &Connection, id: EventId) -> Result<Option<EventView>> {
    let extent = extent(conn)?;
    if id <= extent.forgotten {
        return Ok(None);
    }
    let Some(event) = load_event(conn, id)? else { return Ok(None) };
    let mut tasks = Vec::new();
    for seq in tasks_of(conn, id)? {
        tasks.extend(read_tasks::task(conn, seq)?);
    }
    let caused = caused_by(conn, id)?;
    Ok(Some(EventView { event: Arc::new(event), tasks, caused, extent }))
}

/// What an event caused, and what that caused: the nearer first.
fn caused_by(conn: &Connection, id: EventId) -> Result<Vec<Arc<Event>>> {
    let sql = concat!("SELECT ", event!(), " FROM pointsman_journal WHERE cause_event = ?1 ORDER BY id");
    let mut statement = conn.prepare_cached(sql)?;
    let mut found: Vec<Arc<Event>> = Vec::new();
    let (mut cause, mut followed, mut bytes) = (id, 0, 0);
    let full = |found: &[Arc<Event>], bytes: usize| found.len() >= MOST_CAUSED || bytes >= PAGE_BYTES;
    while !full(&found, bytes) {
        let mut rows = statement.query([cause.as_i64()])?;
        while !full(&found, bytes)
            && let Some(row) = rows.next()?
        {
            let event = event_of(row)?;
            bytes += weight(&event);
            found.push(Arc::new(event));
        }
        let Some(next) = found.get(followed) else { break };
        cause = next.id;
        followed += 1;
    }
    Ok(found)
}

/// Events that are remembered, from one id to another, both included, the oldest first.
pub(crate) fn events_between(
    conn: &Connection,
    from: EventId,
    to: EventId,
    most: usize,
) -> Result<Vec<Event>> {
    let low = extent(conn)?.forgotten.as_i64().max(from.as_i64() - 1);
    let sql = concat!(
        "SELECT ",
        event!(),
        " FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3"
    );
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query((low, to.as_i64(), most as i64))?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(event_of(row)?);
    }
    Ok(events)
}

/// The tasks of an event: those that were made when it was journaled, and replays.
pub(crate) fn tasks_of(conn: &Connection, event: EventId) -> Result<Vec<TaskSeq>> {
    let sql = "SELECT first_task, tasks FROM pointsman_journal WHERE id = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let made = statement.query_row([event.as_i64()], |r| Ok((r.get(0)?, r.get(1)?))).optional()?;
    let (first, count): (i64, i64) = made.unwrap_or((0, 0));
    let mut seqs: Vec<i64> = (first..first + count).collect();
    let sql = "SELECT seq FROM pointsman_task WHERE late = 1 AND event = ?1
               UNION ALL SELECT seq FROM pointsman_history WHERE late = 1 AND event = ?1";
    let mut statement = conn.prepare_cached(sql)?;
    let late = statement.query_map([event.as_i64()], |r| r.get(0))?;
    seqs.extend(late.collect::<rusqlite::Result<Vec<i64>>>()?);
    seqs.sort_unstable();
    seqs.dedup();
    Ok(seqs.into_iter().map(TaskSeq).collect())
}

/// Follows an object's chain from its last event back, as far as it is remembered.
pub(crate) fn object(
    conn: &Connection,
    tenant: &Tenant,
    key: &ObjectKey,
    limit: usize,
) -> Result<Option<ObjectView>> {
    let extent = extent(conn)?;
    let sql = "SELECT last FROM pointsman_object WHERE tenant = ?1 AND key = ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let last: Option<i64> = statement.query_row((tenant.as_str(), key.as_str()), |r| r.get(0)).optional()?;
    let Some(last) = last.map(EventId::from_i64) else { return Ok(None) };
    let mut events = Vec::new();
    let mut next = Some(last);
    let mut bytes = 0;
    while let Some(id) =
        next.filter(|id| *id > extent.forgotten && events.len() < limit && bytes < PAGE_BYTES)
    {
        let Some(event) = load_event(conn, id)? else { break };
        next = event.prev;
        bytes += weight(&event);
        events.push(Arc::new(event));
    }
    Ok(Some(ObjectView { last, events, extent }))
}
