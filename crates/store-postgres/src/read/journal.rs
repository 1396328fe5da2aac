//! Reading events.

use std::sync::Arc;

use futures::future::{try_join, try_join4};
use pointsman_core::journal::{EventPage, JournalRange};
use pointsman_core::store::{EventView, JournalQuery, MAX_CAUSED_EVENTS, ObjectView};
use pointsman_core::{Event, EventId, ObjectKey, TaskSeq, Tenant};
use pointsman_store::error::{Fault, Result};
use pointsman_store::views::{JournalPageBuilder, MAX_PAGE_BYTES, build_object_view, event_payload_size};
use tokio_postgres::Row;

use super::{ChunkSize, SQL_MAX_PAGE_BYTES, tasks, to_sql_limit};
use crate::rows::{decode_event, read_column};
use crate::session::{Session, query};

pub(super) async fn read_journal_range(session: &Session) -> Result<JournalRange> {
    let rows = session.query(query!("read/extent"), &[]).await?;
    let row = rows.first().ok_or_else(|| Fault::damaged("there is no sequencer"))?;
    let (expired_up_to, newest) =
        (EventId::from_i64(read_column(row, 0)?), EventId::from_i64(read_column(row, 1)?));
    Ok(JournalRange { expired_up_to, head: newest.max(expired_up_to) })
}

pub(super) async fn read_page(session: &Session, read: &JournalQuery) -> Result<EventPage> {
    let mut chunk = ChunkSize::for_limit(read.limit);
    let (mut after, mut until) = (read.after, read.until.unwrap_or(EventId::MAX));
    let (extent, mut rows) =
        try_join(read_journal_range(session), fetch_event_chunk(session, read, after, until, chunk)).await?;
    let mut page = JournalPageBuilder::new(read, extent);
    loop {
        for row in &rows {
            let event = decode_event(row, 0)?;
            if read.backwards {
                until = EventId::from_i64(event.id.as_i64() - 1);
            } else {
                after = event.id;
            }
            if !page.scan_event(event) {
                return Ok(page.into_page());
            }
        }
        let bytes = rows.last().map_or(Ok(0), |last| read_column(last, 11))?;
        if chunk.is_last_chunk(&rows, bytes) {
            return Ok(page.into_page());
        }
        chunk = chunk.grown();
        rows = fetch_event_chunk(session, read, after, until, chunk).await?;
    }
}

async fn fetch_event_chunk(
    session: &Session,
    read: &JournalQuery,
    after: EventId,
    until: EventId,
    chunk: ChunkSize,
) -> Result<Vec<Row>> {
    let query = match read.backwards {
        false => query!("read/journal", INT8, INT8, INT8, TEXT, TEXT, INT8),
        true => query!("read/journal_backwards", INT8, INT8, INT8, TEXT, TEXT, INT8),
    };
    let tenant = read.filter.tenant.as_ref().map(Tenant::as_str);
    let key = read.filter.key.as_ref().map(ObjectKey::as_str);
    let (after, until) = (after.as_i64(), until.as_i64());
    Ok(session.query(query, &[&after, &until, &chunk.rows(), &tenant, &key, &SQL_MAX_PAGE_BYTES]).await?)
}

pub(super) async fn read_event_view(session: &Session, id: EventId) -> Result<Option<EventView>> {
    let (extent, event, seqs, found) = try_join4(
        read_journal_range(session),
        find_event(session, id),
        list_task_seqs_of_event(session, id),
        list_caused_events(session, id),
    )
    .await?;
    let Some(event) = event else { return Ok(None) };
    let tasks = tasks::list_tasks_with_attempts(session, &seqs).await?;
    Ok(Some(EventView { event: Arc::new(event), tasks, caused_events: found, journal_range: extent }))
}

/// Finds an event that has not expired.
async fn find_event(session: &Session, id: EventId) -> Result<Option<Event>> {
    let rows = session.query(query!("read/event", INT8), &[&id.as_i64()]).await?;
    rows.first().map(|row| decode_event(row, 0)).transpose()
}

/// Lists the tasks of an event: those created when it was journaled, and replays.
pub(super) async fn list_task_seqs_of_event(session: &Session, event: EventId) -> Result<Vec<TaskSeq>> {
    let rows = session.query(query!("read/tasks_of_event", INT8), &[&event.as_i64()]).await?;
    rows.iter().map(|row| read_column(row, 0).map(TaskSeq)).collect()
}

/// Lists the events that an event caused, directly or indirectly, the nearest first. One statement fetches each level.
async fn list_caused_events(session: &Session, id: EventId) -> Result<Vec<Arc<Event>>> {
    let mut found: Vec<Arc<Event>> = Vec::new();
    let mut causes = vec![id.as_i64()];
    let mut bytes = 0;
    while !causes.is_empty() && found.len() < MAX_CAUSED_EVENTS && bytes < MAX_PAGE_BYTES {
        let (rows, byte_limit) =
            (to_sql_limit(MAX_CAUSED_EVENTS - found.len()), to_sql_limit(MAX_PAGE_BYTES - bytes));
        let query = query!("read/caused_events", INT8_ARRAY, INT8, INT8);
        let rows = session.query(query, &[&causes, &rows, &byte_limit]).await?;
        causes.clear();
        for row in &rows {
            let event = decode_event(row, 0)?;
            causes.push(event.id.as_i64());
            bytes += event_payload_size(&event);
            found.push(Arc::new(event));
        }
    }
    Ok(found)
}

/// Reads the unexpired events of an object, newest first, and its lanes.
pub(super) async fn read_object_view(
    session: &Session,
    tenant: &Tenant,
    key: &ObjectKey,
    limit: usize,
) -> Result<Option<ObjectView>> {
    let lanes = tasks::list_lanes(session, tenant, key);
    let (tenant, key) = (tenant.as_str(), key.as_str());
    let last =
        async { Ok(session.query(query!("read/object_last_event", TEXT, TEXT), &[&tenant, &key]).await?) };
    let events = async {
        let query = query!("read/object_events", TEXT, TEXT, INT8, INT8);
        Ok(session.query(query, &[&tenant, &key, &to_sql_limit(limit), &SQL_MAX_PAGE_BYTES]).await?)
    };
    let (extent, last, events, lanes) = try_join4(read_journal_range(session), last, events, lanes).await?;
    let Some(last) = last.first() else { return Ok(None) };
    let events = events.iter().take(limit).map(|row| decode_event(row, 0).map(Arc::new));
    let last = EventId::from_i64(read_column(last, 0)?);
    Ok(Some(build_object_view(last, events.collect::<Result<_>>()?, lanes, extent)))
}
