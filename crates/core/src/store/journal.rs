//! Events in, events out.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Claim, Claims, Result};
use crate::engine_event::EngineEvent;
use crate::journal::{Extent, Filter, Page, Retention};
use crate::task::{Status, Task};
use crate::{Event, EventId, NewEvent, ObjectKey, TaskId, Tenant, Timestamp};

/// What one producer sends at once: all or nothing.
#[derive(Clone, Debug)]
pub struct Emission {
    pub events: Vec<NewEvent>,
    pub idempotency: Option<Idempotency>,
}

/// A caller's key for a request that it may repeat, and a digest of what it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub tenant: Tenant,
    pub key: String,
    pub digest: [u8; 32],
}

/// An event that now stands in the journal, and the tasks that were made for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequenced {
    #[serde(rename = "eventId")]
    pub id: EventId,
    pub prev: Option<EventId>,
    pub tasks: Vec<TaskId>,
}

/// The answer to an emission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub events: Vec<Sequenced>,
    /// The same idempotency key was used before: this is the answer it got then.
    pub repeated: bool,
}

/// Why an emission, or another request with an idempotency key, was refused. Nothing of it was stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the idempotency key {0:?} was used before with other content")]
    IdempotencyConflict(String),
}

/// The answer that a request with an idempotency key gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedAnswer {
    pub answer: String,
    /// It was recorded by an earlier request.
    pub repeated: bool,
}

/// Where to read the journal.
#[derive(Clone, Debug)]
pub struct Read {
    /// Only what comes after this id.
    pub after: EventId,
    /// Only what comes up to this id, if given.
    pub until: Option<EventId>,
    pub filter: Filter,
    /// At most this many matches.
    pub limit: usize,
    /// From the newest backwards.
    pub backwards: bool,
}

/// One event and what was made of it.
#[derive(Clone, Debug)]
pub struct EventView {
    pub event: Arc<Event>,
    pub tasks: Vec<Task>,
    /// What it caused, and what that caused, as far as it is remembered: the nearer first, at most
    /// [`MOST_CAUSED`]. Each names its cause.
    pub caused: Vec<Arc<Event>>,
    pub extent: Extent,
}

/// How many caused events are told of.
pub const MOST_CAUSED: usize = 1000;

/// An object's recent past, and its lanes.
#[derive(Clone, Debug)]
pub struct ObjectView {
    /// The id of its last event, which outlives the journal.
    pub last: EventId,
    /// Its events, newest first, as far as they are remembered.
    pub events: Vec<Arc<Event>>,
    /// Its lanes in which somebody stands, by the names of their handlers: at most [`MOST_LANES`].
    pub lanes: Vec<LaneView>,
    /// There are others.
    pub more_lanes: bool,
    pub extent: Extent,
}

/// A lane in which somebody stands.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneView {
    /// Who stands first, without its attempts: it runs, or waits, or has failed for good and holds the lane.
    pub head: Task,
    /// How many stand behind it: at most [`MOST_BEHIND`].
    pub behind: u64,
    /// There are more.
    pub more: bool,
}

/// How many lanes of an object are told of.
pub const MOST_LANES: usize = 100;
/// So far those who stand behind the head of a lane are counted.
pub const MOST_BEHIND: u64 = 10_000;

impl LaneView {
    /// It is enough to count those who stand in a lane up to here.
    pub const COUNTED: u64 = MOST_BEHIND + 2;

    /// A lane in which so many stand, the head among them.
    pub fn new(head: Task, standing: u64) -> Self {
        let behind = standing.saturating_sub(1);
        Self { head, behind: behind.min(MOST_BEHIND), more: behind > MOST_BEHIND }
    }

    /// Its head has failed for good: nobody behind it runs before a person retries or cancels it.
    pub fn is_halted(&self) -> bool {
        self.head.life.state.status() == Status::Error
    }
}

/// What a sweep of the pruner removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub events: u64,
    pub tasks: u64,
    pub objects: u64,
    /// There is more to remove; the sweep was cut short to let others write.
    pub more: bool,
}

#[async_trait]
pub trait Journal: Send + Sync {
    /// Journals events: gives each its id and `prev`, makes its tasks by the registered routes, and, if a
    /// claim comes along, locks ready tasks for it in the same transaction. Answers in the order asked.
    async fn append(
        &self,
        emissions: Vec<Emission>,
        claim: Option<Claim>,
        now: Timestamp,
    ) -> Result<(Vec<std::result::Result<Receipt, Refused>>, Claims)>;

    /// The answer recorded under an idempotency key, by whatever kind of request; None if the key is new. The answers
    /// to emissions, orders and runs are JSON: a list of [`Sequenced`], a list of [`Added`](super::Added), a
    /// [`RunTask`](super::RunTask).
    async fn recorded_answer(
        &self,
        idempotency: Idempotency,
    ) -> Result<std::result::Result<Option<String>, Refused>>;

    /// Records the answer to a request whose work is not done in one transaction. Of racing requests one records its
    /// answer; the others get that one, and `repeated`.
    async fn record_answer(
        &self,
        idempotency: Idempotency,
        answer: String,
        now: Timestamp,
    ) -> Result<std::result::Result<RecordedAnswer, Refused>>;

    /// Journals events of the engine's own.
    async fn tell(&self, events: Vec<EngineEvent>, now: Timestamp) -> Result<()>;

    /// Where the journal begins and ends.
    async fn extent(&self) -> Result<Extent>;

    /// A stretch of it, read in one transaction. It may stop short of `limit` matches to bound the work; the
    /// page says how far it came.
    async fn read(&self, read: Read) -> Result<Page>;

    async fn event(&self, id: EventId) -> Result<Option<EventView>>;

    /// An object with at most `limit` of its events, read in one transaction. What is read of its lanes is bounded,
    /// however many stand in them.
    async fn object(&self, tenant: &Tenant, key: &ObjectKey, limit: usize) -> Result<Option<ObjectView>>;

    /// Deletes old events, old history and unused objects, a batch a call.
    ///
    /// An unfinished task keeps its event, though observers no longer see it. An object is deleted once its last event
    /// is older than `objects`, has left the journal, and no task of the object is unfinished; its next event starts a
    /// new chain.
    async fn prune(
        &self,
        journal: Retention,
        history: Retention,
        objects: Duration,
        now: Timestamp,
    ) -> Result<Pruned>;
}
