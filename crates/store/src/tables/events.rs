//! The journal.

use pointsman_core::{Event, EventId, TaskSeq};

use crate::error::TableResult;

/// The journal: events by id, and a sparse index by which an event is found by its number.
pub trait EventTable {
    /// Inserts an event, with its consecutive number and the numbers of its tasks: `task_count` of them from
    /// `first_task`.
    fn insert_event(
        &mut self,
        event: &Event,
        number: i64,
        first_task: TaskSeq,
        task_count: usize,
    ) -> TableResult<()>;

    fn read_event(&mut self, id: EventId) -> TableResult<Option<Event>>;

    /// Lists events from one id to another, both inclusive, the oldest first.
    fn list_events_between(&mut self, from: EventId, to: EventId, limit: usize) -> TableResult<Vec<Event>>;

    /// Returns the id of an event whose number is at most `number`, and not much smaller.
    fn find_event_near_number(&mut self, number: i64) -> TableResult<Option<EventId>>;

    /// Returns the last stored event up to this id; zero if there is none.
    fn find_last_event_up_to(&mut self, id: EventId) -> TableResult<EventId>;
}
