//! The journal, and idempotency records.

use std::ops::Bound;

use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Event, EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, TableResult};

use super::RedisTables;
use super::transaction::idempotency_field;
use crate::codec::{MemberBuilder, RowDecoder, RowEncoder, decode_member_i64};
use crate::keys::{Index, Table};
use crate::overlay::{CacheFetch, ScanOrder};
use crate::rows;

/// One event in this many has an entry in the index of event numbers.
const EVENT_NUMBER_SAMPLE_INTERVAL: i64 = 1000;

impl RedisTables {
    pub(super) fn read_idempotency_record(
        &self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<([u8; 32], String)>> {
        let Some(row) = self.overlay.read_row(Table::IdempotencyRecords, idempotency_field(tenant, key))?
        else {
            return Ok(None);
        };
        let mut row = RowDecoder::new(&row);
        let digest = row.bytes()?.try_into().map_err(Fault::damaged)?;
        Ok(Some((digest, row.text()?.into())))
    }

    pub(super) fn write_idempotency_record(
        &self,
        idempotency: &IdempotencyKey,
        reply: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        let field = idempotency_field(&idempotency.tenant, &idempotency.key);
        let row = RowEncoder::default().bytes(&idempotency.request_digest).text(reply).finish();
        self.overlay.add_member(
            Index::IdempotencyRecordsByAge,
            MemberBuilder::from_i64(now.micros()).push_bytes(&field).finish(),
        );
        self.overlay.write_row(Table::IdempotencyRecords, field, row);
        Ok(())
    }

    pub(super) fn append_event(
        &self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()> {
        self.overlay.append_event(event.id, rows::encode_event(event, first_task, task_count)?);
        if let Some(cause) = event.cause.and_then(|cause| cause.event) {
            self.overlay.add_member(
                Index::CausedEvents,
                MemberBuilder::from_i64(cause.as_i64()).push_i64(event.id.as_i64()).finish(),
            );
        }
        if number % EVENT_NUMBER_SAMPLE_INTERVAL == 0 {
            self.overlay.add_member(
                Index::EventNumberSamples,
                MemberBuilder::from_i64(number).push_i64(event.id.as_i64()).finish(),
            );
        }
        Ok(())
    }

    pub(super) fn read_event(&self, id: EventId) -> TableResult<Option<Event>> {
        Ok(self.overlay.read_journaled_event(id)?.map(|found| found.event))
    }

    pub(super) fn read_events_between(
        &self,
        from: EventId,
        to: EventId,
        limit: usize,
    ) -> TableResult<Vec<Event>> {
        let events = self.overlay.read_encoded_events(from, to, ScanOrder::Ascending, limit)?;
        events.iter().map(|(id, row)| Ok(rows::decode_event(*id, row)?.event)).collect()
    }

    pub(super) fn prefetch_events(&self, events: &[EventId]) -> TableResult<()> {
        self.overlay.fetch_into_cache(events.iter().map(|id| CacheFetch::Event(*id)).collect())
    }

    pub(super) fn find_event_near_number(&self, number: i64) -> TableResult<Option<EventId>> {
        let end = MemberBuilder::from_i64(number).push_i64(i64::MAX).finish();
        let last = self.overlay.read_members(
            &Index::EventNumberSamples,
            (Bound::Unbounded, Bound::Included(&end)),
            ScanOrder::Descending,
            1,
        )?;
        last.first().map(|member| decode_member_i64(member, 1).map(EventId::from_i64)).transpose()
    }

    pub(super) fn find_last_event_up_to(&self, id: EventId) -> TableResult<EventId> {
        // Without this check, Redis would scan the whole journal for a range that ends before its first entry.
        let first = self.overlay.read_encoded_events(EventId::ZERO, EventId::MAX, ScanOrder::Ascending, 1)?;
        if first.first().is_none_or(|(first, _)| *first > id) {
            return Ok(EventId::ZERO);
        }
        let last = self.overlay.read_encoded_events(EventId::ZERO, id, ScanOrder::Descending, 1)?;
        Ok(last.first().map_or(EventId::ZERO, |(id, _)| *id))
    }
}
