//! A task: one handler to be run once.

pub mod lifecycle;
pub mod retry;
pub mod why;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::chain::{ChainPath, NodeId, OrderKey};
use crate::names::{BadName, CollectionName, Pair};
use crate::order::Origin;
use crate::wire::{MAX_RESULT, MAX_VALUE};
use crate::{Event, EventId, HandlerName, Json, ObjectKey, Priority, Tenant, Timestamp};
pub use lifecycle::{AttemptEnd, Command, EndReason, Lease, Life, Rejected, State};

/// The six labels of the lifecycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    New,
    Scheduled,
    Locked,
    Done,
    Error,
    Missing,
}

impl Status {
    pub const ALL: [Self; 6] =
        [Self::New, Self::Scheduled, Self::Locked, Self::Done, Self::Error, Self::Missing];

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

    /// What sync tasks and their readers call it. A cancelled task is told apart by its reason.
    pub fn public(self, reason: Option<EndReason>) -> &'static str {
        match self {
            Self::New | Self::Scheduled => "SCHEDULED",
            Self::Locked => "RUNNING",
            Self::Done => "SUCCESS",
            Self::Error if reason == Some(EndReason::Canceled) => "CANCELED",
            Self::Error | Self::Missing => "FAILED",
        }
    }
}

/// A task's own number: dense, in the order of creation. Everything else about its name is made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskSeq(pub i64);

impl fmt::Display for TaskSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a store mixes into the ids of its tasks, so that those of two stores differ: 60 random bits, made once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Realm(pub u64);

impl Realm {
    /// The uuid of a task of this store: version 8, the realm above, the sequence number below.
    pub fn uuid(self, seq: TaskSeq) -> uuid::Uuid {
        let high = self.0 & ((1 << 60) - 1);
        let seq = seq.0 as u64 & ((1 << 62) - 1);
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&((high >> 12) << 16 | (high & 0xFFF)).to_be_bytes());
        bytes[8..].copy_from_slice(&seq.to_be_bytes());
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    /// The sequence number in a uuid, if it is one of this store's.
    pub fn seq(self, uuid: uuid::Uuid) -> Option<TaskSeq> {
        let low = u64::from_be_bytes(uuid.as_bytes()[8..].try_into().ok()?);
        let seq = TaskSeq((low & ((1 << 62) - 1)) as i64);
        (self.uuid(seq) == uuid).then_some(seq)
    }
}

/// The public name of a task: `source_collection_uuid`. For an event's task the source is the handler and the
/// collection the event's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(Arc<str>);

impl TaskId {
    pub fn new(source: &str, collection: &str, uuid: uuid::Uuid) -> Self {
        Self(format!("{source}_{collection}_{uuid}").into())
    }

    /// A name from outside. Whether there is such a task is for the store to say.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The uuid at its end: names may hold `_` themselves, a uuid does not.
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

/// What a task is run for.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// Something happened.
    Event(Arc<Event>),
    /// A collection of a source is to be synchronised.
    Run(Run),
    /// An order stands at a node.
    Step(StepRun),
}

/// What the tasks of one queue of a handler have in common, beside their tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueOf {
    /// They are for events.
    #[default]
    Events,
    /// They synchronise one collection of a source.
    Collection(CollectionName),
    /// They are steps at one node of a chain.
    Node { chain: ChainPath, node: NodeId },
}

impl QueueOf {
    /// As text, in which no two are alike: nothing, the collection's name, or the chain's path, a blank and the node.
    pub fn text(&self) -> String {
        match self {
            Self::Events => String::new(),
            Self::Collection(name) => name.to_string(),
            Self::Node { chain, node } => format!("{chain} {node}"),
        }
    }

    pub fn read(text: &str) -> Result<Self, BadName> {
        if text.is_empty() {
            return Ok(Self::Events);
        }
        match text.split_once(' ') {
            Some((chain, node)) => Ok(Self::Node { chain: ChainPath::new(chain)?, node: NodeId::new(node)? }),
            None => CollectionName::new(text).map(Self::Collection),
        }
    }

    pub fn collection(&self) -> Option<&CollectionName> {
        match self {
            Self::Collection(name) => Some(name),
            Self::Events | Self::Node { .. } => None,
        }
    }
}

