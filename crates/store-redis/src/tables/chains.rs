//! Tables of chains and orders.

use std::ops::Bound;

use pointsman_core::Tenant;
use pointsman_core::chain::{Chain, ChainPath, ChainState, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{ChainRow, OrderRow};

use super::RedisTables;
use crate::codec::{MemberBuilder, MemberOrField, encode_decimal_field};
use crate::keys::{Index, Table, order_field};
use crate::lookup::{StoredChain, parse_number};
use crate::overlay::{CacheFetch, ScanOrder, TransactionOverlay, end_of_prefix};
use crate::rows;

impl RedisTables {
    pub(super) fn list_chains(&self) -> TableResult<Vec<ChainRow>> {
        self.overlay.read_chains()
    }

    /// Stores these chains as defined, and all others as not defined any more; states are kept.
    pub(super) fn set_defined_chains(&self, chains: &[Chain]) -> TableResult<()> {
        let stored_chains = self.overlay.read_chains()?;
        for ChainRow { chain, state, .. } in &stored_chains {
            if !chains.iter().any(|new| new.path == chain.path) {
                self.write_chain(chain.clone(), false, state.clone())?;
            }
        }
        for chain in chains {
            let stored = stored_chains.iter().find(|stored| stored.chain.path == chain.path);
            let state = stored.map_or_else(ChainState::default, |stored| stored.state.clone());
            self.write_chain(chain.clone(), true, state)?;
        }
        Ok(())
    }

    fn write_chain(&self, chain: Chain, is_defined: bool, state: ChainState) -> TableResult<()> {
        let path = chain.path.to_string();
        self.overlay.write_row(
            Table::Chains,
            path,
            rows::encode_json(&StoredChain { chain, is_defined, state })?,
        );
        self.mark_registry_changed();
        Ok(())
    }

    pub(super) fn write_chain_state(&self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        let Some(row) = self.overlay.read_row(Table::Chains, path.as_str())? else { return Ok(()) };
        let StoredChain { chain, is_defined, .. } = rows::decode_json(&row)?;
        self.write_chain(chain, is_defined, state.clone())
    }

    pub(super) fn find_reevaluation_cursor(&self) -> TableResult<Option<(ChainPath, i64)>> {
        let pending = self.overlay.read_table(Table::PendingChainReevaluations)?;
        let Some((path, after)) = pending.into_iter().min() else { return Ok(None) };
        let path = ChainPath::new(rows::decode_text(&path)?).map_err(Fault::damaged)?;
        Ok(Some((path, parse_number(&after)?)))
    }

    pub(super) fn write_reevaluation_cursor(&self, path: &ChainPath, after: Option<i64>) -> TableResult<()> {
        match after {
            Some(after) => self.overlay.write_row(
                Table::PendingChainReevaluations,
                path.as_str(),
                after.to_string().into_bytes(),
            ),
            None => self.overlay.delete_row(Table::PendingChainReevaluations, path.as_str()),
        }
        Ok(())
    }

    pub(super) fn read_order(&self, number: i64) -> TableResult<Option<OrderRow>> {
        self.overlay.read_order(number)
    }

    pub(super) fn read_order_by_key(&self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        self.overlay.read_order_by_key(tenant, key)
    }

    pub(super) fn list_order_numbers_after(
        &self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        let chain = chain_orders_prefix(path);
        let after = MemberBuilder::default().push_bytes(&chain).push_i64(number).finish();
        let end = end_of_prefix(&chain);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let members = self.overlay.read_members(
            &Index::OrdersByChain,
            (Bound::Excluded(&after), upper),
            ScanOrder::Ascending,
            limit,
        )?;
        TransactionOverlay::decode_last_numbers(&members)
    }

    pub(super) fn add_order_row(&self, number: i64, order: &Order) -> TableResult<()> {
        let field = order_field(&order.tenant, &order.key);
        self.overlay.write_row(Table::Orders, number.to_string(), rows::encode_order(order));
        self.overlay.write_row(Table::OrderNumbers, field.clone(), number.to_string().into_bytes());
        self.overlay.add_member(Index::OrdersByChain, chain_order_member(&order.key, number));
        self.overlay.add_member(Index::ActiveOrderKeys, field);
        Ok(())
    }

    pub(super) fn update_order_row(&self, order: &OrderRow) -> TableResult<()> {
        self.overlay.write_row(Table::Orders, order.number.to_string(), rows::encode_order(&order.order));
        Ok(())
    }

    pub(super) fn delete_order_row(&self, number: i64) -> TableResult<()> {
        let Some(OrderRow { order, .. }) = self.overlay.read_order(number)? else { return Ok(()) };
        let field = order_field(&order.tenant, &order.key);
        self.overlay.delete_row(Table::Orders, number.to_string());
        self.overlay.delete_row(Table::OrderNumbers, field.clone());
        self.overlay.remove_member(Index::OrdersByChain, chain_order_member(&order.key, number));
        self.overlay.remove_member(Index::ActiveOrderKeys, field);
        Ok(())
    }

    pub(super) fn read_ended_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> TableResult<Option<EndedOrder>> {
        let row = self.overlay.read_row(Table::EndedOrders, order_field(tenant, key))?;
        row.map(|row| rows::decode_ended_order(&row)).transpose()
    }

    pub(super) fn write_ended_order(&self, order: &EndedOrder) -> TableResult<()> {
        if let Some(earlier) = self.read_ended_order(&order.tenant, &order.key)? {
            self.overlay.remove_member(Index::EndedOrdersByAge, ended_order_age_member(&earlier));
        }
        self.overlay.add_member(Index::EndedOrdersByAge, ended_order_age_member(order));
        let field = order_field(&order.tenant, &order.key);
        self.overlay.write_row(Table::EndedOrders, field, rows::encode_ended_order(order));
        Ok(())
    }

    pub(super) fn prefetch_orders(&self, orders: &[i64]) -> TableResult<()> {
        let fetch = |number: &i64| CacheFetch::Row(Table::Orders, encode_decimal_field(*number));
        self.overlay.fetch_into_cache(orders.iter().map(fetch).collect())
    }
}

/// Returns the prefix of the index members of a chain's orders. A path contains no zero byte, so that no prefix extends
/// another.
pub(crate) fn chain_orders_prefix(path: &ChainPath) -> Vec<u8> {
    [path.as_str().as_bytes(), b"\0"].concat()
}

fn chain_order_member(key: &OrderKey, number: i64) -> MemberOrField {
    MemberBuilder::default().push_bytes(&chain_orders_prefix(&key.chain)).push_i64(number).finish()
}

fn ended_order_age_member(order: &EndedOrder) -> MemberOrField {
    MemberBuilder::from_i64(order.ended_at.micros())
        .push_bytes(&order_field(&order.tenant, &order.key))
        .finish()
}
