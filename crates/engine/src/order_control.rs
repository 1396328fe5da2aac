//! Operations on orders, chains and chain nodes.

use pointsman_core::chain::{ChainNodeAction, ChainNodeId, ChainPath, OrderKey};
use pointsman_core::journal::{JournalRange, PathFilter};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{
    ChainView, OrderBatch, OrderBatchError, OrderBatchReceipt, OrderCommand, OrderCursor, OrderError,
    OrderPage, OrderView, StoreError,
};
use pointsman_core::{ErrorChain, Tenant};

use crate::Engine;
use crate::start_gate::Pause;

/// The maximum number of orders of one batch that watchers are notified of: the newest ones.
const MAX_NOTIFIED_ORDERS: usize = 1000;

impl Engine {
    /// Adds all of these orders or none of them. A repeat under the same idempotency key adds none and returns the
    /// first result.
    pub async fn add_orders(
        &self,
        batch: impl Into<OrderBatch>,
    ) -> Result<Result<OrderBatchReceipt, OrderBatchError>, StoreError> {
        let receipt = match self.store().add_orders(batch.into(), self.now()).await? {
            Ok(receipt) if !receipt.repeated => receipt,
            repeated_or_refused => return Ok(repeated_or_refused),
        };
        if let Some(newest) = receipt.orders.iter().map(|added| added.event).max() {
            self.node().wake_signals.advance_journal_head(newest);
        }
        for added in receipt.orders.iter().rev().take(MAX_NOTIFIED_ORDERS) {
            self.notify_watchers_of_next_step_or_log(&added.tenant, &added.order).await;
        }
        self.node().wake_signals.notify_work();
        Ok(Ok(receipt))
    }

    /// Finds an order of a tenant.
    pub async fn find_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> Result<Option<(OrderView, JournalRange)>, StoreError> {
        self.store().read_order(tenant, key).await
    }

    /// Lists the orders whose keys match, in ascending order, after the key `after` if it is given; only those of
    /// `tenant` if it is given.
    pub async fn list_orders(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
        after: Option<OrderCursor>,
        limit: usize,
    ) -> Result<OrderPage, StoreError> {
        self.store().list_orders(path, tenant, after, limit).await
    }

    /// Counts the orders whose keys match, by state; only those of `tenant` if it is given.
    pub async fn read_order_statistics(
        &self,
        path: &PathFilter,
        tenant: Option<&Tenant>,
    ) -> Result<(OrderStatistics, JournalRange), StoreError> {
        self.store().read_order_statistics(path, tenant, self.now()).await
    }

    /// Suspends, resumes, changes or removes an order. A running step continues to its end; commands
    /// that are not possible during a step are refused.
    pub async fn apply_order_command(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
        command: OrderCommand,
    ) -> Result<Result<(), OrderError>, StoreError> {
        let result = self.store().apply_order_command(tenant, key, command, self.now()).await?;
        if result.is_ok() {
            self.notify_watchers_of_next_step_or_log(tenant, key).await;
            self.wake_services();
        }
        Ok(result)
    }

    /// Lists all chains that are defined, by path.
    pub async fn list_chains(&self) -> Result<(Vec<ChainView>, JournalRange), StoreError> {
        self.store().list_chains().await
    }

    /// Stops or starts a chain. When this returns, no step of a stopped chain starts: steps that were claimed before
    /// and have not started are released.
    pub async fn set_chain_stopped(
        &self,
        chain: &ChainPath,
        stopped: bool,
    ) -> Result<Result<(), OrderError>, StoreError> {
        let result = self.store().set_chain_stopped(chain, stopped, self.now()).await?;
        if result.is_ok() {
            if stopped {
                self.node().start_gate.apply_pause(Pause::Chain(chain.clone())).await;
            }
            self.wake_services();
        }
        Ok(result)
    }

    /// Sets the action of a chain node. When this returns, no step of a stopped chain node starts.
    pub async fn set_chain_node_action(
        &self,
        chain: &ChainPath,
        node: &ChainNodeId,
        action: ChainNodeAction,
    ) -> Result<Result<(), OrderError>, StoreError> {
        let result = self.store().set_chain_node_action(chain, node, action, self.now()).await?;
        if result.is_ok() {
            if action == ChainNodeAction::Stop {
                self.node().start_gate.apply_pause(Pause::ChainNode(chain.clone(), node.clone())).await;
            }
            self.wake_services();
        }
        Ok(result)
    }

    /// Notifies watchers of the next step of an order.
    async fn notify_watchers_of_next_step_or_log(&self, tenant: &Tenant, key: &OrderKey) {
        if let Err(error) = self.node().notify_watchers_of_next_step(tenant, key).await {
            self.node().count_store_error();
            tracing::warn!(
                error = %ErrorChain(&error), order = %key,
                "watchers were not notified of the next step of an order; the order runs all the same"
            );
        }
    }
}
