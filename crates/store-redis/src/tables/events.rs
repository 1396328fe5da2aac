//! The journal.

use std::ops::Bound;

use pointsman_core::{Event, EventId, TaskSeq};
use pointsman_store::columns::EventColumns;
use pointsman_store::error::TableResult;
use pointsman_store::store_copy::JOURNAL_SPARSE_INDEX_INTERVAL;
use pointsman_store::tables::EventTable;

use super::RedisTables;
use crate::codec::{MemberBuilder, decode_member_i64};
use crate::keys::Index;
use crate::overlay::ScanOrder;
use crate::rows;

impl EventTable for RedisTables {
    fn insert_event(
        &mut self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()> {
        self.insert_event_columns(&EventColumns::from_event(event, first_task, task_count)?, number);
        Ok(())
    }

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>> {
        self.overlay.read_event(id)
    }

    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>> {
        let events = self.overlay.read_encoded_events(from, to, ScanOrder::Ascending, limit)?;
        events.iter().map(|(id, row)| rows::decode_event(*id, row)?.into_event()).collect()
    }

    fn find_event_near_number(&mut self, number: i64) -> TableResult<Option<EventId>> {
        let end = MemberBuilder::from_i64(number).push_i64(i64::MAX).finish();
        let last = self.overlay.read_members(
            &Index::EventNumberSamples,
            (Bound::Unbounded, Bound::Included(&end)),
            ScanOrder::Descending,
            1,
        )?;
        last.first().map(|member| decode_member_i64(member, 1).map(EventId::from_i64)).transpose()
    }

    fn find_last_event_up_to(&mut self, id: EventId) -> TableResult<EventId> {
        // Without this check, Redis would scan the whole journal for a range that ends before its first entry.
        let first = self.overlay.read_encoded_events(EventId::ZERO, EventId::MAX, ScanOrder::Ascending, 1)?;
        if first.first().is_none_or(|(first, _)| *first > id) {
            return Ok(EventId::ZERO);
        }
        let last = self.overlay.read_encoded_events(EventId::ZERO, id, ScanOrder::Descending, 1)?;
        Ok(last.first().map_or(EventId::ZERO, |(id, _)| *id))
    }
}

impl RedisTables {
    /// Appends the event with this number to the journal, and adds it to the indexes of caused events and of event
    /// numbers.
    pub(crate) fn insert_event_columns(&mut self, event: &EventColumns<'_>, number: i64) {
        self.overlay.append_event(EventId::from_i64(event.id), rows::encode_event(event));
        if let Some(cause) = event.cause_event {
            self.overlay
                .add_member(Index::CausedEvents, MemberBuilder::from_i64(cause).push_i64(event.id).finish());
        }
        if number % JOURNAL_SPARSE_INDEX_INTERVAL == 0 {
            self.overlay.add_member(
                Index::EventNumberSamples,
                MemberBuilder::from_i64(number).push_i64(event.id).finish(),
            );
        }
    }
}
