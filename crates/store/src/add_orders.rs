//! Adds orders. All refusals are checked before the first write, so a batch is added as a whole or not at all.

use std::collections::HashSet;

use pointsman_core::chain::{ChainNodeId, OrderId, OrderKey};
use pointsman_core::engine_event::EngineEvent;
use pointsman_core::order::{Order, OrderInput};
use pointsman_core::store::{AddedOrder, NewOrder, OrderBatch, OrderBatchError, OrderError, OrderReceipt};
use pointsman_core::{Tenant, Timestamp};

use crate::error::{Fault, Result};
use crate::row::OrderRow;
use crate::tables::Tables;
use crate::writer::Txn;

/// Keys that the orders of a batch name explicitly.
type ExplicitOrderKeys = HashSet<(Tenant, OrderKey)>;
/// Keys that a batch names explicitly, and the start node of each of its orders.
type OrderBatchCheck = (ExplicitOrderKeys, Vec<ChainNodeId>);

impl<T: Tables> Txn<'_, T> {
    /// Adds all orders of a batch, or none if one is refused. A repeat under the same idempotency key adds nothing and
    /// returns the first receipt.
    pub(crate) fn add_orders(
        &mut self,
        batch: OrderBatch,
        now: Timestamp,
    ) -> Result<std::result::Result<OrderReceipt, OrderBatchError>> {
        match self.read_recorded_answer(batch.idempotency.as_ref())? {
            Ok(Some(orders)) => return Ok(Ok(OrderReceipt { orders, repeated: true })),
            Ok(None) => {}
            Err(conflict) => return Ok(Err(conflict.into())),
        }
        let (taken, nodes) = match self.check_order_batch(&batch)? {
            Ok(checked) => checked,
            Err((index, refused)) => return Ok(Err(OrderBatchError::Order(index, refused))),
        };
        let mut orders = Vec::with_capacity(batch.orders.len());
        for (new, node) in batch.orders.into_iter().zip(nodes) {
            orders.push(self.insert_order(new, node, &taken, now)?);
        }
        self.write_idempotency_record(batch.idempotency.as_ref(), &orders, now)?;
        Ok(Ok(OrderReceipt { orders, repeated: false }))
    }

    /// Returns the keys that the orders name and the start node of each, or the index of the first refused order with
    /// the reason.
    fn check_order_batch(
        &self,
        batch: &OrderBatch,
    ) -> Result<std::result::Result<OrderBatchCheck, (usize, OrderError)>> {
        let (mut taken, mut nodes) = (ExplicitOrderKeys::new(), Vec::with_capacity(batch.orders.len()));
        for (index, new) in batch.orders.iter().enumerate() {
            if let Some(id) = new.id.as_ref().filter(|id| id.is_generated()) {
                return Ok(Err((index, OrderError::ReservedId(id.clone()))));
            }
            match self.check_new_order(new, batch.reuse_ended_ids)? {
                Ok(node) => nodes.push(node),
                Err(refused) => return Ok(Err((index, refused))),
            }
            if let Some(id) = &new.id
                && !taken.insert((new.tenant.clone(), OrderKey { chain: new.chain.clone(), id: id.clone() }))
            {
                return Ok(Err((index, OrderError::AlreadyExists(new.chain.clone(), id.clone()))));
            }
        }
        Ok(Ok((taken, nodes)))
    }

    /// Adds an order that an event or a schedule creates. It may reuse the id of an ended order: a schedule with a
    /// fixed id uses it at every planned time, and an event's id never belongs to a second event.
    pub(crate) fn add_order(
        &mut self,
        new: NewOrder,
        now: Timestamp,
    ) -> Result<std::result::Result<AddedOrder, OrderError>> {
        Ok(match self.check_new_order(&new, true)? {
            Ok(node) => Ok(self.insert_order(new, node, &ExplicitOrderKeys::new(), now)?),
            Err(refused) => Err(refused),
        })
    }

    /// Returns the start node of an order, or the reason why the order is refused.
    fn check_new_order(
        &self,
        new: &NewOrder,
        reuse_ended_id: bool,
    ) -> Result<std::result::Result<ChainNodeId, OrderError>> {
        let Some(chain) =
            self.state.chains.find_chain(&new.chain).and_then(|chain_row| chain_row.definition())
        else {
            return Ok(Err(OrderError::NoSuchChain(new.chain.clone())));
        };
        let node = match &new.node {
            Some(node) if chain.find_node(node).is_none() => {
                return Ok(Err(OrderError::NoSuchNode(new.chain.clone(), node.clone())));
            }
            Some(node) => Some(node),
            None => chain.nodes.first().map(|node| &node.id),
        };
        let node = node.ok_or_else(|| Fault::damaged("a chain has no nodes"))?.clone();
        if let Some(id) = &new.id {
            let key = OrderKey { chain: new.chain.clone(), id: id.clone() };
            if self.tables.find_order_by_key(&new.tenant, &key)?.is_some() {
                return Ok(Err(OrderError::AlreadyExists(key.chain, key.id)));
            }
            if !reuse_ended_id && let Some(ended) = self.tables.read_ended_order(&new.tenant, &key)? {
                return Ok(Err(OrderError::IdOfEndedOrder(Box::new(ended))));
            }
        }
        Ok(Ok(node))
    }

    /// Generates an order id that is neither in use by the tenant nor in `taken`.
    fn generate_order_key(
        &mut self,
        new: &NewOrder,
        taken: &ExplicitOrderKeys,
        now: Timestamp,
    ) -> Result<OrderKey> {
        let mut name =
            (new.tenant.clone(), OrderKey { id: self.generate_order_id(now)?, chain: new.chain.clone() });
        while taken.contains(&name) || self.tables.find_order_by_key(&name.0, &name.1)?.is_some() {
            name.1.id = self.generate_order_id(now)?;
        }
        Ok(name.1)
    }

    fn generate_order_id(&mut self, now: Timestamp) -> Result<OrderId> {
        OrderId::new(self.state.event_id_generator.next(now).to_string()).map_err(Fault::damaged)
    }

    /// Inserts an order that passed all checks.
    fn insert_order(
        &mut self,
        new: NewOrder,
        node: ChainNodeId,
        taken: &ExplicitOrderKeys,
        now: Timestamp,
    ) -> Result<AddedOrder> {
        let key = match &new.id {
            Some(id) => OrderKey { chain: new.chain.clone(), id: id.clone() },
            None => self.generate_order_key(&new, taken, now)?,
        };
        let tenant = new.tenant;
        let order = Order {
            key: key.clone(),
            tenant: tenant.clone(),
            node,
            value: new.value,
            priority: new.priority,
            planned_at: new.planned_at,
            created_at: now,
            origin: new.origin,
            started_at: None,
            suspended: false,
            task: None,
            step_running: false,
            step_succeeded: false,
            suspended_by_task: None,
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
