//! Chains, and unfinished and ended orders.

use pointsman_core::Tenant;
use pointsman_core::chain::{Chain, ChainNodeId, ChainPath, ChainState, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{ChainRow, OrderRow};

use super::PgTables;
use crate::rows::{decode_order, read_column, read_time};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl PgTables {
    pub(super) fn list_chains(&self) -> TableResult<Vec<ChainRow>> {
        self.query_all(query!("write/chains"), vec![], |row| {
            Ok(ChainRow {
                chain: serde_json::from_str(read_column(row, 0)?).map_err(Fault::damaged)?,
                is_defined: read_column(row, 1)?,
                state: serde_json::from_str(read_column(row, 2)?).map_err(Fault::damaged)?,
            })
        })
    }

    pub(super) fn set_defined_chains(&self, chains: &[Chain]) -> TableResult<()> {
        self.mark_registry_changed();
        self.add_to_batch(SqlCommand::Query(query!("write/undefine_chains"), vec![]));
        let initial_state = serde_json::to_string(&ChainState::default()).map_err(Fault::damaged)?;
        for chain in chains {
            let def = serde_json::to_string(chain).map_err(Fault::damaged)?;
            let params = params![chain.path.to_string(), def, initial_state.clone()];
            self.add_to_batch(SqlCommand::Query(query!("write/upsert_chain", TEXT, TEXT, TEXT), params));
        }
        Ok(())
    }

    pub(super) fn write_chain_state(&self, path: &ChainPath, state: &ChainState) -> TableResult<()> {
        self.mark_registry_changed();
        let json = serde_json::to_string(state).map_err(Fault::damaged)?;
        let params = params![path.to_string(), json];
        self.add_to_batch(SqlCommand::Query(query!("write/set_chain_state", TEXT, TEXT), params));
        Ok(())
    }

    pub(super) fn find_reevaluation_cursor(&self) -> TableResult<Option<(ChainPath, i64)>> {
        let pending = self.query_optional(query!("write/pending_chain"), vec![], |row| {
            Ok((ChainPath::new(read_column::<&str>(row, 0)?).map_err(Fault::damaged)?, read_column(row, 1)?))
        })?;
        Ok(pending)
    }

    pub(super) fn write_reevaluation_cursor(&self, path: &ChainPath, after: Option<i64>) {
        let params = params![path.to_string(), after];
        self.add_to_batch(SqlCommand::Query(query!("write/set_pending_chain", TEXT, INT8), params));
    }

    pub(super) fn find_order(&self, number: i64) -> TableResult<Option<OrderRow>> {
        let written = self.write_batch.borrow().find_order(number);
        if let Some(order) = written {
            return Ok(order);
        }
        if let Some(cached) = self.cache.borrow_mut().orders.remove(&number) {
            return Ok(Some(cached));
        }
        self.query_optional(query!("write/order", INT8), params![number], |row| decode_order(row, 0))
    }

    pub(super) fn prefetch_orders(&self, orders: &[i64]) -> TableResult<()> {
        let params = params![orders.to_vec()];
        let found =
            self.query_all(query!("write/prefetch_orders", INT8_ARRAY), params, |row| decode_order(row, 0))?;
        self.cache.borrow_mut().orders.extend(found.into_iter().map(|order| (order.number, order)));
        Ok(())
    }

    pub(super) fn find_order_by_key(&self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        let params = params![key.to_string(), tenant.to_string()];
        self.query_optional(query!("write/order_by_key", TEXT, TEXT), params, |row| decode_order(row, 0))
    }

    pub(super) fn list_order_numbers_after(
        &self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        let params = params![path.to_string(), number, limit as i64];
        self.query_all(query!("write/orders_after", TEXT, INT8, INT8), params, |row| read_column(row, 0))
    }

    pub(super) fn insert_order(&self, number: i64, order: &Order) {
        self.write_batch.borrow_mut().insert_order(number, order);
    }

    pub(super) fn update_order(&self, order: &OrderRow) {
        self.write_batch.borrow_mut().update_order(order.number, &order.order);
        self.cache.borrow_mut().orders.remove(&order.number);
    }

    pub(super) fn delete_order(&self, number: i64) {
        self.write_batch.borrow_mut().delete_order(number);
        self.cache.borrow_mut().orders.remove(&number);
    }

    pub(super) fn find_ended_order(
        &self,
        tenant: &Tenant,
        key: &OrderKey,
    ) -> TableResult<Option<EndedOrder>> {
        let written = self.write_batch.borrow().ended_orders.get(tenant, key);
        if written.is_some() {
            return Ok(written);
        }
        let params = params![key.to_string(), tenant.to_string()];
        self.query_optional(query!("write/ended_order", TEXT, TEXT), params, |row| {
            Ok(EndedOrder {
                key: key.clone(),
                tenant: tenant.clone(),
                outcome: read_column::<&str>(row, 0)?.parse().map_err(Fault::damaged)?,
                node: ChainNodeId::new(read_column::<&str>(row, 1)?).map_err(Fault::damaged)?,
                ended_at: read_time(row, 2)?,
            })
        })
    }

    pub(super) fn write_ended_order(&self, ended: &EndedOrder) {
        self.write_batch.borrow_mut().ended_orders.insert(ended);
    }
}
