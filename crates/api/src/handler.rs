//! Handlers on the wire.

use pointsman_core::handler::{LaneFailure, Order};
use pointsman_core::store::QueueView;
use pointsman_core::{Limits, SourceDef};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RuleBody;

/// All handlers there are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandlerList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub handlers: Vec<HandlerBody>,
}

/// One handler, stamped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandlerDetail {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    #[serde(flatten)]
    pub handler: HandlerBody,
}

/// A handler: how it runs, what routes to it, what waits for it and what holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandlerBody {
    pub name: String,
    /// False when only its tasks or rules are left.
    pub defined: bool,
    /// `in-process`, `http`, `command` or `pull`; null where this node cannot run it.
    pub run: Option<String>,
    /// Where its attempts go: scheme, host and port of a URL, or the name of a program and the number of its arguments; null
    /// where this node cannot run it, and for functions and workers.
    pub target: Option<String>,
    /// An attempt that takes longer has failed; null where this node cannot run it.
    pub timeout_seconds: Option<f64>,
    /// Null for a source, which has no lanes.
    #[schema(value_type = Option<String>)]
    pub order: Option<Order>,
    /// Null for a source.
    #[schema(value_type = Option<String>)]
    pub on_error: Option<LaneFailure>,
    /// How many failures a task is forgiven.
    pub retry_max: Option<u32>,
    /// Null where it is not defined.
    pub limits: Option<LimitsBody>,
    /// What it synchronises, if it is a source.
    pub source: Option<SourceBody>,
    pub routes: Vec<RouteBody>,
    /// All its queues together.
    pub counts: Counts,
    /// For how long the task has waited that is next in line, of those that could run now.
    pub oldest_runnable_seconds: Option<f64>,
    /// One for each tenant, each collection, or each node of a chain, that has tasks. Of very many only those with the
    /// most tasks are shown.
    pub queues: Vec<QueueBody>,
    /// How many queues are not shown. They are counted in `counts` all the same.
    pub more_queues: u64,
    pub rules: Vec<RuleBody>,
}

/// What bounds how fast its tasks begin, over all nodes together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitsBody {
    /// How many run at a time; null for no limit.
    pub concurrency: Option<u32>,
    /// How many of one object's run at a time, where they keep no order.
    pub concurrency_per_key: Option<u32>,
    /// How often one begins, like `100/m`.
    pub rate: Option<String>,
    /// Its share in the round robin.
    pub weight: u16,
    /// A waiting task gains one point of priority each time this has passed.
    pub ageing_seconds: Option<f64>,
}

impl From<&Limits> for LimitsBody {
    fn from(limits: &Limits) -> Self {
        Self {
            concurrency: limits.concurrency,
            concurrency_per_key: limits.concurrency_per_key,
            rate: limits.rate.map(|rate| rate.to_string()),
            weight: limits.weight.get(),
            ageing_seconds: limits.ageing.map(|each| each.as_secs_f64()),
        }
    }
}

/// What a source synchronises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceBody {
    pub tenant: String,
    pub collections: Vec<CollectionBody>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectionBody {
    pub name: String,
    pub priority: u16,
}

impl From<&SourceDef> for SourceBody {
    fn from(source: &SourceDef) -> Self {
        let collections = source.collections.iter();
        let collections = collections
            .map(|(name, priority)| CollectionBody { name: name.to_string(), priority: priority.get() });
        Self { tenant: source.tenant.to_string(), collections: collections.collect() }
    }
}

/// A handling key that leads to a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RouteBody {
    #[serde(rename = "type")]
    pub kind: String,
    /// Run before the queued ones.
    pub sync: bool,
}

/// How many tasks stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts {
    /// Could run now.
    pub ready: u64,
    /// Wait for their time, their lane or the event's synchronous handlers.
    pub waiting: u64,
    pub scheduled: u64,
    pub running: u64,
    /// Stand in `error` and hold their lane.
    pub halted: u64,
    pub missing: u64,
}

impl From<&QueueView> for Counts {
    fn from(queue: &QueueView) -> Self {
        Self {
            ready: queue.ready,
            waiting: queue.waiting,
            scheduled: queue.scheduled,
            running: queue.running,
            halted: queue.halted,
            missing: queue.missing,
        }
    }
}

impl Counts {
    /// All of them together.
    pub fn total(&self) -> u64 {
        self.ready + self.waiting + self.scheduled + self.running + self.halted + self.missing
    }

    pub fn add(&mut self, other: &Self) {
        self.ready += other.ready;
        self.waiting += other.waiting;
        self.scheduled += other.scheduled;
        self.running += other.running;
        self.halted += other.halted;
        self.missing += other.missing;
    }
}

/// The tasks of one handler for one tenant: for events, of one collection of a source, or at one node of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueBody {
    pub tenant: String,
    /// Null where the handler is no source.
    pub collection: Option<String>,
    /// Null where its tasks are no steps.
    pub chain: Option<String>,
    pub node: Option<String>,
    /// For how long the task has waited that is next in line, of those that could run now.
    pub oldest_runnable_seconds: Option<f64>,
    /// A rule holds it.
    pub held: bool,
    #[serde(flatten)]
    pub counts: Counts,
}

/// What to take up beside the `missing` tasks. The body is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptBody {
    /// Replays history to the handler from this event on, at the lowest priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
}

/// How many tasks were taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Adopted {
    /// That were `missing`.
    pub adopted: u64,
    /// That were made for events of the past.
    pub replayed: u64,
    /// There is more to replay: the same call goes on where this one stopped.
    pub more: bool,
}

/// Whether the server and its store are well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or `degraded` while its store does not answer.
    pub status: String,
    pub version: String,
    /// The store, if it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<StoreHealth>,
    /// What is not as it should be with the store, though it works: by what it could lose what it has acknowledged, or why
    /// emits are refused. Left out where there is nothing to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Whether the server reaches its store, and can write there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoreHealth {
    /// `sqlite`, `postgres` or `redis`.
    pub kind: String,
    /// It answered within a second.
    pub reachable: bool,
    /// The last commit succeeded, and none has been under way for longer than ten seconds.
    #[serde(default = "yes")]
    pub writable: bool,
}

/// Servers that do not say so are of a version that did not know.
fn yes() -> bool {
    true
}
