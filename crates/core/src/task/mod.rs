//! Tasks: each runs one handler for one event, one collection or one step of an order.

pub mod gates;
pub mod lifecycle;
pub mod retry;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chain::{ChainNodeId, ChainPath, OrderKey};
use crate::event_json_parser::{MAX_RESULT_BYTES, MAX_VALUE_BYTES};
use crate::names::{BadName, CollectionName, SourceCollection};
use crate::order::OrderOrigin;
use crate::{Event, EventId, HandlerName, Json, ObjectKey, Priority, Tenant, Timestamp};
pub use lifecycle::{
    AttemptOutcome, ErrorReason, Lease, TaskCommand, TaskCommandError, TaskLifecycle, TaskState,
};

/// The status of a task: the name of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// The task waits for its due time, its lane or a slot.
    New,
    /// The task will run in one of the next free slots of a node.
    Scheduled,
    /// The task runs.
    Locked,
    /// The task has succeeded.
    Done,
    /// The task has failed for good, or was cancelled.
    Error,
    /// The task's handler is not defined.
    Missing,
}

impl TaskStatus {
    /// All statuses.
    pub const ALL: [Self; 6] =
        [Self::New, Self::Scheduled, Self::Locked, Self::Done, Self::Error, Self::Missing];

    /// The status in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Scheduled => "scheduled",
            Self::Locked => "locked",
            Self::Done => "done",
            Self::Error => "error",
            Self::Missing => "missing",
        }
    }

    /// The status in the public task JSON. The reason distinguishes a cancelled task from a failed one.
    pub fn public_name(self, reason: Option<ErrorReason>) -> &'static str {
        match self {
            Self::New | Self::Scheduled => "SCHEDULED",
            Self::Locked => "RUNNING",
            Self::Done => "SUCCESS",
            Self::Error if reason == Some(ErrorReason::Canceled) => "CANCELED",
            Self::Error | Self::Missing => "FAILED",
        }
    }
}

/// The sequence number of a task: dense, in the order of creation. The task's uuid contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskSeq(pub i64);

impl fmt::Display for TaskSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The part of a task's uuid that is the same for all tasks of a store and differs between stores: 60 random bits,
/// generated once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskIdNamespace(pub u64);

impl TaskIdNamespace {
    /// The uuid of a task of this store: version 8, the namespace in the high bits, the sequence number in the low
    /// ones.
    pub fn uuid_of_seq(self, seq: TaskSeq) -> uuid::Uuid {
        let namespace_bits = self.0 & ((1 << 60) - 1);
        let seq = seq.0 as u64 & ((1 << 62) - 1);
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&((namespace_bits >> 12) << 16 | (namespace_bits & 0xFFF)).to_be_bytes());
        bytes[8..].copy_from_slice(&seq.to_be_bytes());
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    /// The sequence number in a uuid, if the uuid is of this store.
    pub fn seq_of_uuid(self, uuid: uuid::Uuid) -> Option<TaskSeq> {
        let low_bits = u64::from_be_bytes(uuid.as_bytes()[8..].try_into().ok()?);
        let seq = TaskSeq((low_bits & ((1 << 62) - 1)) as i64);
        (self.uuid_of_seq(seq) == uuid).then_some(seq)
    }
}

/// The public id of a task: `handler_subject_uuid`. The subject is the event's type, the source's collection, or the
/// order's node.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(Arc<str>);

impl TaskId {
    /// Composes an id from the handler, the name of the subject and a UUID.
    pub fn new(handler: &str, subject_name: &str, uuid: uuid::Uuid) -> Self {
        Self(format!("{handler}_{subject_name}_{uuid}").into())
    }

