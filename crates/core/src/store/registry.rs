//! Handlers, routes, rules and nodes.

use async_trait::async_trait;

use super::Result;
use crate::{HandlerDef, HandlerName, Routes, Rule, RuleKind, Tenant, Timestamp};

/// A running process, numbered anew at every start.
pub type NodeId = i64;

/// All handlers and routes there are. What is not named is no longer defined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registration {
    pub handlers: Vec<HandlerDef>,
    pub routes: Routes,
}

/// One queue: all tasks of a handler for a tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueView {
    pub handler: HandlerName,
    pub tenant: Tenant,
    /// Live tasks that could run now.
    pub ready: u64,
    /// Live tasks that wait: for their time, their lane or the event's synchronous handlers.
    pub waiting: u64,
    pub scheduled: u64,
    pub running: u64,
    /// Tasks in `error` that hold their lane.
    pub halted: u64,
    pub missing: u64,
    pub held: bool,
}

#[async_trait]
pub trait Registry: Send + Sync {
    /// Makes these the handlers and routes for everything journaled from now on.
    async fn register(&self, registration: Registration, now: Timestamp) -> Result<()>;

    async fn registration(&self) -> Result<Registration>;

    /// Announces a node and gives it its identity.
    async fn join(&self, name: &str, now: Timestamp) -> Result<NodeId>;

    /// Tells that a node lives, and what its clock says. `false`: it was given up, and what it held is
    /// others' now.
    async fn heartbeat(&self, node: NodeId, now: Timestamp) -> Result<bool>;

    /// A node goes in good order.
    async fn leave(&self, node: NodeId, now: Timestamp) -> Result<()>;

    /// Sets a rule. When this answers, no new attempt starts, and what was `scheduled` is `new` again.
    async fn hold(&self, rule: Rule) -> Result<()>;

    /// Lifts a rule; `false` if there was none.
    async fn release(&self, kind: RuleKind, handler: &HandlerName, tenant: Option<&Tenant>) -> Result<bool>;

    async fn rules(&self) -> Result<Vec<Rule>>;

    /// All queues that have live tasks. Read from counters, not by counting.
    async fn queues(&self) -> Result<Vec<QueueView>>;
}
