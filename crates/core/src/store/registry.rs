//! Registrations (handlers, routes, chains), nodes, rules, queue counts and the audit log.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::StoreResult;
use crate::chain::Chain;
use crate::route::ChainRoutes;
use crate::task::QueueSubject;
use crate::{HandlerDef, HandlerName, Routes, Rule, RuleKind, RuleScope, Tenant, Timestamp, Weight};

/// The id of a running process. Every start of a process gets a new one.
pub type NodeId = i64;

/// All handlers, routes and chains that nodes have registered under one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    /// The name under which the definitions are registered: nodes with the same configuration share it. The definitions
    /// of all registrations are in effect together.
    #[serde(rename = "by")]
    pub registration_name: String,
    /// The handlers.
    pub handlers: Vec<HandlerDef>,
    /// Which handlers events go to.
    pub routes: Routes,
    /// The weights of tenants in the round robin; 1 for tenants not listed.
    #[serde(rename = "tenants")]
    pub tenant_weights: BTreeMap<Tenant, Weight>,
    /// The chains.
    pub chains: Vec<Chain>,
    /// Which chains events create orders for.
    pub chain_routes: ChainRoutes,
    /// The objects configured in files, by their key in the stream (`Job:/index`, `JobChain:/a/b`,
    /// `Schedule:/nightly`), each with a digest. Differences to the previous registration are published in the journal.
    #[serde(rename = "files")]
    pub configured_object_digests: BTreeMap<String, String>,
}

impl Registration {
    /// Adds the definitions of another registration. They replace the definitions of the same name in this one.
    pub fn merge(&mut self, other: Self) {
        let Self {
            registration_name: _,
            handlers,
            routes,
            tenant_weights,
            chains,
            chain_routes,
            configured_object_digests: file_digests,
        } = other;
        self.handlers.retain(|mine| handlers.iter().all(|def| def.name != mine.name));
        self.handlers.extend(handlers);
        self.routes.merge(routes);
        self.tenant_weights.extend(tenant_weights);
        self.chains.retain(|mine| chains.iter().all(|chain| chain.path != mine.path));
        self.chains.extend(chains);
        self.chain_routes.merge(chain_routes);
        self.configured_object_digests.extend(file_digests);
    }
}

/// The handlers and slots of a node, and the state of its clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCapabilities {
    /// The name under which the node has registered its definitions; none if it has not.
    #[serde(rename = "registrant", default)]
    pub registration_name: Option<String>,
    /// The handlers that the node can run.
    pub handlers: BTreeSet<HandlerName>,
    /// The number of tasks that the node runs at a time.
    pub slots: usize,
    /// The node's clock, as the node last reported it.
    #[serde(default)]
    pub clock: ClockReport,
}

/// A node's clock, compared with the store's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReport {
    /// By how many milliseconds the node's clock is ahead of the store's time; negative if it is behind.
    pub offset_ms: i64,
    /// The node has taken itself out of service because of its clock.
    pub out_of_service: bool,
    /// The last step of the node's clock since the node started.
    pub last_step: Option<ClockStep>,
    /// The node's time together with its machine's uptime. Until the machine boots again, a node that starts there
    /// computes the current time from both.
    #[serde(default, rename = "boot")]
    pub time_at_uptime: Option<TimeAtUptime>,
}

/// A time of a node, and the uptime of its machine at that time: the reference from which the current time can be
/// computed until the machine boots again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeAtUptime {
    /// A number that identifies this boot of this machine.
    #[serde(rename = "boot")]
    pub boot_id: u64,
    /// The machine's uptime at that time.
    pub uptime_ms: u64,
    /// The node's time at that uptime.
    pub at: Timestamp,
    /// Set while `at` is not confirmed: the machine booted with a clock far ahead of the last write to the store.
    #[serde(rename = "unconfirmed", default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed_time: Option<UnconfirmedTime>,
}

/// Why the time of a node is not confirmed, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnconfirmedTime {
    /// The machine's uptime from which on the time counts as confirmed.
    pub until_uptime_ms: u64,
    /// The last confirmed time at which the store was written.
    #[serde(rename = "last_seen")]
    pub last_confirmed_write: Timestamp,
}

/// A change of a clock that was set, rather than having drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStep {
    /// When the step was noticed, in the store's time.
    pub at: Timestamp,
    /// By how many milliseconds the clock was set forward; negative if it was set back.
    pub by_ms: i64,
}