    /// Wraps an id from a request, unchecked. Only the store knows whether the task exists.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The uuid at the end of the id: the names before it may contain `_`, a uuid does not.
    pub fn uuid(&self) -> Option<uuid::Uuid> {
        let (_, uuid) = self.0.rsplit_once('_')?;
        uuid::Uuid::try_parse(uuid).ok()
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The event, collection or step for which a task runs.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskSubject {
    /// An emitted event.
    Event(Arc<Event>),
    /// The synchronisation of a collection of a source.
    CollectionRun(CollectionRun),
    /// A step of an order.
    Step(StepRun),
}

/// The common subject of all tasks in one queue of a handler. A queue also has one tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueSubject {
    /// The tasks are for events.
    #[default]
    Events,
    /// The tasks synchronise one collection of a source.
    Collection(CollectionName),
    /// The tasks are steps at one node of a chain.
    ChainNode {
        /// The chain.
        chain: ChainPath,
        /// The node of the chain.
        node: ChainNodeId,
    },
}

impl QueueSubject {
    /// The unique text form: empty, the collection's name, or the chain's path, a blank and the node.
    pub fn to_text(&self) -> String {
        match self {
            Self::Events => String::new(),
            Self::Collection(name) => name.to_string(),
            Self::ChainNode { chain, node } => format!("{chain} {node}"),
        }
    }

    /// Parses the text form.
    pub fn from_text(text: &str) -> Result<Self, BadName> {
        if text.is_empty() {
            return Ok(Self::Events);
        }
        match text.split_once(' ') {
            Some((chain, node)) => {
                Ok(Self::ChainNode { chain: ChainPath::new(chain)?, node: ChainNodeId::new(node)? })
            }
            None => CollectionName::new(text).map(Self::Collection),
        }
    }

    /// The collection, if the queue's tasks synchronise one.
    pub fn collection(&self) -> Option<&CollectionName> {
        match self {
            Self::Collection(name) => Some(name),
            Self::Events | Self::ChainNode { .. } => None,
        }
    }
}

/// One step of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRun {
    /// The order.
    pub order_key: OrderKey,
    /// The order's key as an object key.
    pub object_key: ObjectKey,
    /// The node of the step.
    pub node: ChainNodeId,
    /// The order's tenant.
    pub tenant: Tenant,
    /// The event that the order was created for.
    pub origin: Option<OrderOrigin>,
    /// The order's value before the step. The step's result replaces it.
    pub value: Json,
}

/// One synchronisation of one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionRun {
    /// The source and its collection.
    pub source_collection: SourceCollection,
    /// The tenant of the source's tasks.
    pub tenant: Tenant,
}

impl TaskSubject {
    /// The event, if the task handles one.
    pub fn event(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Event(event) => Some(event),
            Self::CollectionRun(_) | Self::Step(_) => None,
        }
    }

    /// The tenant of the task.
    pub fn tenant(&self) -> &Tenant {
        match self {
            Self::Event(event) => &event.tenant,
            Self::CollectionRun(run) => &run.tenant,
            Self::Step(step) => &step.tenant,
        }
    }

    /// The object of the task's lane: the event's, or the order.
    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Event(event) => event.key.as_ref(),
            Self::CollectionRun(_) => None,
            Self::Step(step) => Some(&step.object_key),
        }
    }

    /// The middle part of the task's id: the event's type, the collection, or the node.
    pub fn name(&self) -> &str {
        match self {
            Self::Event(event) => event.event_type.as_str(),
            Self::CollectionRun(run) => run.source_collection.collection.as_str(),
            Self::Step(step) => step.node.as_str(),
        }
    }

    /// The event that is recorded as the cause of the events that the task emits.
    pub fn cause_event(&self) -> Option<EventId> {
        match self {
            Self::Event(event) => Some(event.id),
            Self::CollectionRun(_) => None,
            Self::Step(step) => step.origin.map(|origin| origin.event_id),
        }
    }

    /// The length of the chain of causes before the task; 0 if nothing caused it.
    pub fn cause_depth(&self) -> u16 {
        match self {
            Self::Event(event) => event.cause_depth(),
            Self::CollectionRun(_) => 0,
            Self::Step(step) => step.origin.map_or(0, |origin| origin.cause_depth),
        }
    }

    /// The maximum size of the JSON result of its tasks.
    pub fn max_result_bytes(&self) -> usize {
        max_result_bytes_for(matches!(self, Self::Step(_)))
    }
}

