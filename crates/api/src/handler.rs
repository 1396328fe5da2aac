//! Handlers and their rules on the wire.

use pointsman_core::handler::{LaneFailure, Order};
use pointsman_core::store::QueueView;
use pointsman_core::{Rule, RuleKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// `in-process`, `http` or `command`; null where this node cannot run it.
    pub run: Option<String>,
    /// An attempt that takes longer has failed; null where this node cannot run it.
    pub timeout_seconds: Option<f64>,
    #[schema(value_type = Option<String>)]
    pub order: Option<Order>,
    #[schema(value_type = Option<String>)]
    pub on_error: Option<LaneFailure>,
    /// How many failures a task is forgiven.
    pub retry_max: Option<u32>,
    pub routes: Vec<RouteBody>,
    /// All its queues together.
    pub counts: Counts,
    /// One for each tenant that has tasks.
    pub queues: Vec<QueueBody>,
    pub rules: Vec<RuleBody>,
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
    pub fn add(&mut self, other: &Self) {
        self.ready += other.ready;
        self.waiting += other.waiting;
        self.scheduled += other.scheduled;
        self.running += other.running;
        self.halted += other.halted;
        self.missing += other.missing;
    }
}

/// The tasks of one handler for one tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QueueBody {
    pub tenant: String,
    /// A rule holds it.
    pub held: bool,
    #[serde(flatten)]
    pub counts: Counts,
}

/// A standing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleBody {
    /// `pause` or `block`.
    #[schema(value_type = String)]
    pub kind: RuleKind,
    /// Null if it holds all tenants.
    pub tenant: Option<String>,
    pub by: String,
    pub reason: String,
    pub since: String,
}

impl From<&Rule> for RuleBody {
    fn from(rule: &Rule) -> Self {
        Self {
            kind: rule.kind,
            tenant: rule.tenant.as_ref().map(ToString::to_string),
            by: rule.by.clone(),
            reason: rule.reason.clone(),
            since: rule.since.to_string(),
        }
    }
}

/// What a pause or a block may say. All of it is optional, the body too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How many `missing` tasks were taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Adopted {
    pub adopted: u64,
}

/// Whether the server and its store are well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, `stopping` or `unavailable`.
    pub status: String,
    pub version: String,
}