/// A node of the cluster, live or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    /// The node's id.
    pub id: NodeId,
    /// The node's name, which the operator chose.
    pub name: String,
    /// When the node joined the cluster.
    pub joined_at: Timestamp,
    /// When the node last sent a heartbeat.
    pub last_heartbeat_at: Timestamp,
    /// The node has left the cluster, or was declared dead.
    pub has_left_or_died: bool,
    /// The node's handlers, slots and clock.
    pub capabilities: NodeCapabilities,
    /// The number of tasks that the node has leased now.
    pub running_task_count: u64,
}

/// An entry of the audit log: one change that a person or program made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When the change was made.
    pub at: Timestamp,
    /// The name of the token that was used.
    pub actor: String,
    /// The change in a word: `pause`, `retry`, `run`, …
    pub action: String,
    /// The object that was changed.
    pub target: String,
    /// The reason, or the number of affected objects.
    pub detail: String,
}

/// Task counts of one queue of a handler.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueView {
    /// The handler.
    pub handler: HandlerName,
    /// What the queue's tasks are for.
    pub subject: QueueSubject,
    /// The tenant of the queue's tasks.
    pub tenant: Tenant,
    /// The number of tasks that could run now.
    pub ready_count: u64,
    /// Unfinished tasks that wait: for their due time, their lane or the event's synchronous handlers.
    pub waiting_count: u64,
    /// The number of tasks that a node has scheduled.
    pub scheduled_count: u64,
    /// The number of tasks that run.
    pub running_count: u64,
    /// Tasks in `error` that halt their lane.
    pub halted_count: u64,
    /// The number of tasks whose handler is not defined.
    pub missing_count: u64,
    /// A rule pauses or blocks the queue, or its chain or node is stopped.
    pub is_paused_or_blocked: bool,
    /// When the ready task that is next in claim order was created; None if none is ready.
    pub next_ready_task_created_at: Option<Timestamp>,
}

/// Stores registrations, nodes, rules and the audit log.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Replaces the registration of this name, for all events journaled from now on. A definition that the replaced
    /// registration has and the new one has not is removed, unless a registration of another name has it.
    async fn register_definitions(&self, registration: Registration, now: Timestamp) -> StoreResult<()>;

    /// Reads the definitions of all registrations, merged. If two registrations define an object of the same name, the
    /// one that changed last wins.
    async fn read_merged_registration(&self) -> StoreResult<Registration>;

    /// Lists the names of all registrations. [`TaskQueue::rescue_tasks`](super::TaskQueue::rescue_tasks) deletes a
    /// registration that no live node has used for a day; time in which no rescue ran does not count.
    async fn list_registration_names(&self) -> StoreResult<Vec<String>>;

    /// Adds a node to the cluster and gives it its id.
    async fn join_node(&self, name: &str, now: Timestamp) -> StoreResult<NodeId>;

    /// Stores the capabilities of a node: its handlers, its slots and the state of its clock.
    async fn store_node_capabilities(&self, node: NodeId, capabilities: NodeCapabilities) -> StoreResult<()>;

    /// Lists the live nodes and those that left or died most recently, newest first.
    async fn list_nodes(&self) -> StoreResult<Vec<NodeView>>;

    /// Records the heartbeat of a node and its time. `false`: the node was declared dead, and other nodes have
    /// taken over its tasks.
    async fn record_heartbeat(&self, node: NodeId, now: Timestamp) -> StoreResult<bool>;

    /// Reads the clock of the store's server. `None`: the store is embedded, and has no clock but that of its only
    /// node. This is a measurement; all other methods take the time as an argument.
    async fn read_store_server_clock(&self) -> StoreResult<Option<Timestamp>>;

    /// Removes a node that shuts down properly.
    async fn remove_node(&self, node: NodeId, now: Timestamp) -> StoreResult<()>;

    /// Sets a rule. When this returns, no new attempt starts, and `scheduled` tasks are `new` again.
    async fn set_rule(&self, rule: Rule) -> StoreResult<()>;

    /// Lifts a rule; `false` if there was none.
    async fn lift_rule(
        &self,
        kind: RuleKind,
        scope: &RuleScope,
        tenant: Option<&Tenant>,
    ) -> StoreResult<bool>;

    /// Lists all rules that are set.
    async fn list_rules(&self) -> StoreResult<Vec<Rule>>;

    /// Lists the queues that have unfinished tasks, of one handler or of all. Read from counters, not by counting.
    async fn list_queues(&self, handler: Option<&HandlerName>) -> StoreResult<Vec<QueueView>>;

    /// Appends an entry to the audit log.
    async fn append_audit_entry(&self, entry: AuditEntry) -> StoreResult<()>;

    /// Lists audit entries with their numbers, newest first, below the number `before` if given.
    async fn list_audit_entries(
        &self,
        before: Option<i64>,
        limit: usize,
    ) -> StoreResult<Vec<(i64, AuditEntry)>>;
}
