//! The journal: appending and reading events, idempotency records, retention.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{ClaimRequest, ClaimResult, StoreResult};
use crate::engine_event::EngineEvent;
use crate::journal::{EventFilter, EventPage, JournalRange, Retention};
use crate::task::{Task, TaskStatus};
use crate::{Event, EventId, NewEvent, ObjectKey, TaskId, Tenant, Timestamp};

/// The events that one producer emits in one request: all or nothing.
#[derive(Clone, Debug)]
pub struct EmitBatch {
    /// The events, in the order in which they are journaled.
    pub events: Vec<NewEvent>,
    /// The key under which the request may be repeated.
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A caller's key for a request that it may repeat, and a digest of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The tenant; keys of different tenants are independent.
    pub tenant: Tenant,
    /// The caller's key.
    pub key: String,
    /// A digest of the request: a repeat with another one is refused.
    pub request_digest: [u8; 32],
}

/// An event that was appended to the journal, and the tasks that were created for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmittedEventReceipt {
    /// The event's id.
    #[serde(rename = "eventId")]
    pub id: EventId,
    /// The id of the preceding event of the same object.
    pub prev: Option<EventId>,
    /// The event's tasks, one for each handler that it is routed to.
    pub tasks: Vec<TaskId>,
}

/// The result of an [`EmitBatch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmitReceipt {
    /// The appended events, in the order of the batch.
    pub events: Vec<EmittedEventReceipt>,
    /// The idempotency key was used before: this is the result of the first request.
    pub repeated: bool,
}

/// Why a request with an idempotency key was refused. Nothing of it was stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdempotencyError {
    /// The key was used before, for another request.
    #[error("the idempotency key {0:?} was used before with other content")]
    Conflict(String),
}

/// The stored response to a request with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// The response, as the first request got it.
    pub response: String,
    /// The response was recorded by an earlier request.
    pub repeated: bool,
}

/// Which part of the journal to read.
#[derive(Clone, Debug)]
pub struct JournalQuery {
    /// Only events after this id.
    pub after_event_id: EventId,
    /// Only events up to and including this id, if given.
    pub up_to_event_id: Option<EventId>,
    /// Only events that match.
    pub filter: EventFilter,
    /// The largest number of matching events.
    pub limit: usize,
    /// Reads from the newest event backwards.
    pub backwards: bool,
}

/// An event, its tasks and the events that it caused.
#[derive(Clone, Debug)]
pub struct EventView {
    /// The event.
    pub event: Arc<Event>,
    /// The event's tasks.
    pub tasks: Vec<Task>,
    /// The events that this event caused directly or indirectly and that have not expired: direct ones first, at most
    /// [`MAX_CAUSED_EVENTS`]. Each names its cause.
    pub caused_events: Vec<Arc<Event>>,
    /// The ids in the journal when the event was read.
    pub journal_range: JournalRange,
}

/// The largest number of caused events in an [`EventView`].
pub const MAX_CAUSED_EVENTS: usize = 1000;

/// The recent events of an object, and its lanes.
#[derive(Clone, Debug)]
pub struct ObjectView {
    /// The id of the object's last event. The store keeps it after the event itself has expired.
    pub last_event_id: EventId,
    /// The object's events that have not expired, newest first.
    pub events: Vec<Arc<Event>>,
    /// The object's lanes that have tasks, by handler name: at most [`MAX_LISTED_LANES`].
    pub lanes: Vec<LaneView>,
    /// The object has more lanes than are listed.
    pub has_more_lanes: bool,
    /// The ids in the journal when the object was read.
    pub journal_range: JournalRange,
}

/// A lane that has tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneView {
    /// The lane's first task, without its attempts: it runs, waits, or has failed for good and halts the lane.
    pub head: Task,
    /// The number of tasks behind the head: at most [`MAX_COUNTED_TASKS_BEHIND_HEAD`].
    pub task_count_behind_head: u64,
    /// There are more tasks behind the head than were counted.
    pub has_more_behind_head: bool,
}

/// The largest number of lanes in an [`ObjectView`].
pub const MAX_LISTED_LANES: usize = 100;
/// Tasks behind the head of a lane are counted up to this number.
pub const MAX_COUNTED_TASKS_BEHIND_HEAD: u64 = 10_000;

