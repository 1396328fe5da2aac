//! Operations of the bus on orders and chains.

use pointsman_core::Tenant;
use pointsman_core::chain::{ChainNodeAction, ChainNodeId, ChainPath, OrderKey};
use pointsman_core::journal::PathFilter;
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{
    AddedOrder, ChainView, IdempotencyError, NewOrder, OrderBatch, OrderBatchError, OrderBatchReceipt,
    OrderCommand, OrderCursor, OrderError, OrderPage, OrderView, StoreError,
};

use crate::Bus;

/// Why an operation on orders or chains failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderOperationError {
    /// The operation is not possible, and nothing was changed.
    #[error(transparent)]
    Refused(#[from] OrderError),
    /// The idempotency key was used for another request, and nothing was changed.
    #[error(transparent)]
    IdempotencyKeyConflict(#[from] IdempotencyError),
    /// The store failed, and the operation may or may not have taken effect.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Bus {
    /// Adds an order. When this returns, it is durable, and its first step runs as soon as it is due.
    ///
    /// ```
    /// # use pointsman::chain::{Chain, ChainNode, ChainNodeRole};
    /// # use pointsman::{Bus, Json, NewOrder};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), pointsman::BoxError> {
    /// # let end = ChainNode { id: "end".parse()?, role: ChainNodeRole::End };
    /// # let chain = Chain { path: "/publish/article".parse()?, nodes: vec![end] };
    /// # let bus = Bus::builder("sqlite::memory:").chain(chain).start().await?;
    /// let value = Json::from_value(&["Hello"])?;
    /// let order = NewOrder { value, ..NewOrder::new("/publish/article".parse()?) };
    /// let added = bus.add_order(order).await?;
    /// println!("added the order {}", added.order);
    /// # bus.stop().await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn add_order(&self, order: NewOrder) -> Result<AddedOrder, OrderOperationError> {
        let added = self.add_orders(vec![order]).await?.orders.pop();
        Ok(added.ok_or_else(|| StoreError::damaged("the store returned no receipt for an added order"))?)
    }

    /// Adds several orders, all or nothing. An [`OrderBatch`] may have an idempotency key; otherwise give a `Vec`.
    pub async fn add_orders(
        &self,
        orders: impl Into<OrderBatch>,
    ) -> Result<OrderBatchReceipt, OrderOperationError> {
        self.engine.add_orders(orders).await?.map_err(|error| match error {
            OrderBatchError::OrderRefused(_, refused) => refused.into(),
            OrderBatchError::Idempotency(refused) => refused.into(),
        })
    }

    /// Finds an unfinished order; `None` if there is none of this key.
    pub async fn find_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<OrderView>, StoreError> {
        Ok(self.engine.find_order(tenant, key).await?.map(|(order, _)| order))
    }

    /// Lists unfinished orders whose keys match, by key, after `after` if given; only those of `tenant` if given. The
    /// page has the cursor of the next one.
    pub async fn list_orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> Result<OrderPage, StoreError> {
        self.engine.list_orders(path, tenant, after, limit).await
    }

    /// Counts the unfinished orders whose keys match, by state; only those of `tenant` if given.
    pub async fn read_order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
    ) -> Result<OrderStatistics, StoreError> {
        Ok(self.engine.read_order_statistics(path, tenant).await?.0)
    }

    /// Suspends an order: no step starts until it is resumed. A running step continues to its end.
    pub async fn suspend_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<(), OrderOperationError> {
        self.apply_order_command(tenant, key, OrderCommand::Suspend).await
    }

    /// Resumes a suspended order. If a failed step suspended it, that step runs again.
    pub async fn resume_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<(), OrderOperationError> {
        self.apply_order_command(tenant, key, OrderCommand::Resume).await
    }

    /// Removes an order. A running step continues to its end, which has no effect on the order any more.
    pub async fn remove_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<(), OrderOperationError> {
        self.apply_order_command(tenant, key, OrderCommand::Remove).await
    }

    /// Applies a command to an order. [`OrderCommand::Change`] sets its value, moves it to another node or changes its
    /// planned start, and is refused while a step runs.
    pub async fn apply_order_command(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
        command: OrderCommand,
    ) -> Result<(), OrderOperationError> {
        Ok(self.engine.apply_order_command(tenant, key, command).await??)
    }

    /// Lists the chains with their states and the numbers of their orders, by path.
    pub async fn list_chains(&self) -> Result<Vec<ChainView>, StoreError> {
        Ok(self.engine.list_chains().await?.0)
    }

    /// Stops a chain: when this returns, no step of its orders starts until [`start_chain`](Self::start_chain).
    /// Running steps continue to their ends.
    pub async fn stop_chain(&self, chain: &ChainPath) -> Result<(), OrderOperationError> {
        Ok(self.engine.set_chain_stopped(chain, true).await??)
    }

    /// Starts a chain that was stopped.
    pub async fn start_chain(&self, chain: &ChainPath) -> Result<(), OrderOperationError> {
        Ok(self.engine.set_chain_stopped(chain, false).await??)
    }

    /// Sets whether a chain node runs its step, lets orders wait, or lets them skip the step.
    pub async fn set_chain_node_action(
        &self,
        chain: &ChainPath,
        node: &ChainNodeId,
        action: ChainNodeAction,
    ) -> Result<(), OrderOperationError> {
        Ok(self.engine.set_chain_node_action(chain, node, action).await??)
    }
}
