//! Chains and the orders that travel them.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Idempotency, Refused, Result};
use crate::chain::{Action, Chain, ChainPath, ChainState, GENERATED_DIGITS, NodeId, OrderId, OrderKey};
use crate::journal::{Extent, PathFilter};
use crate::names::BadName;
use crate::order::{EndedOrder, Order, OrderStatistics, Origin};
use crate::{EventId, Json, Priority, Status, TaskId, Tenant, Timestamp};

/// An order to be added.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOrder {
    pub chain: ChainPath,
    /// A fresh number if not given.
    pub id: Option<OrderId>,
    /// The chain's first node if not given.
    pub node: Option<NodeId>,
    pub value: Json,
    /// When it begins; at once if not given.
    pub at: Option<Timestamp>,
    pub priority: Priority,
    pub tenant: Tenant,
    /// The event that it is made for.
    pub origin: Option<Origin>,
}

impl NewOrder {
    /// One with nothing else to it.
    pub fn of(chain: ChainPath) -> Self {
        Self {
            chain,
            id: None,
            node: None,
            value: Json::null(),
            at: None,
            priority: Priority::default(),
            tenant: Tenant::default(),
            origin: None,
        }
    }
}

/// Why something was not done to an order or a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderRefused {
    #[error("there is no chain {0}")]
    NoSuchChain(ChainPath),
    #[error("the chain {0} has no node {1}")]
    NoSuchNode(ChainPath, NodeId),
    #[error("the chain {0} has an order {1} already")]
    Exists(ChainPath, OrderId),
    #[error(
        "the order {} has ended: {} at the node {}, {}; its id cannot be reused for a day",
        .0.key, .0.outcome, .0.node, .0.ended
    )]
    Ended(Box<EndedOrder>),
    #[error(
        "numbers of {GENERATED_DIGITS} digits and more are given to orders that events make: take another id than {0}"
    )]
    Reserved(OrderId),
    #[error("there is no order {0}")]
    NoSuchOrder(OrderKey),
    #[error("a step of the order {0} is running; suspend it and wait for the step to end")]
    Running(OrderKey),
}

/// Orders to be added in one transaction, all or none.
#[derive(Clone, Debug, Default)]
pub struct OrderBatch {
    pub orders: Vec<NewOrder>,
    /// The id of an order that has ended may be used again, as by a schedule that names a fixed id.
    pub reuse_ended_ids: bool,
    pub idempotency: Option<Idempotency>,
}

impl From<Vec<NewOrder>> for OrderBatch {
    fn from(orders: Vec<NewOrder>) -> Self {
        Self { orders, ..Self::default() }
    }
}

/// The answer to a batch of orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderReceipt {
    pub orders: Vec<Added>,
    /// The idempotency key was used before: this is the answer it got then.
    pub repeated: bool,
}

/// Why none of a batch of orders was added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrdersRefused {
    /// The order at this index is the first that is refused.
    #[error("{1}")]
    Order(usize, OrderRefused),
    #[error(transparent)]
    Idempotency(#[from] Refused),
}

/// An order that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    pub order: OrderKey,
    pub tenant: Tenant,
    /// The event that tells of it.
    pub event: EventId,
}

/// An order as its readers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderView {
    pub order: Order,
    /// The task of its step, where it stands, and when it falls due.
    pub task: Option<(TaskId, Status, Option<Timestamp>)>,
    /// Its step failed and is tried again then.
    pub setback: Option<Timestamp>,
    /// Its chain has no such node: it waits until the chain has it again, or somebody moves it.
    pub stranded: bool,
    /// What holds its waiting task back, in words: its chain or its node is stopped, or a rule.
    pub held: Option<String>,
    /// The task that suspended it by its end, and what went wrong.
    pub failed: Option<(TaskId, String)>,
}

/// Orders by key, then by tenant, ascending.
#[derive(Clone, Debug)]
pub struct OrderPage {
    pub orders: Vec<OrderView>,
    /// Where the next page starts, if there is more.
    pub next: Option<OrderCursor>,
    pub extent: Extent,
}

/// The last order of a page: the next page starts after it. Written as `/chain/path,id@tenant`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderCursor {
    pub key: OrderKey,
    pub tenant: Tenant,
}

impl fmt::Display for OrderCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.tenant)
    }
}

impl FromStr for OrderCursor {
    type Err = BadName;
    fn from_str(text: &str) -> std::result::Result<Self, BadName> {
        let Some((key, tenant)) = text.split_once('@') else {
            return Err(BadName::because(format!("{text:?} is not a cursor; write `/chain/path,id@tenant`")));
        };
        Ok(Self { key: key.parse()?, tenant: tenant.parse()? })
    }
}

/// A chain as its readers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainView {
    pub chain: Chain,
    pub state: ChainState,
    /// How many orders stand at each node; nodes that are gone are named as well.
    pub orders: Vec<(NodeId, u64)>,
}

/// What a person does to an order.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderCommand {
    Suspend,
    Resume,
    Remove,
    /// Gives it another value, puts it at another node, or plans it for another time. Not while a step runs.
    Change {
        value: Option<Json>,
        node: Option<NodeId>,
        at: Option<Timestamp>,
    },
}

#[async_trait]
pub trait Orders: Send + Sync {
    /// Adds all of these orders, in one transaction, or none of them. One whose id another of them has before it is
    /// refused like one that is on its way. The id of an order that has ended is refused for at least a day, unless the
    /// batch may use it again. A repeat under the same idempotency key adds nothing and gets the first answer.
    async fn add_orders(
        &self,
        batch: OrderBatch,
        now: Timestamp,
    ) -> Result<std::result::Result<OrderReceipt, OrdersRefused>>;

    /// A tenant's order. Orders of several tenants may have the same key.
    async fn order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<(OrderView, Extent)>>;

    /// Orders whose keys match, after `after` if given; only this tenant's if given.
    async fn orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> Result<OrderPage>;

    /// All orders whose keys match, however many, as of one moment. Their values are left out.
    async fn all_orders(&self, path: &PathFilter, tenant: Option<&Tenant>) -> Result<OrderPage>;

    /// How many of the orders whose keys match stand where; only this tenant's if given.
    async fn order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> Result<(OrderStatistics, Extent)>;

    async fn steer_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
        command: OrderCommand,
        now: Timestamp,
    ) -> Result<std::result::Result<(), OrderRefused>>;

    /// All chains that are defined, by path; and, without nodes, those that are not but have orders.
    async fn chains(&self) -> Result<(Vec<ChainView>, Extent)>;

    /// Stops or starts a chain. When this answers, no step of a stopped one begins.
    async fn stop_chain(
        &self,
        chain: &ChainPath,
        stopped: bool,
        now: Timestamp,
    ) -> Result<std::result::Result<(), OrderRefused>>;

    /// Sets what a node does.
    async fn set_node(
        &self,
        chain: &ChainPath,
        node: &NodeId,
        action: Action,
        now: Timestamp,
    ) -> Result<std::result::Result<(), OrderRefused>>;
}