impl LaneView {
    /// A store need not count more tasks of a lane than this.
    pub const MAX_COUNTED_TASKS: u64 = MAX_COUNTED_TASKS_BEHIND_HEAD + 2;

    /// A lane of `task_count` tasks, including the head.
    pub fn new(head: Task, task_count: u64) -> Self {
        let behind = task_count.saturating_sub(1);
        Self {
            head,
            task_count_behind_head: behind.min(MAX_COUNTED_TASKS_BEHIND_HEAD),
            has_more_behind_head: behind > MAX_COUNTED_TASKS_BEHIND_HEAD,
        }
    }

    /// Whether the lane's head has failed for good: no task behind it runs until a person retries or cancels the head.
    pub fn is_halted(&self) -> bool {
        self.head.lifecycle.state.status() == TaskStatus::Error
    }
}

/// The numbers of rows that one call of [`Journal::prune_events_tasks_and_objects`] deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The number of deleted events.
    pub deleted_event_count: u64,
    /// The number of deleted tasks.
    pub deleted_task_count: u64,
    /// The number of deleted objects.
    pub deleted_object_count: u64,
    /// There is more to delete: the call stopped early so that other writers can write.
    pub has_more: bool,
}

/// Appends and reads events.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Appends events: gives each its id and `prev`, creates its tasks by the registered routes, and, if `claim` is
    /// given, locks ready tasks for it in the same transaction. Results are in the order of the batches.
    async fn append(
        &self,
        batches: Vec<EmitBatch>,
        claim: Option<ClaimRequest>,
        now: Timestamp,
    ) -> StoreResult<(Vec<Result<EmitReceipt, IdempotencyError>>, ClaimResult)>;

    /// Reads the response recorded under an idempotency key by any kind of request; None if the key is new. The
    /// responses to emits, orders and collection runs are JSON: a list of [`EmittedEventReceipt`], a list of
    /// [`AddedOrder`](super::AddedOrder), a
    /// [`CollectionRunReceipt`](super::CollectionRunReceipt).
    async fn find_idempotent_response(
        &self,
        idempotency: IdempotencyKey,
    ) -> StoreResult<Result<Option<String>, IdempotencyError>>;

    /// Records the response to a request whose work is not done in one transaction. If requests run
    /// concurrently, one records its response; the others get that response, and `repeated`.
    async fn record_idempotent_response(
        &self,
        idempotency: IdempotencyKey,
        response: String,
        now: Timestamp,
    ) -> StoreResult<Result<IdempotencyRecord, IdempotencyError>>;

    /// Appends events of the engine itself.
    async fn publish_engine_events(&self, events: Vec<EngineEvent>, now: Timestamp) -> StoreResult<()>;

    /// Reads the range of event ids that observers can read.
    async fn read_journal_range(&self) -> StoreResult<JournalRange>;

    /// Reads a page of events in one transaction. It may return fewer than `limit` matches to bound the work; the
    /// page has the id up to which it was read.
    async fn read_events(&self, query: JournalQuery) -> StoreResult<EventPage>;

    /// Reads an event with its tasks and the events that it caused; `None` if there is no such event.
    async fn read_event(&self, id: EventId) -> StoreResult<Option<EventView>>;

    /// Reads an object with at most `limit` of its events in one transaction. The work for its lanes is bounded,
    /// however many tasks they have.
    async fn read_object(
        &self,
        tenant: &Tenant,
        key: &ObjectKey,
        limit: usize,
    ) -> StoreResult<Option<ObjectView>>;

    /// Deletes old events, old tasks in the history and unused objects. Each call deletes at most a batch.
    ///
    /// An unfinished task keeps its event, though observers no longer see it. An object is deleted once its last event
    /// is older than `object_max_age`, has left the journal, and no task of the object is unfinished; its next event
    /// starts a new sequence of `prev` links.
    async fn prune_events_tasks_and_objects(
        &self,
        journal_retention: Retention,
        history_retention: Retention,
        object_max_age: Duration,
        now: Timestamp,
    ) -> StoreResult<PruneReport>;
}
