//! JSON bodies about handlers and sources.

use pointsman_core::handler::{LaneFailurePolicy, LaneOrdering};
use pointsman_core::store::QueueView;
use pointsman_core::{Limits, SourceDef};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RuleBody;

/// All handlers and sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandlerList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The handlers, by name.
    pub handlers: Vec<HandlerBody>,
}

/// One handler, and the newest event id when it was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandlerDetail {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The handler.
    #[serde(flatten)]
    pub handler: HandlerBody,
}

/// A handler: how it runs, its routes, its tasks by status and its rules.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HandlerBody {
    /// The handler's name.
    pub name: String,
    /// False if it is no longer configured and only its tasks or rules are left.
    pub defined: bool,
    /// `in-process`, `http`, `command` or `pull`; null if this node cannot run it.
    #[serde(rename = "run")]
    pub run_kind: Option<String>,
    /// The target of its attempts: scheme, host and port of a URL, or the name of a program and the number of its
    /// arguments; null if this node cannot run it, and for functions and pull workers.
    pub target: Option<String>,
    /// An attempt that takes longer fails; null if this node cannot run it.
    pub timeout_seconds: Option<f64>,
    /// Whether the tasks of one object run in order (`key`) or not (`none`); null for a source, which has no lanes.
    #[serde(rename = "order")]
    #[schema(value_type = Option<String>)]
    pub ordering: Option<LaneOrdering>,
    /// The policy of a lane whose first task fails for good: it continues (`park`) or waits (`halt`); null for a source.
    #[schema(value_type = Option<String>)]
    pub on_error: Option<LaneFailurePolicy>,
    /// The maximal number of retries of a task.
    pub retry_max: Option<u32>,
    /// The limits on the handler's tasks; null if the handler is not defined.
    pub limits: Option<LimitsBody>,
    /// The collections that the handler synchronises, if it is a source.
    pub source: Option<SourceBody>,
    /// The event types that are routed to the handler.
    pub routes: Vec<RouteBody>,
    /// Counts of the handler's tasks by state: the sums over all its queues.
    pub counts: TaskCounts,
    /// The greatest age, over its queues, of the next task of those that could run now; null if there is none.
    #[serde(rename = "oldest_runnable_seconds")]
    pub max_next_ready_task_age_seconds: Option<f64>,
    /// The queues: one for each tenant, collection or chain node that has tasks. If there are very many, those with the
    /// most tasks.
    pub queues: Vec<QueueBody>,
    /// The number of queues left out. `counts` includes them.
    #[serde(rename = "more_queues")]
    pub omitted_queue_count: u64,
    /// The rules that pause or block the handler.
    pub rules: Vec<RuleBody>,
}

/// The limits of how fast a handler's tasks start, over all nodes together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitsBody {
    /// The maximal number of running tasks; null for no limit.
    pub concurrency: Option<u32>,
    /// The maximal number of running tasks of one object, for a handler without ordering.
    pub concurrency_per_key: Option<u32>,
    /// The maximal rate of starts, like `100/m`.
    pub rate: Option<String>,
    /// The handler's weight in the weighted round robin.
    pub weight: u16,
    /// A waiting task gains one point of priority each time this interval passes.
    pub ageing_seconds: Option<f64>,
}

impl From<&Limits> for LimitsBody {
    fn from(limits: &Limits) -> Self {
        Self {
            concurrency: limits.concurrency,
            concurrency_per_key: limits.concurrency_per_key,
            rate: limits.rate.map(|rate| rate.to_string()),
            weight: limits.weight.get(),
            ageing_seconds: limits.ageing_interval.map(|interval| interval.as_secs_f64()),
        }
    }
}

/// The collections of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceBody {
    /// The tenant of its tasks.
    pub tenant: String,
    /// The source's collections, by name.
    pub collections: Vec<CollectionBody>,
}

/// A collection of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CollectionBody {
    /// The collection's name.
    pub name: String,
    /// The priority of its tasks.
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

/// An event type that is routed to a handler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RouteBody {
    /// The event type.
    #[serde(rename = "type")]
    pub event_type: String,
    /// Whether the handler's task is synchronous: it runs before the event's queued tasks.
    pub sync: bool,
}

/// Numbers of tasks by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskCounts {
    /// Tasks that could run now.
    pub ready: u64,
    /// Tasks that wait for their due time, their lane or the event's synchronous handlers.
    pub waiting: u64,
    /// Tasks that a node will run in one of its next free slots.
    pub scheduled: u64,
    /// Tasks that run.
    pub running: u64,
    /// Tasks in `error` that halt their lane.
    pub halted: u64,
    /// Tasks whose handler is not defined.
    pub missing: u64,
}

impl From<&QueueView> for TaskCounts {
    fn from(queue: &QueueView) -> Self {
        Self {
            ready: queue.ready_count,
            waiting: queue.waiting_count,
            scheduled: queue.scheduled_count,
            running: queue.running_count,
            halted: queue.halted_count,
            missing: queue.missing_count,
        }
    }
}

impl TaskCounts {
    /// The sum of all states.
    pub fn total(&self) -> u64 {
        self.ready + self.waiting + self.scheduled + self.running + self.halted + self.missing
    }

    /// Adds other counts to these.
    pub fn add(&mut self, other: &Self) {
        self.ready += other.ready;
        self.waiting += other.waiting;
        self.scheduled += other.scheduled;
        self.running += other.running;
        self.halted += other.halted;
        self.missing += other.missing;
    }
}

/// A queue: the tasks of one handler for one tenant, and for one collection of a source or one node of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueBody {
    /// The tenant of the queue's tasks.
    pub tenant: String,
    /// The collection of the source; null if the handler is not a source.
    pub collection: Option<String>,
    /// The chain whose steps the tasks run; null if they are not steps of orders.
    pub chain: Option<String>,
    /// The node of that chain; null if the tasks are not steps of orders.
    #[serde(rename = "node")]
    pub chain_node: Option<String>,
    /// The age of the task that is next among those that could run now; null if there is none.
    #[serde(rename = "oldest_runnable_seconds")]
    pub next_ready_task_age_seconds: Option<f64>,
    /// Whether a rule pauses or blocks the queue.
    #[serde(rename = "held")]
    pub is_paused_or_blocked: bool,
    /// The tasks in the queue.
    #[serde(flatten)]
    pub counts: TaskCounts,
}

/// A request to adopt a handler's `missing` tasks, and to replay history to it. The body is optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = AdoptBody)]
pub struct AdoptMissingTasksBody {
    /// Replays history to the handler from this event on, at the lowest priority.
    #[serde(rename = "from", default, skip_serializing_if = "Option::is_none")]
    pub replay_from_event_id: Option<u64>,
}

/// The numbers of adopted and replayed tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AdoptResponse)]
pub struct AdoptMissingTasksResponse {
    /// The number of tasks that were `missing` and are queued again.
    #[serde(rename = "adopted")]
    pub adopted_task_count: u64,
    /// The number of tasks that were created for past events.
    #[serde(rename = "replayed")]
    pub replayed_task_count: u64,
    /// Whether there is more to replay: repeat the call to continue.
    #[serde(rename = "more")]
    pub has_more: bool,
}
