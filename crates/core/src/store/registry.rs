//! Handlers, routes, rules and nodes.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;
use crate::chain::Chain;
use crate::route::ChainRoutes;
use crate::task::QueueOf;
use crate::{HandlerDef, HandlerName, Place, Routes, Rule, RuleKind, Tenant, Timestamp, Weight};

/// A running process, numbered anew at every start.
pub type NodeId = i64;

/// All handlers and routes that somebody brings along.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    /// Whose it is: nodes that are set up alike share a name. What there is, is what all names have registered
    /// together.
    pub by: String,
    pub handlers: Vec<HandlerDef>,
    pub routes: Routes,
    /// The shares of tenants in the round robin; 1 for those not named.
    pub tenants: BTreeMap<Tenant, Weight>,
    pub chains: Vec<Chain>,
    pub chain_routes: ChainRoutes,
    /// What is configured in files, by its key in the stream (`Job:/index`, `JobChain:/a/b`, `Schedule:/nightly`), and
    /// a digest of it. What changed since the last registration is told in the journal.
    pub files: BTreeMap<String, String>,
}

impl Registration {
    /// Adds what somebody else has registered. What both define is from now on as the other one has it.
    pub fn add(&mut self, other: Self) {
        let Self { by: _, handlers, routes, tenants, chains, chain_routes, files } = other;
        self.handlers.retain(|mine| handlers.iter().all(|def| def.name != mine.name));
        self.handlers.extend(handlers);
        self.routes.add(routes);
        self.tenants.extend(tenants);
        self.chains.retain(|mine| chains.iter().all(|chain| chain.path != mine.path));
        self.chains.extend(chains);
        self.chain_routes.add(chain_routes);
        self.files.extend(files);
    }
}

/// What a node tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abilities {
    /// The name by which it has registered what it brings along; none if it has not.
    #[serde(default)]
    pub registrant: Option<String>,
    /// What it can run.
    pub handlers: BTreeSet<HandlerName>,
    /// How many tasks at a time.
    pub slots: usize,
    /// Its clock, as it last reported it.
    #[serde(default)]
    pub clock: ClockReport,
}

/// A node's clock, compared with the time that the store goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReport {
    /// By how many milliseconds the node's clock is ahead of the store's time; negative if it is behind.
    pub offset_ms: i64,
    /// The node has taken itself out of service because of its clock.
    pub out_of_service: bool,
    /// The last step of the node's clock since the node started.
    pub last_step: Option<ClockStep>,
    /// What the node's time was, measured from the boot of its machine. Until the machine boots again, a node that
    /// starts there can tell from it how much time has passed.
    #[serde(default)]
    pub boot: Option<BootMark>,
}

/// A time of a node, and how long its machine had been running then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootMark {
    /// Differs for each boot of each machine.
    pub boot: u64,
    pub uptime_ms: u64,
    pub at: Timestamp,
    /// `at` is not confirmed: the machine booted with a clock far ahead of the last write to the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<UnconfirmedTime>,
}

/// Why the time of a node is not confirmed, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnconfirmedTime {
    /// How long the machine has been running when the time counts as confirmed.
    pub until_uptime_ms: u64,
    /// The last confirmed time at which the store was written.
    pub last_seen: Timestamp,
}

/// A clock was set, rather than having drifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockStep {
    /// When it was noticed, in the store's time.
    pub at: Timestamp,
    /// By how many milliseconds the clock was set forward; negative if it was set back.
    pub by_ms: i64,
}

/// A node, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    pub id: NodeId,
    pub name: String,
    pub joined: Timestamp,
    pub heard: Timestamp,
    /// It has left, or was given up.
    pub gone: bool,
    pub abilities: Abilities,
    /// How many tasks it holds now.
    pub running: u64,
}

/// Somebody changed something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    pub at: Timestamp,
    /// Whose token it was.
    pub by: String,
    /// What was done, in a word: `pause`, `retry`, `run`, …
    pub action: String,
    /// What it was done to.
    pub what: String,
    /// Why, or how much.
    pub detail: String,
}

/// One queue of a handler.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueView {
    pub handler: HandlerName,
    pub of: QueueOf,
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
    /// When the task was made that is next in line, if one could run.
    pub head_since: Option<Timestamp>,
}

#[async_trait]
pub trait Registry: Send + Sync {
    /// Makes these the handlers and routes that their registrant has, for everything journaled from now on. What it has
    /// registered before and does not name any more is no longer defined, unless another registrant has it.
    async fn register(&self, registration: Registration, now: Timestamp) -> Result<()>;

    /// What all registrants have, as one. Where two define the same thing, it is as the one has it who changed what it
    /// has registered last.
    async fn registration(&self) -> Result<Registration>;

    /// Those who have registered something. One without a live node for a day is forgotten when the dead are looked for
    /// ([`Queue::rescue`](super::Queue::rescue)); a time in which nobody looked does not count.
    async fn registrants(&self) -> Result<Vec<String>>;

    /// Announces a node and gives it its identity.
    async fn join(&self, name: &str, now: Timestamp) -> Result<NodeId>;

    /// Tells what a node can run.
    async fn announce(&self, node: NodeId, abilities: Abilities) -> Result<()>;

    /// The nodes that live, and those that were heard of last, newest first.
    async fn nodes(&self) -> Result<Vec<NodeView>>;

    /// Tells that a node lives, and what its clock says. `false`: it was given up, and what it held is
    /// others' now.
    async fn heartbeat(&self, node: NodeId, now: Timestamp) -> Result<bool>;

    /// Reads the clock of the server that holds the store. `None`: the store is embedded, and has no clock but that of
    /// its only node. This is a measurement and not a verb: verbs take the time as an argument.
    async fn read_clock(&self) -> Result<Option<Timestamp>>;

    /// A node goes in good order.
    async fn leave(&self, node: NodeId, now: Timestamp) -> Result<()>;

    /// Sets a rule. When this answers, no new attempt starts, and what was `scheduled` is `new` again.
    async fn hold(&self, rule: Rule) -> Result<()>;

    /// Lifts a rule; `false` if there was none.
    async fn release(&self, kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> Result<bool>;

    async fn rules(&self) -> Result<Vec<Rule>>;

    /// The queues that have live tasks: a handler's, or all. Read from counters, not by counting.
    async fn queues(&self, handler: Option<&HandlerName>) -> Result<Vec<QueueView>>;

    /// Writes down what somebody did.
    async fn note(&self, deed: Deed) -> Result<()>;

    /// What was done, newest first, before the deed of this number; each with its number.
    async fn deeds(&self, before: Option<i64>, limit: usize) -> Result<Vec<(i64, Deed)>>;
}
