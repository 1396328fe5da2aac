//! The journal and the idempotency records.

use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Event, EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::TableResult;

use super::PgTables;
use super::cache::{IdempotencyRecord, decode_idempotency_record};
use super::columns::EventInsert;
use crate::rows::{decode_event, read_column};
use crate::session::query;
use crate::writer_connection::params;

impl PgTables {
    pub(super) fn find_idempotency_record(
        &self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<IdempotencyRecord>> {
        let tenant_and_key = (tenant.clone(), key.to_string());
        if let Some(cached) = self.cache.borrow().idempotency_records.get(&tenant_and_key) {
            return Ok(cached.clone());
        }
        let query = query!("write/prefetch_idempotency_records", TEXT_ARRAY, TEXT_ARRAY);
        let params = params![vec![tenant_and_key.0.to_string()], vec![tenant_and_key.1.clone()]];
        let found = self.query_optional(query, params, |row| decode_idempotency_record(row, 2))?;
        self.cache.borrow_mut().idempotency_records.insert(tenant_and_key, found.clone());
        Ok(found)
    }

    pub(super) fn write_idempotency_record(
        &self,
        idempotency: &IdempotencyKey,
        response: &str,
        now: Timestamp,
    ) {
        let IdempotencyKey { tenant, key, request_digest } = idempotency;
        self.write_batch.borrow_mut().insert_idempotency_record(tenant, key, *request_digest, response, now);
        let record = Some((*request_digest, response.to_string()));
        self.cache.borrow_mut().idempotency_records.insert((tenant.clone(), key.clone()), record);
    }

    pub(super) fn insert_event(&self, event: &Event, number: i64, first_task: TaskSeq, task_count: usize) {
        let insert = EventInsert {
            event: event.clone(),
            event_number: number,
            first_task_seq: first_task.0,
            task_count,
        };
        self.write_batch.borrow_mut().insert_event(insert);
    }

    pub(super) fn find_event(&self, id: EventId) -> TableResult<Option<Event>> {
        if let Some(event) = self.write_batch.borrow().find_event(id) {
            return Ok(Some(event.clone()));
        }
        if let Some(event) = self.cache.borrow().events.get(&id) {
            return Ok(Some(event.clone()));
        }
        let expired_up_to = self.commit_version_row.borrow().counters.expired_up_to;
        let params = params![id.as_i64(), expired_up_to.as_i64()];
        self.query_optional(query!("write/event", INT8, INT8), params, |row| decode_event(row, 0))
    }

    pub(super) fn prefetch_events(&self, ids: &[EventId]) -> TableResult<()> {
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        let (from, to) = self.event_number_range(&ids)?;
        let query = query!("write/prefetch_events", INT8_ARRAY, INT8, INT8);
        let found = self.query_all(query, params![ids, from, to], |row| decode_event(row, 0))?;
        self.cache.borrow_mut().events.extend(found.into_iter().map(|event| (event.id, event)));
        Ok(())
    }

    /// Returns a range of event numbers that contains these events, so that the other partitions are not scanned.
    fn event_number_range(&self, ids: &[i64]) -> TableResult<(i64, i64)> {
        let journal_end = self.commit_version_row.borrow().journal_partitions_end_number;
        if self.journal_partition_starts.borrow().0 != journal_end {
            let params = params![self.rows_per_partition.get()];
            let starts = self.query_all(query!("write/partition_starts", INT8), params, |row| {
                Ok((read_column::<i64>(row, 0)?, read_column::<i64>(row, 1)?))
            })?;
            self.journal_partition_starts.replace((journal_end, starts));
        }
        let partitions = self.journal_partition_starts.borrow();
        let (least, greatest) = (ids.iter().min().copied(), ids.iter().max().copied());
        let first = partitions.1.iter().rev().find(|(_, id)| least.is_some_and(|least| *id <= least));
        let next = partitions.1.iter().find(|(_, id)| greatest.is_some_and(|greatest| *id > greatest));
        Ok((first.map_or(0, |(number, _)| *number), next.map_or(i64::MAX, |(number, _)| *number)))
    }

    pub(super) fn list_events_between(
        &self,
        from: EventId,
        to: EventId,
        limit: usize,
    ) -> TableResult<Vec<Event>> {
        let expired_up_to = self.commit_version_row.borrow().counters.expired_up_to;
        let params = params![from.as_i64(), to.as_i64(), expired_up_to.as_i64(), limit as i64];
        self.query_all(query!("write/events_between", INT8, INT8, INT8, INT8), params, |row| {
            decode_event(row, 0)
        })
    }

    pub(super) fn find_event_near_number(&self, number: i64) -> TableResult<Option<EventId>> {
        let id = self.query_optional(query!("write/event_id_at_number", INT8), params![number], |row| {
            read_column(row, 0)
        })?;
        Ok(id.map(EventId::from_i64))
    }

    pub(super) fn find_last_event_up_to(&self, id: EventId) -> TableResult<EventId> {
        let query = query!("write/last_event_up_to", INT8);
        let last = self.query_optional(query, params![id.as_i64()], |row| read_column(row, 0))?;
        Ok(last.map_or(EventId::ZERO, EventId::from_i64))
    }
}
