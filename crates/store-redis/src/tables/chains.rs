//! Chains and orders.

use std::ops::Bound;

use pointsman_core::Tenant;
use pointsman_core::chain::{Chain, ChainPath, ChainState, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Known, Numbered};

use super::RedisTables;
use crate::codec::{Member, Ordered, digits};
use crate::keys::{Index, Table, order_field};
use crate::lookup::{ChainEntry, number_of};
use crate::rows;
use crate::sight::{Question, Sight, Way, after_prefix};

impl RedisTables {
    pub(super) fn all_chains(&self) -> Result<Vec<Known>> {
        self.sight.chains()
    }

    pub(super) fn define_chains(&self, chains: &[Chain]) -> Result<()> {
        let known = self.sight.chains()?;
        for Known { chain, state, .. } in &known {
            if !chains.iter().any(|new| new.path == chain.path) {
                self.put_chain(chain.clone(), false, state.clone())?;
            }
        }
        for chain in chains {
            let before = known.iter().find(|known| known.chain.path == chain.path);
            let state = before.map_or_else(ChainState::default, |known| known.state.clone());
            self.put_chain(chain.clone(), true, state)?;
        }
        Ok(())
    }

    fn put_chain(&self, chain: Chain, defined: bool, state: ChainState) -> Result<()> {
        let path = chain.path.to_string();
        self.sight.put(Table::Chains, path, rows::json(&ChainEntry { chain, defined, state })?);
        self.registry_changes();
        Ok(())
    }

    pub(super) fn set_chain(&self, path: &ChainPath, state: &ChainState) -> Result<()> {
        let Some(row) = self.sight.row(Table::Chains, path.as_str())? else { return Ok(()) };
        let ChainEntry { chain, defined, .. } = rows::of_json(&row)?;
        self.put_chain(chain, defined, state.clone())
    }

    pub(super) fn find_pending(&self) -> Result<Option<(ChainPath, i64)>> {
        let pending = self.sight.all(Table::Pending)?;
        let Some((path, after)) = pending.into_iter().min() else { return Ok(None) };
        let path = ChainPath::new(rows::of_text(&path)?).map_err(Fault::damaged)?;
        Ok(Some((path, number_of(&after)?)))
    }

    pub(super) fn keep_pending(&self, path: &ChainPath, after: Option<i64>) -> Result<()> {
        match after {
            Some(after) => self.sight.put(Table::Pending, path.as_str(), after.to_string().into_bytes()),
            None => self.sight.delete(Table::Pending, path.as_str()),
        }
        Ok(())
    }

    pub(super) fn find_order(&self, n: i64) -> Result<Option<Numbered>> {
        self.sight.order(n)
    }

    pub(super) fn find_order_named(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> {
        self.sight.order_named(tenant, key)
    }

    pub(super) fn orders_behind(&self, path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>> {
        let chain = chain_prefix(path);
        let after = Ordered::default().and_bytes(&chain).and(n).done();
        let end = after_prefix(&chain);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let members =
            self.sight.members(&Index::OrdersOf, (Bound::Excluded(&after), upper), Way::Up, most)?;
        Sight::last_numbers(&members)
    }

    pub(super) fn add_order(&self, n: i64, order: &Order) -> Result<()> {
        let field = order_field(&order.tenant, &order.key);
        self.sight.put(Table::Orders, n.to_string(), rows::pack_order(order));
        self.sight.put(Table::OrderNames, field.clone(), n.to_string().into_bytes());
        self.sight.add(Index::OrdersOf, order_member(&order.key, n));
        self.sight.add(Index::OrderKeys, field);
        Ok(())
    }

    pub(super) fn change_order(&self, changed: &Numbered) -> Result<()> {
        self.sight.put(Table::Orders, changed.n.to_string(), rows::pack_order(&changed.order));
        Ok(())
    }

    pub(super) fn remove_order(&self, n: i64) -> Result<()> {
        let Some(Numbered { order, .. }) = self.sight.order(n)? else { return Ok(()) };
        let field = order_field(&order.tenant, &order.key);
        self.sight.delete(Table::Orders, n.to_string());
        self.sight.delete(Table::OrderNames, field.clone());
        self.sight.remove(Index::OrdersOf, order_member(&order.key, n));
        self.sight.remove(Index::OrderKeys, field);
        Ok(())
    }

    pub(super) fn find_ended_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> {
        let row = self.sight.row(Table::EndedOrders, order_field(tenant, key))?;
        row.map(|row| rows::unpack_ended_order(&row)).transpose()
    }

    pub(super) fn keep_ended_order(&self, order: &EndedOrder) -> Result<()> {
        if let Some(earlier) = self.find_ended_order(&order.tenant, &order.key)? {
            self.sight.remove(Index::EndedOrdersByAge, ended_order_member(&earlier));
        }
        self.sight.add(Index::EndedOrdersByAge, ended_order_member(order));
        let field = order_field(&order.tenant, &order.key);
        self.sight.put(Table::EndedOrders, field, rows::pack_ended_order(order));
        Ok(())
    }

    pub(super) fn fetch_orders(&self, orders: &[i64]) -> Result<()> {
        let row = |n: &i64| Question::Row(Table::Orders, digits(*n));
        self.sight.look(orders.iter().map(row).collect())
    }
}

/// What the members of a chain's orders begin with. A path holds no zero, so that none is another's beginning.
pub(crate) fn chain_prefix(path: &ChainPath) -> Vec<u8> {
    [path.as_str().as_bytes(), b"\0"].concat()
}

fn order_member(key: &OrderKey, n: i64) -> Member {
    Ordered::default().and_bytes(&chain_prefix(&key.chain)).and(n).done()
}

fn ended_order_member(order: &EndedOrder) -> Member {
    Ordered::of(order.ended.micros()).and_bytes(&order_field(&order.tenant, &order.key)).done()
}
