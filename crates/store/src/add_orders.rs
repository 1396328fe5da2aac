//! Adding orders. Whatever could be refused is looked at before anything is written, so that of several orders all
//! are added or none.

use std::collections::HashSet;

use pointsman_core::chain::{NodeId, OrderId, OrderKey};
use pointsman_core::engine_event::EngineEvent;
use pointsman_core::order::{Input, Order};
use pointsman_core::store::{Added, NewOrder, OrderBatch, OrderReceipt, OrderRefused, OrdersRefused};
use pointsman_core::{Tenant, Timestamp};

use crate::error::{Fault, Result};
use crate::row::OrderRow;
use crate::tables::Tables;
use crate::writer::Txn;

/// The keys that the orders of one batch name.
type TakenKeys = HashSet<(Tenant, OrderKey)>;
/// The keys that a batch names, and the node at which each of its orders begins.
type CheckedOrders = (TakenKeys, Vec<NodeId>);

impl<T: Tables> Txn<'_, T> {
    /// Adds all of them, or none if one of them is refused. A repeat under the same idempotency key adds none.
    pub(crate) fn add_orders(
        &mut self,
        batch: OrderBatch,
        now: Timestamp,
    ) -> Result<std::result::Result<OrderReceipt, OrdersRefused>> {
        match self.read_recorded(batch.idempotency.as_ref())? {
            Ok(Some(orders)) => return Ok(Ok(OrderReceipt { orders, repeated: true })),
            Ok(None) => {}
            Err(conflict) => return Ok(Err(conflict.into())),
        }
        let (taken, nodes) = match self.check_orders(&batch)? {
            Ok(checked) => checked,
            Err((index, refused)) => return Ok(Err(OrdersRefused::Order(index, refused))),
        };
        let mut orders = Vec::with_capacity(batch.orders.len());
        for (new, node) in batch.orders.into_iter().zip(nodes) {
            orders.push(self.insert_order(new, node, &taken, now)?);
        }
        self.write_record(batch.idempotency.as_ref(), &orders, now)?;
        Ok(Ok(OrderReceipt { orders, repeated: false }))
    }

    /// The keys that these orders name and the node at which each begins; or the first that is refused, with its index.
    fn check_orders(
        &self,
        batch: &OrderBatch,
    ) -> Result<std::result::Result<CheckedOrders, (usize, OrderRefused)>> {
        let (mut taken, mut nodes) = (TakenKeys::new(), Vec::with_capacity(batch.orders.len()));
        for (index, new) in batch.orders.iter().enumerate() {
            if let Some(id) = new.id.as_ref().filter(|id| id.is_generated()) {
                return Ok(Err((index, OrderRefused::Reserved(id.clone()))));
            }
            match self.check_start_node(new, batch.reuse_ended_ids)? {
                Ok(node) => nodes.push(node),
                Err(refused) => return Ok(Err((index, refused))),
            }
            if let Some(id) = &new.id
                && !taken.insert((new.tenant.clone(), OrderKey { chain: new.chain.clone(), id: id.clone() }))
            {
                return Ok(Err((index, OrderRefused::Exists(new.chain.clone(), id.clone()))));
            }
        }
        Ok(Ok((taken, nodes)))
    }

    /// Adds an order that an event or a schedule makes. The id of one that has ended may be used again: a schedule with
    /// a fixed id uses it at every planned time, and an event's id is never given to a second event.
    pub(crate) fn add_order(
        &mut self,
        new: NewOrder,
        now: Timestamp,
    ) -> Result<std::result::Result<Added, OrderRefused>> {
        Ok(match self.check_start_node(&new, true)? {
            Ok(node) => Ok(self.insert_order(new, node, &TakenKeys::new(), now)?),
            Err(refused) => Err(refused),
        })
    }

    /// The node at which an order would begin, unless it is refused.
    fn check_start_node(
        &self,
        new: &NewOrder,
        reuse_ended_id: bool,
    ) -> Result<std::result::Result<NodeId, OrderRefused>> {
        let Some(chain) =
            self.state.chains.find_chain(&new.chain).and_then(|chain_row| chain_row.definition())
        else {
            return Ok(Err(OrderRefused::NoSuchChain(new.chain.clone())));
        };
        let node = match &new.node {
            Some(node) if chain.node(node).is_none() => {
                return Ok(Err(OrderRefused::NoSuchNode(new.chain.clone(), node.clone())));
            }
            Some(node) => Some(node),
            None => chain.nodes.first().map(|node| &node.id),
        };
        let node = node.ok_or_else(|| Fault::damaged("a chain without nodes"))?.clone();
        if let Some(id) = &new.id {
            let key = OrderKey { chain: new.chain.clone(), id: id.clone() };
            if self.tables.find_order(&new.tenant, &key)?.is_some() {
                return Ok(Err(OrderRefused::Exists(key.chain, key.id)));
            }
            if !reuse_ended_id && let Some(ended) = self.tables.read_ended_order(&new.tenant, &key)? {
                return Ok(Err(OrderRefused::Ended(Box::new(ended))));
            }
        }
        Ok(Ok(node))
    }

    /// An id that no order of the tenant has, nor any that is `taken`.
    fn allocate_order_key(&mut self, new: &NewOrder, taken: &TakenKeys, now: Timestamp) -> Result<OrderKey> {
        let mut name =
            (new.tenant.clone(), OrderKey { id: self.allocate_order_id(now)?, chain: new.chain.clone() });
        while taken.contains(&name) || self.tables.find_order(&name.0, &name.1)?.is_some() {
            name.1.id = self.allocate_order_id(now)?;
        }
        Ok(name.1)
    }

    fn allocate_order_id(&mut self, now: Timestamp) -> Result<OrderId> {
        OrderId::new(self.state.ids.next(now).to_string()).map_err(Fault::damaged)
    }

    /// Adds an order that nothing speaks against.
    fn insert_order(
        &mut self,
        new: NewOrder,
        node: NodeId,
        taken: &TakenKeys,
        now: Timestamp,
    ) -> Result<Added> {
        let key = match &new.id {
            Some(id) => OrderKey { chain: new.chain.clone(), id: id.clone() },
            None => self.allocate_order_key(&new, taken, now)?,
        };
        let tenant = new.tenant;
        let order = Order {
            key: key.clone(),
            tenant: tenant.clone(),
            node,
            value: new.value,
            priority: new.priority,
            planned: new.at,
            created: now,
            origin: new.origin,
            started: None,
            suspended: false,
            task: None,
            running: false,
            stepped: false,
            halted_by: None,
            took_on_error: false,
        };
        let n = self.state.allocate_order_number();
        self.tables.insert_order(n, &order)?;
        let added = EngineEvent::OrderAdded { order: key.clone(), node: order.node.clone() };
        let event = self.publish_tenant_event(&order.tenant, &added, now)?;
        self.apply_order_input(OrderRow { number: n, order }, Input::Added, now)?;
        Ok(Added { order: key, tenant, event })
    }
}