/// The maximum size of a task's JSON result. A step's may be as large as a value: it becomes the order's value.
fn max_result_bytes_for(is_step: bool) -> usize {
    if is_step { MAX_VALUE_BYTES } else { MAX_RESULT_BYTES }
}

/// The severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Information.
    Info,
    /// An error, or what a command wrote to its standard error.
    Error,
}

/// A line of a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// When the line was written.
    pub time: Timestamp,
    /// The line's severity.
    pub level: LogLevel,
    /// The text, without a line break at its end.
    pub message: String,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// The attempt's number: 1 for the first run.
    pub number: u32,
    /// When the attempt started.
    pub started_at: Timestamp,
    /// When the attempt ended.
    pub ended_at: Timestamp,
    /// How the attempt ended.
    #[serde(rename = "end")]
    pub outcome: AttemptOutcome,
    /// The error of a failed attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A task with its attempts, as readers get it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The task's number in the store; a later task has a larger one.
    pub seq: TaskSeq,
    /// The task's id.
    pub id: TaskId,
    /// The handler.
    pub handler: HandlerName,
    /// The tenant.
    pub tenant: Tenant,
    /// The type of its event, the collection of its source, or the node of its order. `collection` in task JSON.
    pub subject_name: Arc<str>,
    /// The object that the task's event or order is about.
    pub key: Option<ObjectKey>,
    /// The event that the task handles; None for a source's task and for an order's step.
    pub event_id: Option<EventId>,
    /// The task's priority.
    pub priority: Priority,
    /// The state, and the counts of attempts.
    pub lifecycle: TaskLifecycle,
    /// The time for which a schedule planned the task.
    pub planned_at: Option<Timestamp>,
    /// When the task was created.
    pub created_at: Timestamp,
    /// When the latest attempt started.
    pub started_at: Option<Timestamp>,
    /// When the task ended.
    pub finished_at: Option<Timestamp>,
    /// The error of the latest failed attempt.
    pub error: Option<String>,
    /// The value that the handler returned.
    pub result: Option<Json>,
    /// The attempts that have ended, in order.
    pub attempts: Vec<AttemptRecord>,
}

impl Task {
    /// The key of the order whose step this task runs.
    pub fn order_key(&self) -> Option<OrderKey> {
        // A task of a source has no key, and a task of an event has the event.
        let key = self.key.as_ref().filter(|_| self.event_id.is_none())?;
        key.as_str().parse().ok()
    }

    /// The maximum size of its JSON result.
    pub fn max_result_bytes(&self) -> usize {
        max_result_bytes_for(self.order_key().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_contain_the_sequence_number_and_the_namespace() {
        let namespace = TaskIdNamespace(0x0ABC_DEF0_1234_5678);
        for seq in [0, 1, 255, 1 << 40, (1 << 62) - 1] {
            let uuid = namespace.uuid_of_seq(TaskSeq(seq));
            assert_eq!(uuid.get_version_num(), 8);
            assert_eq!(namespace.seq_of_uuid(uuid), Some(TaskSeq(seq)));
            assert_eq!(TaskIdNamespace(7).seq_of_uuid(uuid), None, "a uuid of another store");
        }
        assert_eq!(namespace.seq_of_uuid(uuid::Uuid::nil()), None);
    }

    #[test]
    fn the_uuid_is_parsed_from_ids_whose_names_contain_underscores() {
        let uuid = TaskIdNamespace(1).uuid_of_seq(TaskSeq(9));
        assert_eq!(TaskId::new("a_b", "c_d", uuid).uuid(), Some(uuid));
        assert_eq!(TaskId::from_text("nonsense").uuid(), None);
        assert_eq!(TaskId::from_text("a_b_c").uuid(), None);
    }
}
