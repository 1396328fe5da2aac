//! Adds orders. All orders of a batch are checked before the first write, so a batch is added as a whole or not at all.

use std::collections::HashSet;

use pointsman_core::chain::{ChainNodeId, OrderId, OrderKey};
use pointsman_core::engine_event::EngineEvent;
use pointsman_core::order::{Order, OrderInput};
use pointsman_core::store::{
    AddedOrder, NewOrder, OrderBatch, OrderBatchError, OrderBatchReceipt, OrderError,
};
use pointsman_core::{Tenant, Timestamp};

use crate::error::{Fault, TableResult};
use crate::row::OrderRow;
use crate::tables::Tables;
use crate::writer::Txn;

/// Keys that the orders of a batch name explicitly.
type ExplicitOrderKeys = HashSet<(Tenant, OrderKey)>;
/// Keys that a batch names explicitly, and the start node of each of its orders.
type CheckedOrderBatch = (ExplicitOrderKeys, Vec<ChainNodeId>);

impl<T: Tables> Txn<'_, T> {
    /// Adds all orders of a batch, or none if one is refused. A repeat under the same idempotency key adds nothing and
    /// returns the first receipt.
    pub(crate) fn add_orders(
        &mut self,
        batch: OrderBatch,
        now: Timestamp,
    ) -> TableResult<Result<OrderBatchReceipt, OrderBatchError>> {
        match self.read_recorded_answer(batch.idempotency_key.as_ref())? {
            Ok(Some(orders)) => return Ok(Ok(OrderBatchReceipt { orders, repeated: true })),
            Ok(None) => {}
            Err(conflict) => return Ok(Err(conflict.into())),
        }
        let (explicit_keys, start_nodes) = match self.check_order_batch(&batch)? {
            Ok(checked) => checked,
            Err((index, error)) => return Ok(Err(OrderBatchError::OrderRefused(index, error))),
        };
        let mut orders = Vec::with_capacity(batch.orders.len());
        for (new_order, node) in batch.orders.into_iter().zip(start_nodes) {
            orders.push(self.insert_checked_order(new_order, node, &explicit_keys, now)?);
        }
        self.write_idempotency_record(batch.idempotency_key.as_ref(), &orders, now)?;
        Ok(Ok(OrderBatchReceipt { orders, repeated: false }))
    }

    /// Returns the keys that the orders name and the start node of each, or the index of the first refused order with
    /// the reason.
    fn check_order_batch(
        &mut self,
        batch: &OrderBatch,
    ) -> TableResult<Result<CheckedOrderBatch, (usize, OrderError)>> {
        let (mut explicit_keys, mut start_nodes) =
            (ExplicitOrderKeys::new(), Vec::with_capacity(batch.orders.len()));
        for (index, new_order) in batch.orders.iter().enumerate() {
            if let Some(id) = new_order.id.as_ref().filter(|id| id.is_generated()) {
                return Ok(Err((index, OrderError::ReservedId(id.clone()))));
            }
            match self.check_new_order(new_order, batch.reuse_ended_ids)? {
                Ok(node) => start_nodes.push(node),
                Err(error) => return Ok(Err((index, error))),
            }
            if let Some(id) = &new_order.id
                && !explicit_keys.insert((
                    new_order.tenant.clone(),
                    OrderKey { chain: new_order.chain.clone(), id: id.clone() },
                ))
            {
                return Ok(Err((index, OrderError::AlreadyExists(new_order.chain.clone(), id.clone()))));
            }
        }
        Ok(Ok((explicit_keys, start_nodes)))
    }

    /// Adds an order that an event or a schedule creates. It may reuse the id of an ended order: a schedule with a
    /// fixed id uses it at every planned time, and an event's id never belongs to a second event.
    pub(crate) fn add_order_for_event_or_schedule(
        &mut self,
        new_order: NewOrder,
        now: Timestamp,
    ) -> TableResult<Result<AddedOrder, OrderError>> {
        Ok(match self.check_new_order(&new_order, true)? {
            Ok(node) => Ok(self.insert_checked_order(new_order, node, &ExplicitOrderKeys::new(), now)?),
            Err(error) => Err(error),
        })
    }

    /// Returns the start node of an order, or the reason why the order is refused.
    fn check_new_order(
        &mut self,
        new_order: &NewOrder,
        reuse_ended_id: bool,
    ) -> TableResult<Result<ChainNodeId, OrderError>> {
        let Some(chain) = self
            .state
            .chains
            .find_chain(&new_order.chain)
            .and_then(|chain_row| chain_row.current_definition())
        else {
            return Ok(Err(OrderError::NoSuchChain(new_order.chain.clone())));
        };
        let node = match &new_order.start_node {
            Some(node) if chain.find_node(node).is_none() => {
                return Ok(Err(OrderError::NoSuchNode(new_order.chain.clone(), node.clone())));
            }
            Some(node) => Some(node),
            None => chain.nodes.first().map(|node| &node.id),
        };
        let node = node.ok_or_else(|| Fault::damaged("a chain has no nodes"))?.clone();
        if let Some(id) = &new_order.id {
            let key = OrderKey { chain: new_order.chain.clone(), id: id.clone() };
            if self.tables.find_order_by_key(&new_order.tenant, &key)?.is_some() {
                return Ok(Err(OrderError::AlreadyExists(key.chain, key.id)));
            }
            if !reuse_ended_id && let Some(ended) = self.tables.read_ended_order(&new_order.tenant, &key)? {
                return Ok(Err(OrderError::IdOfEndedOrder(Box::new(ended))));
            }
        }
        Ok(Ok(node))
    }

    /// Generates the key of an order. Its id is neither in use by the tenant nor among `explicit_keys`.
    fn generate_order_key(
        &mut self,
        new_order: &NewOrder,
        explicit_keys: &ExplicitOrderKeys,
        now: Timestamp,
    ) -> TableResult<OrderKey> {
        let mut tenant_and_key = (
            new_order.tenant.clone(),
            OrderKey { id: self.generate_order_id(now)?, chain: new_order.chain.clone() },
        );
        while explicit_keys.contains(&tenant_and_key)
            || self.tables.find_order_by_key(&tenant_and_key.0, &tenant_and_key.1)?.is_some()
        {
            tenant_and_key.1.id = self.generate_order_id(now)?;
        }
        Ok(tenant_and_key.1)
    }

    fn generate_order_id(&mut self, now: Timestamp) -> TableResult<OrderId> {
        OrderId::new(self.state.event_id_generator.next(now).to_string()).map_err(Fault::damaged)
    }

    /// Inserts an order that passed all checks.
    fn insert_checked_order(
        &mut self,
        new_order: NewOrder,
        node: ChainNodeId,
        explicit_keys: &ExplicitOrderKeys,
        now: Timestamp,
    ) -> TableResult<AddedOrder> {
        let key = match &new_order.id {
            Some(id) => OrderKey { chain: new_order.chain.clone(), id: id.clone() },
            None => self.generate_order_key(&new_order, explicit_keys, now)?,
        };
        let tenant = new_order.tenant;
        let order = Order {
            key: key.clone(),
            tenant: tenant.clone(),
            node,
            value: new_order.value,
            priority: new_order.priority,
            planned_at: new_order.planned_at,
            created_at: now,
            origin: new_order.origin,
            started_at: None,
            suspended: false,
            task_seq: None,
            step_running: false,
            step_succeeded_at_removed_node: false,
            suspended_by_task_seq: None,
            took_on_error: false,
        };
        let number = self.state.allocate_order_number();
        self.tables.insert_order(number, &order)?;
        let added = EngineEvent::OrderAdded { order: key.clone(), node: order.node.clone() };
        let event = self.publish_tenant_engine_event(&order.tenant, &added, now)?;
        self.apply_order_input(OrderRow { number, order }, OrderInput::Added, now)?;
        Ok(AddedOrder { order: key, tenant, event })
    }
}