/// One step of an order.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRun {
    pub order: OrderKey,
    /// The order's name as a key.
    pub key: ObjectKey,
    pub node: NodeId,
    pub tenant: Tenant,
    /// The event that the order was made for.
    pub origin: Option<Origin>,
    /// The order's value as it is before the step. What the step returns takes its place.
    pub value: Json,
}

/// One synchronisation of one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub pair: Pair,
    pub tenant: Tenant,
}

impl Subject {
    pub fn event(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Event(event) => Some(event),
            Self::Run(_) | Self::Step(_) => None,
        }
    }

    pub fn tenant(&self) -> &Tenant {
        match self {
            Self::Event(event) => &event.tenant,
            Self::Run(run) => &run.tenant,
            Self::Step(step) => &step.tenant,
        }
    }

    pub fn key(&self) -> Option<&ObjectKey> {
        match self {
            Self::Event(event) => event.key.as_ref(),
            Self::Run(_) => None,
            Self::Step(step) => Some(&step.key),
        }
    }

    /// What stands in the middle of its tasks' ids: the event's type, the collection, or the node.
    pub fn collection(&self) -> &str {
        match self {
            Self::Event(event) => event.kind.as_str(),
            Self::Run(run) => run.pair.collection.as_str(),
            Self::Step(step) => step.node.as_str(),
        }
    }

    /// The event that causes what its tasks emit.
    pub fn cause(&self) -> Option<EventId> {
        match self {
            Self::Event(event) => Some(event.id),
            Self::Run(_) => None,
            Self::Step(step) => step.origin.map(|origin| origin.event),
        }
    }

    /// How many emits lie between this and something that nothing caused.
    pub fn depth(&self) -> u16 {
        match self {
            Self::Event(event) => event.depth(),
            Self::Run(_) => 0,
            Self::Step(step) => step.origin.map_or(0, |origin| origin.depth),
        }
    }

    /// The most bytes of JSON that its tasks return.
    pub fn max_result(&self) -> usize {
        max_result(matches!(self, Self::Step(_)))
    }
}

/// What a step returns becomes its order's value.
fn max_result(step: bool) -> usize {
    if step { MAX_VALUE } else { MAX_RESULT }
}

/// How loud a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Info,
    Error,
}

/// A line of a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    pub time: Timestamp,
    pub level: Level,
    pub message: String,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub number: u32,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub end: AttemptEnd,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A task as its readers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub seq: TaskSeq,
    pub id: TaskId,
    pub handler: HandlerName,
    pub tenant: Tenant,
    /// The type of its event, the collection of its source, or the node of its order.
    pub collection: Arc<str>,
    pub key: Option<ObjectKey>,
    /// None for a source's task and for an order's step.
    pub event: Option<EventId>,
    pub priority: Priority,
    pub life: Life,
    /// The time that a schedule planned it for.
    pub planned_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub error: Option<String>,
    pub result: Option<Json>,
    /// The attempts that have ended, in order.
    pub attempts: Vec<Attempt>,
}

impl Task {
    /// The order whose step it is.
    pub fn order(&self) -> Option<OrderKey> {
        // A source's task has no key, and what is for an event names it.
        let key = self.key.as_ref().filter(|_| self.event.is_none())?;
        key.as_str().parse().ok()
    }

    /// The most bytes of JSON that it returns.
    pub fn max_result(&self) -> usize {
        max_result(self.order().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_again_by_its_uuid() {
        let realm = Realm(0x0ABC_DEF0_1234_5678);
        for seq in [0, 1, 255, 1 << 40, (1 << 62) - 1] {
            let uuid = realm.uuid(TaskSeq(seq));
            assert_eq!(uuid.get_version_num(), 8);
            assert_eq!(realm.seq(uuid), Some(TaskSeq(seq)));
            assert_eq!(Realm(7).seq(uuid), None, "a foreign store's");
        }
        assert_eq!(realm.seq(uuid::Uuid::nil()), None);
    }

    #[test]
    fn ids_end_in_a_uuid_whatever_the_names_hold() {
        let uuid = Realm(1).uuid(TaskSeq(9));
        assert_eq!(TaskId::new("a_b", "c_d", uuid).uuid(), Some(uuid));
        assert_eq!(TaskId::from_text("nonsense").uuid(), None);
        assert_eq!(TaskId::from_text("a_b_c").uuid(), None);
    }
}
