//! Reading events.

use std::sync::Arc;

use futures::future::{try_join, try_join4};
use pointsman_core::journal::{EventPage, JournalRange};
use pointsman_core::store::{EventView, JournalQuery, MAX_CAUSED_EVENTS, ObjectView};
use pointsman_core::{Event, EventId, ObjectKey, TaskSeq, Tenant};
use pointsman_store::columns::EventColumns;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::views::{
    JournalPageBuilder, MAX_PAGE_PAYLOAD_BYTES, build_object_view, event_payload_size,
};
use tokio_postgres::Row;

use super::{ChunkSize, SQL_MAX_PAGE_BYTES, tasks, to_sql_limit};
use crate::rows::{read_column, read_columns, read_event_id, read_task_seq};
use crate::session::{Session, query};

/// Reads the range of the journal: the last expired event and the newest one.
pub(super) async fn read_journal_range(session: &Session) -> TableResult<JournalRange> {
    let rows = session.query(query!("journal/read_journal_range"), &[]).await?;
    let row = rows.first().ok_or_else(|| Fault::damaged("pointsman.last_commit has no row"))?;
    let (expired_up_to, newest) = (read_event_id(row, 0)?, read_event_id(row, 1)?);
    Ok(JournalRange { last_expired_event_id: expired_up_to, newest_event_id: newest.max(expired_up_to) })
}

/// Reads a page of events that match a query, with the range of the journal.
pub(super) async fn read_event_page(session: &Session, read: &JournalQuery) -> TableResult<EventPage> {
    let mut chunk_size = ChunkSize::for_limit(read.limit);
    let (mut after, mut until) = (read.after_event_id, read.up_to_event_id.unwrap_or(EventId::MAX));
    let (journal_range, mut rows) =
        try_join(read_journal_range(session), fetch_event_chunk(session, read, after, until, chunk_size))
            .await?;
    let mut page = JournalPageBuilder::new(read, journal_range);
    loop {
        for row in &rows {
            let event = read_columns::<EventColumns<'_>>(row, 1)?.into_event()?;
            if read.backwards {
                until = EventId::from_i64(event.id.as_i64() - 1);
            } else {
                after = event.id;
            }
            if !page.scan_event(event) {
                return Ok(page.into_page());
            }
        }
        let bytes = rows.last().map_or(Ok(0), |last| read_column(last, 0))?;
        if chunk_size.is_last_chunk(&rows, bytes) {
            return Ok(page.into_page());
        }
        chunk_size = chunk_size.next_larger();
        rows = fetch_event_chunk(session, read, after, until, chunk_size).await?;
    }
}

/// Fetches the next chunk of events between two ids.
async fn fetch_event_chunk(
    session: &Session,
    read: &JournalQuery,
    after: EventId,
    until: EventId,
    chunk_size: ChunkSize,
) -> TableResult<Vec<Row>> {
    let query = match read.backwards {
        false => query!("journal/list_events", INT8, INT8, INT8, TEXT, TEXT, INT8),
        true => query!("journal/list_events_backwards", INT8, INT8, INT8, TEXT, TEXT, INT8),
    };
    let tenant = read.filter.tenant.as_ref().map(Tenant::as_str);
    let key = read.filter.key.as_ref().map(ObjectKey::as_str);
    let (after, until) = (after.as_i64(), until.as_i64());
    Ok(session
        .query(query, &[&after, &until, &chunk_size.rows(), &tenant, &key, &SQL_MAX_PAGE_BYTES])
        .await?)
}

/// Reads an unexpired event with its tasks and the events that it caused.
pub(super) async fn read_event_view(session: &Session, id: EventId) -> TableResult<Option<EventView>> {
    let (journal_range, event, seqs, caused_events) = try_join4(
        read_journal_range(session),
        find_unexpired_event(session, id),
        list_task_seqs_of_event(session, id),
        list_caused_events(session, id),
    )
    .await?;
    let Some(event) = event else { return Ok(None) };
    let tasks = tasks::list_tasks_with_attempts(session, &seqs).await?;
    Ok(Some(EventView { event: Arc::new(event), tasks, caused_events, journal_range }))
}

/// Finds an event that has not expired.
async fn find_unexpired_event(session: &Session, id: EventId) -> TableResult<Option<Event>> {
    let rows = session.query(query!("journal/find_unexpired_event", INT8), &[&id.as_i64()]).await?;
    rows.first().map(decode_event).transpose()
}

fn decode_event(row: &Row) -> TableResult<Event> {
    read_columns::<EventColumns<'_>>(row, 0)?.into_event()
}

/// Lists the tasks of an event: those created when it was journaled, and replays.
pub(super) async fn list_task_seqs_of_event(session: &Session, event: EventId) -> TableResult<Vec<TaskSeq>> {
    let rows = session.query(query!("task/list_task_seqs_of_event", INT8), &[&event.as_i64()]).await?;
    rows.iter().map(|row| read_task_seq(row, 0)).collect()
}

/// Lists the events that an event caused, directly or indirectly, the nearest first. One statement fetches each level.
async fn list_caused_events(session: &Session, id: EventId) -> TableResult<Vec<Arc<Event>>> {
    let mut found: Vec<Arc<Event>> = Vec::new();
    let mut causes = vec![id.as_i64()];
    let mut bytes = 0;
    while !causes.is_empty() && found.len() < MAX_CAUSED_EVENTS && bytes < MAX_PAGE_PAYLOAD_BYTES {
        let (rows, byte_limit) =
            (to_sql_limit(MAX_CAUSED_EVENTS - found.len()), to_sql_limit(MAX_PAGE_PAYLOAD_BYTES - bytes));
        let query = query!("journal/list_caused_events", INT8_ARRAY, INT8, INT8);
        let rows = session.query(query, &[&causes, &rows, &byte_limit]).await?;
        causes.clear();
        for row in &rows {
            let event = decode_event(row)?;
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
) -> TableResult<Option<ObjectView>> {
    let lanes = tasks::list_lanes_of_object(session, tenant, key);
    let (tenant, key) = (tenant.as_str(), key.as_str());
    let last_event_rows = async {
        Ok(session.query(query!("object/read_last_event_of_object", TEXT, TEXT), &[&tenant, &key]).await?)
    };
    let event_rows = async {
        let query = query!("journal/list_events_of_object", TEXT, TEXT, INT8, INT8);
        Ok(session.query(query, &[&tenant, &key, &to_sql_limit(limit), &SQL_MAX_PAGE_BYTES]).await?)
    };
    let (journal_range, last_rows, event_rows, lanes) =
        try_join4(read_journal_range(session), last_event_rows, event_rows, lanes).await?;
    let Some(last_row) = last_rows.first() else { return Ok(None) };
    let events = event_rows.iter().take(limit).map(|row| decode_event(row).map(Arc::new));
    let last_event = read_event_id(last_row, 0)?;
    Ok(Some(build_object_view(last_event, events.collect::<TableResult<_>>()?, lanes, journal_range)))
}
