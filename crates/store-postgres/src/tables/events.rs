//! The journal.

use pointsman_core::{Event, EventId, TaskSeq};
use pointsman_store::columns::EventColumns;
use pointsman_store::error::TableResult;
use pointsman_store::tables::EventTable;
use tokio_postgres::Row;

use super::PgTables;
use super::write_batch::EventInsert;
use crate::rows::{read_column, read_columns, read_event_id};
use crate::session::query;
use crate::writer_connection::params;

impl EventTable for PgTables {
    fn insert_event(
        &mut self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()> {
        self.write_batch.insert_event(EventInsert {
            event: event.clone(),
            event_number: number,
            first_task,
            task_count,
        });
        Ok(())
    }

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>> {
        if let Some(event) = self.write_batch.find_event(id) {
            return Ok(Some(event.clone()));
        }
        if let Some(event) = self.cache.events.get(&id) {
            return Ok(Some(event.clone()));
        }
        let expired_up_to = self.commit_version_row.counters.expired_up_to;
        let params = params![id.as_i64(), expired_up_to.as_i64()];
        self.query_and_decode_first(query!("journal/read_event", INT8, INT8), params, decode_event)
    }

    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>> {
        let expired_up_to = self.commit_version_row.counters.expired_up_to;
        let params = params![from.as_i64(), to.as_i64(), expired_up_to.as_i64(), limit as i64];
        self.query_and_decode_rows(
            query!("journal/list_events_between", INT8, INT8, INT8, INT8),
            params,
            decode_event,
        )
    }

    fn find_event_near_number(&mut self, number: i64) -> TableResult<Option<EventId>> {
        self.query_and_decode_first(query!("journal/find_event_near_number", INT8), params![number], |row| {
            read_event_id(row, 0)
        })
    }

    fn find_last_event_up_to(&mut self, id: EventId) -> TableResult<EventId> {
        let query = query!("journal/find_last_event_up_to", INT8);
        let last = self.query_and_decode_first(query, params![id.as_i64()], |row| read_event_id(row, 0))?;
        Ok(last.unwrap_or(EventId::ZERO))
    }
}

impl PgTables {
    pub(super) fn prefetch_events(&mut self, ids: &[EventId]) -> TableResult<()> {
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        let (from, to) = self.event_number_range(&ids)?;
        let query = query!("journal/prefetch_events", INT8_ARRAY, INT8, INT8);
        let found = self.query_and_decode_rows(query, params![ids, from, to], decode_event)?;
        self.cache.events.extend(found.into_iter().map(|event| (event.id, event)));
        Ok(())
    }

    /// Returns a range of event numbers that contains these events, so that the other partitions are not scanned.
    fn event_number_range(&mut self, ids: &[i64]) -> TableResult<(i64, i64)> {
        let journal_end = self.commit_version_row.journal_partitions_end_number;
        if self.journal_partition_starts.0 != journal_end {
            let params = params![self.rows_per_partition];
            let starts =
                self.query_and_decode_rows(query!("journal/list_partition_starts", INT8), params, |row| {
                    Ok((read_column::<i64>(row, 0)?, read_column::<i64>(row, 1)?))
                })?;
            self.journal_partition_starts = (journal_end, starts);
        }
        let (_, partitions) = &self.journal_partition_starts;
        let (least, greatest) = (ids.iter().min().copied(), ids.iter().max().copied());
        let first = partitions.iter().rev().find(|(_, id)| least.is_some_and(|least| *id <= least));
        let next = partitions.iter().find(|(_, id)| greatest.is_some_and(|greatest| *id > greatest));
        Ok((first.map_or(0, |(number, _)| *number), next.map_or(i64::MAX, |(number, _)| *number)))
    }
}

fn decode_event(row: &Row) -> TableResult<Event> {
    read_columns::<EventColumns<'_>>(row, 0)?.into_event()
}
