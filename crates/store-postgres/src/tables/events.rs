//! Events, objects and answers.

use pointsman_core::store::Idempotency;
use pointsman_core::{Event, EventId, TaskSeq, Tenant, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::row::Object;

use super::PgTables;
use super::held::HeldEvent;
use super::seen::{Answer, answer_of, object_of};
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
        let found =
            self.ask_all(query!("write/foresee_events", INT8_ARRAY), params![ids], |row| event_of(row, 0))?;
        self.seen.borrow_mut().events.extend(found.into_iter().map(|event| (event.id, event)));
        Ok(())
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

    pub(super) fn find_object(&self, tenant: &Tenant, key: &str) -> Result<Option<Object>> {
        let name = (tenant.clone(), key.to_string());
        if let Some(known) = self.seen.borrow().objects.get(&name) {
            return Ok(known.clone());
        }
        let asked = params![name.0.to_string(), name.1.clone()];
        let found = self.ask_one(query!("write/object", TEXT, TEXT), asked, |row| object_of(row, 0))?;
        self.seen.borrow_mut().objects.insert(name, found.clone());
        Ok(found)
    }

    pub(super) fn keep_object(&self, tenant: &Tenant, key: &str, object: &Object) {
        self.held.borrow_mut().put_object(tenant, key, object);
        self.seen.borrow_mut().objects.insert((tenant.clone(), key.into()), Some(object.clone()));
    }
}
