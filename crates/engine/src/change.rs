//! What became of a task, for those who watch. Not journaled, not durable: the store has the truth.

use pointsman_core::{EventId, HandlerName, HandlingKey, ObjectKey, Status, TaskId, Tenant, Timestamp};

/// A task changed its status.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskChange {
    pub id: TaskId,
    pub handler: HandlerName,
    pub tenant: Tenant,
    pub kind: HandlingKey,
    pub key: Option<ObjectKey>,
    pub event: EventId,
    pub status: Status,
    pub attempt: u32,
    pub error: Option<String>,
    /// When it will be tried again.
    pub due: Option<Timestamp>,
    pub at: Timestamp,
}
