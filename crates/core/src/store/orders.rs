//! Chains and the orders that run through them.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{IdempotencyError, IdempotencyKey, StoreResult};
use crate::chain::{
    Chain, ChainNodeAction, ChainNodeId, ChainPath, ChainState, MIN_GENERATED_ID_DIGITS, OrderId, OrderKey,
};
use crate::journal::{JournalRange, PathFilter};
use crate::names::BadName;
use crate::order::{EndedOrder, Order, OrderOrigin, OrderStatistics};
use crate::{EventId, Json, Priority, TaskId, TaskStatus, Tenant, Timestamp};

/// An order to be added.
#[derive(Clone, Debug, PartialEq)]
pub struct NewOrder {
    /// The chain that the order runs through.
    pub chain: ChainPath,
    /// The id of the order; if not given, the store generates a number.
    pub id: Option<OrderId>,
    /// The node at which the order starts; the chain's first node if not given.
    pub start_node: Option<ChainNodeId>,
    /// The value that the first step gets.
    pub value: Json,
    /// When the order starts; at once if not given.
    pub planned_at: Option<Timestamp>,
    /// The priority of the order's tasks.
    pub priority: Priority,
    /// The order's tenant.
    pub tenant: Tenant,
    /// The event for which the order is created.
    pub origin: Option<OrderOrigin>,
}

impl NewOrder {
    /// An order for this chain, with the default for everything else.
    pub fn new(chain: ChainPath) -> Self {
        Self {
            chain,
            id: None,
            start_node: None,
            value: Json::null(),
            planned_at: None,
            priority: Priority::default(),
            tenant: Tenant::default(),
            origin: None,
        }
    }
}

/// Why a request for an order or a chain was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// No chain of this path is defined.
    #[error("there is no chain {0}")]
    NoSuchChain(ChainPath),
    /// The chain has no node of this id.
    #[error("the chain {0} has no node {1}")]
    NoSuchNode(ChainPath, ChainNodeId),
    /// An unfinished order has this id.
    #[error("the chain {0} has an order {1} already")]
    AlreadyExists(ChainPath, OrderId),
    /// An order of this id has ended recently.
    #[error(
        "the order {} has ended: {} at the node {}, {}; its id cannot be reused for a day",
        .0.key, .0.outcome, .0.node, .0.ended_at
    )]
    IdOfEndedOrder(Box<EndedOrder>),
    /// The id looks like a generated one.
    #[error(
        "numbers of {MIN_GENERATED_ID_DIGITS} digits and more are reserved for generated ids; use another id than {0}"
    )]
    ReservedId(OrderId),
    /// No unfinished order has this key.
    #[error("there is no order {0}")]
    NoSuchOrder(OrderKey),
    /// The command is not possible while a step runs.
    #[error("a step of the order {0} is running; suspend it and wait for the step to end")]
    StepRunning(OrderKey),
}

/// Orders to be added in one transaction, all or none.
#[derive(Clone, Debug, Default)]
pub struct OrderBatch {
    /// The orders, in the order in which they are added.
    pub orders: Vec<NewOrder>,
    /// The id of an ended order may be reused, as by a schedule with a fixed order id.
    pub reuse_ended_ids: bool,
    /// The key under which the request may be repeated.
    pub idempotency_key: Option<IdempotencyKey>,
}

impl From<Vec<NewOrder>> for OrderBatch {
    fn from(orders: Vec<NewOrder>) -> Self {
        Self { orders, ..Self::default() }
    }
}

/// The result of an [`OrderBatch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBatchReceipt {
    /// The added orders, in the order of the batch.
    pub orders: Vec<AddedOrder>,
    /// The idempotency key was used before: this is the result of the first request.
    pub repeated: bool,
}

/// Why none of a batch of orders was added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderBatchError {
    /// The index of the first order that was refused, and the reason.
    #[error("{1}")]
    OrderRefused(usize, OrderError),
    /// The idempotency key was used for another request.
    #[error(transparent)]
    Idempotency(#[from] IdempotencyError),
}

/// An order that was added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedOrder {
    /// The order's chain and id.
    pub order: OrderKey,
    /// The order's tenant.
    pub tenant: Tenant,
    /// The engine event that announces the order.
    pub event: EventId,
}

