//! The table of objects.

use pointsman_core::{EventId, Tenant};

use crate::error::TableResult;
use crate::row::{IdleObject, ObjectRow};

/// Objects: the last event of each, and the event at which retention last found it in use.
pub trait ObjectTable {
    fn read_object(&mut self, tenant: &Tenant, key: &str) -> TableResult<Option<ObjectRow>>;

    fn write_object(&mut self, tenant: &Tenant, key: &str, object: &ObjectRow) -> TableResult<()>;

    /// Lists objects whose `checked` id is at most `up_to`, the smallest first. A new object is checked at its first
    /// event, an object copied from another store at 0.
    fn list_idle_objects(&mut self, up_to: EventId, limit: usize) -> TableResult<Vec<IdleObject>>;

    /// Sets the `checked` ids of objects; [`Self::write_object`] leaves them unchanged.
    fn mark_objects_in_use(&mut self, objects: &[(Tenant, String, EventId)]) -> TableResult<()>;

    /// Sets the `checked` ids of these events' objects to `checked`, where they are at most `up_to`.
    fn mark_objects_of_events_in_use(
        &mut self,
        events: &[EventId],
        up_to: EventId,
        checked: EventId,
    ) -> TableResult<()>;

    fn delete_objects(&mut self, objects: &[IdleObject]) -> TableResult<()>;
}
