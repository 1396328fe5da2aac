//! Adding orders. Whatever could be refused is looked at before anything is written, so that of several orders all
//! are added or none.

use std::collections::HashSet;

use pointsman_core::chain::{NodeId, OrderId, OrderKey};
use pointsman_core::engine_event::EngineEvent;
use pointsman_core::order::{Input, Order};
use pointsman_core::store::{Added, NewOrder, OrderRefused};
use pointsman_core::{Tenant, Timestamp};

use crate::error::{Fault, Result};
use crate::row::Numbered;
use crate::tables::Tables;
use crate::writer::Txn;

/// The keys that the orders of one batch name.
type TakenKeys = HashSet<(Tenant, OrderKey)>;

impl<T: Tables> Txn<'_, T> {
    /// Adds all of them, or none if one of them is refused: the first such, with its index.
    pub(crate) fn add_orders(
        &mut self,
        orders: Vec<NewOrder>,
        now: Timestamp,
    ) -> Result<std::result::Result<Vec<Added>, (usize, OrderRefused)>> {
        let (mut taken, mut nodes) = (TakenKeys::new(), Vec::with_capacity(orders.len()));
        for (index, new) in orders.iter().enumerate() {
            if let Some(id) = new.id.as_ref().filter(|_| new.is_reserved()) {
                return Ok(Err((index, OrderRefused::Reserved(id.clone()))));
            }
            match self.beginning(new)? {
                Ok(node) => nodes.push(node),
                Err(refused) => return Ok(Err((index, refused))),
            }
            if let Some(id) = &new.id
                && !taken.insert((new.tenant.clone(), OrderKey { chain: new.chain.clone(), id: id.clone() }))
            {
                return Ok(Err((index, OrderRefused::Exists(new.chain.clone(), id.clone()))));
            }
        }
        let mut added = Vec::with_capacity(orders.len());
        for (new, node) in orders.into_iter().zip(nodes) {
            added.push(self.insert_order(new, node, &taken, now)?);
        }
        Ok(Ok(added))
    }

    pub(crate) fn add_order(
        &mut self,
        new: NewOrder,
        now: Timestamp,
    ) -> Result<std::result::Result<Added, OrderRefused>> {
        Ok(match self.beginning(&new)? {
            Ok(node) => Ok(self.insert_order(new, node, &TakenKeys::new(), now)?),
            Err(refused) => Err(refused),
        })
    }

    /// The node at which an order would begin, unless it is refused.
    fn beginning(&self, new: &NewOrder) -> Result<std::result::Result<NodeId, OrderRefused>> {
        let Some(chain) = self.state.chains.get(&new.chain).and_then(|known| known.definition()) else {
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
            if self.tables.order_named(&new.tenant, &key)?.is_some() {
                return Ok(Err(OrderRefused::Exists(key.chain, key.id)));
            }
        }
        Ok(Ok(node))
    }

    /// An id that no order of the tenant has, nor any that is `taken`.
    fn fresh(&mut self, new: &NewOrder, taken: &TakenKeys, now: Timestamp) -> Result<OrderKey> {
        let mut name = (new.tenant.clone(), OrderKey { id: self.fresh_id(now)?, chain: new.chain.clone() });
        while taken.contains(&name) || self.tables.order_named(&name.0, &name.1)?.is_some() {
            name.1.id = self.fresh_id(now)?;
        }
        Ok(name.1)
    }

    fn fresh_id(&mut self, now: Timestamp) -> Result<OrderId> {
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
            None => self.fresh(&new, taken, now)?,
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
        };
        let n = self.state.take_order();
        self.tables.insert_order(n, &order)?;
        let added = EngineEvent::OrderAdded { order: key.clone(), node: order.node.clone() };
        let event = self.tell_of(&order.tenant, &added, now)?;
        self.input(Numbered { n, order }, Input::Added, now)?;
        Ok(Added { order: key, tenant, event })
    }
}
