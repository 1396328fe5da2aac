//! The journal, and the answers given for idempotency keys.

use std::ops::Bound;

use pointsman_core::store::Idempotency;
use pointsman_core::{Event, EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::{Fault, Result};

use super::RedisTables;
use super::transaction::answer_field;
use crate::codec::{Ordered, Packer, Unpacker, ordered};
use crate::keys::{Index, Table};
use crate::rows;
use crate::sight::{Question, Way};

/// Every so many events, one is marked.
const MARK_EVERY: i64 = 1000;

impl RedisTables {
    pub(super) fn find_answer(&self, tenant: &Tenant, key: &str) -> Result<Option<([u8; 32], String)>> {
        let Some(row) = self.sight.row(Table::Answers, answer_field(tenant, key))? else { return Ok(None) };
        let mut row = Unpacker::new(&row);
        let digest = row.bytes()?.try_into().map_err(Fault::damaged)?;
        Ok(Some((digest, row.text()?.into())))
    }

    pub(super) fn keep_answer(&self, used: &Idempotency, answer: &str, now: Timestamp) -> Result<()> {
        let field = answer_field(&used.tenant, &used.key);
        let row = Packer::default().bytes(&used.digest).text(answer).done();
        self.sight.add(Index::AnswersByAge, Ordered::of(now.micros()).and_bytes(&field).done());
        self.sight.put(Table::Answers, field, row);
        Ok(())
    }

    pub(super) fn add_event(
        &self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        tasks: usize,
    ) -> Result<()> {
        self.sight.append(event.id, rows::pack_event(event, first_task, tasks)?);
        if let Some(cause) = event.cause.and_then(|cause| cause.event) {
            self.sight.add(Index::Caused, Ordered::of(cause.as_i64()).and(event.id.as_i64()).done());
        }
        if number % MARK_EVERY == 0 {
            self.sight.add(Index::Marks, Ordered::of(number).and(event.id.as_i64()).done());
        }
        Ok(())
    }

    pub(super) fn find_event(&self, id: EventId) -> Result<Option<Event>> {
        Ok(self.sight.journaled(id)?.map(|found| found.event))
    }

    pub(super) fn find_events(&self, from: EventId, to: EventId, most: usize) -> Result<Vec<Event>> {
        let events = self.sight.events(from, to, Way::Up, most)?;
        events.iter().map(|(id, row)| Ok(rows::unpack_event(*id, row)?.event)).collect()
    }

    pub(super) fn fetch_events(&self, events: &[EventId]) -> Result<()> {
        self.sight.look(events.iter().map(|id| Question::Event(*id)).collect())
    }

    pub(super) fn marked(&self, number: i64) -> Result<Option<EventId>> {
        let end = Ordered::of(number).and(i64::MAX).done();
        let last =
            self.sight.members(&Index::Marks, (Bound::Unbounded, Bound::Included(&end)), Way::Down, 1)?;
        last.first().map(|member| ordered(member, 1).map(EventId::from_i64)).transpose()
    }

    pub(super) fn last_up_to(&self, id: EventId) -> Result<EventId> {
        // Redis looks through the whole journal for what lies before its beginning.
        let first = self.sight.events(EventId::ZERO, EventId::MAX, Way::Up, 1)?;
        if first.first().is_none_or(|(first, _)| *first > id) {
            return Ok(EventId::ZERO);
        }
        let last = self.sight.events(EventId::ZERO, id, Way::Down, 1)?;
        Ok(last.first().map_or(EventId::ZERO, |(id, _)| *id))
    }
}
