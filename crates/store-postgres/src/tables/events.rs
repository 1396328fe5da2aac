//! Events and answers.

use pointsman_core::store::Idempotency;
use pointsman_core::{Event, EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::Result;

use super::PgTables;
use super::held::HeldEvent;
use super::seen::{Answer, answer_of};
use crate::link::params;
use crate::rows::{event_of, get};
use crate::session::query;

impl PgTables {
    pub(super) fn find_answer(&self, tenant: &Tenant, key: &str) -> Result<Option<Answer>> {
        let name = (tenant.clone(), key.to_string());
        if let Some(known) = self.seen.borrow().answers.get(&name) {
            return Ok(known.clone());
        }
        let query = query!("write/foresee_answers", TEXT_ARRAY, TEXT_ARRAY);
        let asked = params![vec![name.0.to_string()], vec![name.1.clone()]];
        let found = self.ask_one(query, asked, |row| answer_of(row, 2))?;
        self.seen.borrow_mut().answers.insert(name, found.clone());
        Ok(found)
    }

    pub(super) fn keep_answer(&self, idempotency: &Idempotency, answer: &str, now: Timestamp) {
        let Idempotency { tenant, key, digest } = idempotency;
        self.held.borrow_mut().put_answer(tenant, key, *digest, answer, now);
        let known = Some((*digest, answer.to_string()));
        self.seen.borrow_mut().answers.insert((tenant.clone(), key.clone()), known);
    }

    pub(super) fn add_event(&self, event: &Event, number: i64, first_task: TaskSeq, tasks: usize) {
        let held = HeldEvent { event: event.clone(), number, first_task: first_task.0, tasks };
        self.held.borrow_mut().insert_event(held);
    }

    pub(super) fn find_event(&self, id: EventId) -> Result<Option<Event>> {
        if let Some(event) = self.held.borrow().event(id) {
            return Ok(Some(event.clone()));
        }
        if let Some(event) = self.seen.borrow().events.get(&id) {
            return Ok(Some(event.clone()));
        }
        let forgotten = self.sequencer.borrow().counters.forgotten;
        let asked = params![id.as_i64(), forgotten.as_i64()];
        self.ask_one(query!("write/event", INT8, INT8), asked, |row| event_of(row, 0))
    }

    pub(super) fn fetch_events(&self, ids: &[EventId]) -> Result<()> {
        let ids: Vec<i64> = ids.iter().map(|id| id.as_i64()).collect();
        let (from, to) = self.numbers_around(&ids)?;
        let query = query!("write/foresee_events", INT8_ARRAY, INT8, INT8);
        let found = self.ask_all(query, params![ids, from, to], |row| event_of(row, 0))?;
        self.seen.borrow_mut().events.extend(found.into_iter().map(|event| (event.id, event)));
        Ok(())
    }

    /// Between which numbers these events lie, so that slices without any of them are not looked into.
    fn numbers_around(&self, ids: &[i64]) -> Result<(i64, i64)> {
        let journal_to = self.sequencer.borrow().journal_to;
        if self.slices.borrow().0 != journal_to {
            let asked = params![self.slice.get()];
            let starts = self.ask_all(query!("write/slice_starts", INT8), asked, |row| {
                Ok((get::<i64>(row, 0)?, get::<i64>(row, 1)?))
            })?;
            self.slices.replace((journal_to, starts));
        }
        let slices = self.slices.borrow();
        let (least, greatest) = (ids.iter().min().copied(), ids.iter().max().copied());
        let before = slices.1.iter().rev().find(|(_, id)| least.is_some_and(|least| *id <= least));
        let behind = slices.1.iter().find(|(_, id)| greatest.is_some_and(|greatest| *id > greatest));
        Ok((before.map_or(0, |(number, _)| *number), behind.map_or(i64::MAX, |(number, _)| *number)))
    }

    pub(super) fn find_events(&self, from: EventId, to: EventId, most: usize) -> Result<Vec<Event>> {
        let forgotten = self.sequencer.borrow().counters.forgotten;
        let asked = params![from.as_i64(), to.as_i64(), forgotten.as_i64(), most as i64];
        self.ask_all(query!("write/events_between", INT8, INT8, INT8, INT8), asked, |row| event_of(row, 0))
    }

    pub(super) fn marked(&self, number: i64) -> Result<Option<EventId>> {
        let id = self.ask_one(query!("write/event_numbered", INT8), params![number], |row| get(row, 0))?;
        Ok(id.map(EventId::from_i64))
    }

    pub(super) fn last_up_to(&self, id: EventId) -> Result<EventId> {
        let query = query!("write/last_event_up_to", INT8);
        let last = self.ask_one(query, params![id.as_i64()], |row| get(row, 0))?;
        Ok(last.map_or(EventId::ZERO, EventId::from_i64))
    }
}
