//! State of an object beyond its events: its number, its last event, and the last event sent to each handler.
//!
//! Objects are numbered in the order of their first event. Lane numbers derive from object numbers, so the lanes of a
//! backlog are stored in the order in which they are processed, and ending a task does not touch a page that no other
//! recent task touches.

use pointsman_core::{EventId, Tenant};

use crate::error::{Fault, TableResult};
use crate::row::{HandlerId, ObjectNumber, ObjectRow};
use crate::tables::Tables;
use crate::writer::Txn;

/// An object after an event was added to it: its number, and its row before that event.
pub(crate) struct UpdatedObject {
    pub(crate) number: ObjectNumber,
    previous_row: Option<ObjectRow>,
}

impl UpdatedObject {
    pub(crate) fn previous_event(&self) -> Option<EventId> {
        self.previous_row.as_ref().map(|object| object.last_event)
    }

    pub(crate) fn previous_event_sent_to(&self, handler: HandlerId) -> Option<EventId> {
        self.previous_row.as_ref().and_then(|object| object.last_event_sent_to(handler))
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Makes `id` the object's last event, and the last event sent to each of these handlers. Returns the object's
    /// number and its previous row.
    pub(crate) fn record_object_event(
        &mut self,
        tenant: &Tenant,
        key: &str,
        handlers: &[(HandlerId, bool)],
        id: EventId,
    ) -> TableResult<UpdatedObject> {
        let previous_row = self.tables.read_object(tenant, key)?;
        let number = match &previous_row {
            Some(row) if row.number != 0 => row.number,
            Some(_) | None => self.state.allocate_object_number(),
        };
        let of_other_handlers = previous_row.iter().flat_map(|object| &object.last_sent_events).copied();
        let of_other_handlers = of_other_handlers.filter(|(h, _)| !handlers.iter().any(|(new, _)| new == h));
        let last_sent_events = of_other_handlers.chain(handlers.iter().map(|(h, _)| (*h, id))).collect();
        self.tables.write_object(tenant, key, &ObjectRow { number, last_event: id, last_sent_events })?;
        Ok(UpdatedObject { number, previous_row })
    }

    /// Returns the number of an object that must exist.
    pub(crate) fn read_object_number(
        &mut self,
        tenant: &Tenant,
        key: Option<&str>,
    ) -> TableResult<Option<ObjectNumber>> {
        let Some(key) = key else { return Ok(None) };
        let found = self.find_object_number(tenant, key)?;
        found.ok_or_else(|| Fault::damaged(format!("the object {key} does not exist"))).map(Some)
    }

    /// Returns the number of an object; `None` if retention has deleted it.
    pub(crate) fn find_object_number(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<ObjectNumber>> {
        Ok(self.tables.read_object(tenant, key)?.map(|object| object.number))
    }
}
