//! Events of the journal.

use std::borrow::Cow;

use pointsman_core::{Cause, Context, Event, EventId, EventType, Json, ObjectKey, TaskSeq, Tenant};

use super::columns;
use crate::error::{Fault, TableResult};

columns! {
    /// The columns of an event in the journal.
    EventColumns<'a> key(id) {
        id: i64,
        /// The id of the object's previous event. A script of the Redis store reads this column.
        prev: Option<i64>,
        event_type: Cow<'a, str> as "type",
        key: Option<Cow<'a, str>>,
        sub: Option<Cow<'a, str>>,
        /// Empty for an event that belongs to no tenant.
        tenant: Cow<'a, str>,
        value: Cow<'a, str>,
        /// JSON; `None` if the context is empty.
        context: Option<Cow<'a, str>>,
        cause_event: Option<i64>,
        cause_task: Option<i64>,
        /// The length of the chain of causes.
        depth: u16,
        /// The first of the tasks that were created with the event; they have consecutive numbers.
        first_task: i64,
        tasks: u32,
    }
}

impl<'a> EventColumns<'a> {
    pub fn from_event(event: &'a Event, first_task: TaskSeq, task_count: usize) -> TableResult<Self> {
        let context = match event.context.is_empty() {
            true => None,
            false => Some(serde_json::to_string(&event.context).map_err(Fault::damaged)?.into()),
        };
        Ok(Self {
            id: event.id.as_i64(),
            prev: event.prev.map(EventId::as_i64),
            event_type: event.event_type.as_str().into(),
            key: event.key.as_ref().map(|key| key.as_str().into()),
            sub: event.sub_object.as_ref().map(|sub| sub.as_str().into()),
            tenant: event.tenant.as_str().into(),
            value: event.value.as_str().into(),
            context,
            cause_event: event.cause.and_then(|cause| cause.event).map(EventId::as_i64),
            cause_task: event.cause.map(|cause| cause.task.0),
            depth: event.cause_depth(),
            first_task: first_task.0,
            tasks: u32::try_from(task_count).map_err(Fault::damaged)?,
        })
    }

    pub fn into_event(self) -> TableResult<Event> {
        let context = match self.context {
            Some(json) => serde_json::from_str(&json).map_err(Fault::damaged)?,
            None => Context::new(),
        };
        let cause = self.cause_task.map(|task| Cause {
            event: self.cause_event.map(EventId::from_i64),
            task: TaskSeq(task),
            depth: self.depth,
        });
        Ok(Event {
            id: EventId::from_i64(self.id),
            prev: self.prev.map(EventId::from_i64),
            event_type: EventType::new(self.event_type).map_err(Fault::damaged)?,
            key: self.key.map(ObjectKey::from_trusted),
            sub_object: self.sub.map(ObjectKey::from_trusted),
            tenant: match &*self.tenant {
                "" => Tenant::no_tenant(),
                name => Tenant::new(name).map_err(Fault::damaged)?,
            },
            value: Json::from_trusted(&*self.value),
            context,
            cause,
        })
    }

    /// Returns the numbers of the tasks that were created with the event.
    pub fn task_seqs(&self) -> impl Iterator<Item = TaskSeq> + use<> {
        (self.first_task..self.first_task + i64::from(self.tasks)).map(TaskSeq)
    }
}