/// An order with the state of its task, for readers.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderView {
    /// The order.
    pub order: Order,
    /// The task of the order's step, the task's status, and when the task is due.
    pub task: Option<(TaskId, TaskStatus, Option<Timestamp>)>,
    /// The order's step failed and is retried at this time.
    pub retry_at: Option<Timestamp>,
    /// The chain no longer has the order's node: the order waits until the node is back, or a person moves the order.
    pub is_at_removed_node: bool,
    /// Why the order's waiting task may not run: its chain or its node is stopped, or a rule pauses it.
    pub step_blocked_because: Option<String>,
    /// The task whose failure suspended the order, and the task's error.
    pub suspended_by_failed_task: Option<(TaskId, String)>,
}

/// A page of orders, sorted by key, then by tenant.
#[derive(Clone, Debug)]
pub struct OrderPage {
    /// The orders.
    pub orders: Vec<OrderView>,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<OrderCursor>,
    /// The ids in the journal when the page was read.
    pub journal_range: JournalRange,
}

/// The last order of a page: the next page starts after it. Written as `/chain/path,id@tenant`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderCursor {
    /// The order's chain and id.
    pub key: OrderKey,
    /// The order's tenant.
    pub tenant: Tenant,
}

impl fmt::Display for OrderCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.tenant)
    }
}

impl FromStr for OrderCursor {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let Some((key, tenant)) = text.split_once('@') else {
            return Err(BadName::with_reason(format!(
                "{text:?} is not a cursor; write `/chain/path,id@tenant`"
            )));
        };
        Ok(Self { key: key.parse()?, tenant: tenant.parse()? })
    }
}

/// A chain with its state and order counts, for readers.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainView {
    /// The chain's definition.
    pub chain: Chain,
    /// The operator's settings.
    pub state: ChainState,
    /// The number of orders at each node, including nodes that the chain no longer has.
    pub order_counts_by_node: Vec<(ChainNodeId, u64)>,
}

/// A change of an order that a person requests.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderCommand {
    /// No step starts until the order is resumed.
    Suspend,
    /// Lifts a suspension.
    Resume,
    /// Removes the order; a running step ends without effect on it.
    Remove,
    /// Sets the order's value, moves it to another node, or changes its planned start. Refused while a step runs.
    Change {
        /// The new value.
        value: Option<Json>,
        /// The node to which the order moves.
        node: Option<ChainNodeId>,
        /// The new planned start.
        planned_at: Option<Timestamp>,
    },
}

/// Stores chains and the orders that run through them.
#[async_trait]
pub trait Orders: Send + Sync {
    /// Adds all of these orders in one transaction, or none of them. An order whose id an earlier one of the batch has
    /// is refused like one that exists already. The id of an ended order is refused for at least a day, unless the
    /// batch may reuse it. A repeat under the same idempotency key adds nothing and gets the first result.
    async fn add_orders(
        &self,
        batch: OrderBatch,
        now: Timestamp,
    ) -> StoreResult<Result<OrderBatchReceipt, OrderBatchError>>;

    /// Reads an order of a tenant. Orders of several tenants may have the same key.
    async fn read_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> StoreResult<Option<(OrderView, JournalRange)>>;

    /// Lists orders whose keys match, after `after` if given; only this tenant's if given.
    async fn list_orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> StoreResult<OrderPage>;

    /// Lists all orders whose keys match, however many, as one snapshot. Their values are left out.
    async fn list_all_orders_without_values(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
    ) -> StoreResult<OrderPage>;

    /// Counts the orders whose keys match, by state; only this tenant's if given.
    async fn read_order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        now: Timestamp,
    ) -> StoreResult<(OrderStatistics, JournalRange)>;

    /// Suspends, resumes, changes or removes an order.
    async fn apply_order_command(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
        command: OrderCommand,
        now: Timestamp,
    ) -> StoreResult<Result<(), OrderError>>;

    /// Lists all defined chains by path; and, without nodes, those that are no longer defined but have orders.
    async fn list_chains(&self) -> StoreResult<(Vec<ChainView>, JournalRange)>;

    /// Stops or starts a chain. When this returns, no step of a stopped chain starts.
    async fn set_chain_stopped(
        &self,
        chain: &ChainPath,
        stopped: bool,
        now: Timestamp,
    ) -> StoreResult<Result<(), OrderError>>;

    /// Sets the action of a chain node. When this returns, no step of a stopped chain node starts.
    async fn set_chain_node_action(
        &self,
        chain: &ChainPath,
        node: &ChainNodeId,
        action: ChainNodeAction,
        now: Timestamp,
    ) -> StoreResult<Result<(), OrderError>>;
}
