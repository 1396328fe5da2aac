//! Chains and orders.

use pointsman_core::Tenant;
use pointsman_core::chain::{Chain, ChainPath, ChainState, NodeId, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Known, Numbered};

use super::PgTables;
use crate::link::{Piece, params};
use crate::rows::{get, order_of, time};
use crate::session::query;

impl PgTables {
    pub(super) fn all_chains(&self) -> Result<Vec<Known>> {
        self.ask_all(query!("write/chains"), vec![], |row| {
            Ok(Known {
                chain: serde_json::from_str(get(row, 0)?).map_err(Fault::damaged)?,
                defined: get(row, 1)?,
                state: serde_json::from_str(get(row, 2)?).map_err(Fault::damaged)?,
            })
        })
    }

    pub(super) fn define_chains(&self, chains: &[Chain]) -> Result<()> {
        self.registry_changes();
        self.hold(Piece::Statement(query!("write/undefine_chains"), vec![]));
        let fresh = serde_json::to_string(&ChainState::default()).map_err(Fault::damaged)?;
        for chain in chains {
            let def = serde_json::to_string(chain).map_err(Fault::damaged)?;
            let asked = params![chain.path.to_string(), def, fresh.clone()];
            self.hold(Piece::Statement(query!("write/put_chain", TEXT, TEXT, TEXT), asked));
        }
        Ok(())
    }

    pub(super) fn set_chain(&self, path: &ChainPath, state: &ChainState) -> Result<()> {
        self.registry_changes();
        let json = serde_json::to_string(state).map_err(Fault::damaged)?;
        let asked = params![path.to_string(), json];
        self.hold(Piece::Statement(query!("write/put_chain_state", TEXT, TEXT), asked));
        Ok(())
    }

    pub(super) fn find_pending(&self) -> Result<Option<(ChainPath, i64)>> {
        let pending = self.ask_one(query!("write/pending"), vec![], |row| {
            Ok((ChainPath::new(get::<&str>(row, 0)?).map_err(Fault::damaged)?, get(row, 1)?))
        })?;
        Ok(pending)
    }

    pub(super) fn keep_pending(&self, path: &ChainPath, after: Option<i64>) {
        let asked = params![path.to_string(), after];
        self.hold(Piece::Statement(query!("write/put_pending", TEXT, INT8), asked));
    }

    pub(super) fn find_order(&self, n: i64) -> Result<Option<Numbered>> {
        let held = self.held.borrow().order(n);
        if let Some(held) = held {
            return Ok(held);
        }
        if let Some(seen) = self.seen.borrow_mut().orders.remove(&n) {
            return Ok(Some(seen));
        }
        self.ask_one(query!("write/order", INT8), params![n], |row| order_of(row, 0))
    }

    pub(super) fn fetch_orders(&self, orders: &[i64]) -> Result<()> {
        let asked = params![orders.to_vec()];
        let found =
            self.ask_all(query!("write/foresee_orders", INT8_ARRAY), asked, |row| order_of(row, 0))?;
        self.seen.borrow_mut().orders.extend(found.into_iter().map(|order| (order.n, order)));
        Ok(())
    }

    pub(super) fn find_order_named(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<Numbered>> {
        let asked = params![key.to_string(), tenant.to_string()];
        self.ask_one(query!("write/order_named", TEXT, TEXT), asked, |row| order_of(row, 0))
    }

    pub(super) fn orders_behind(&self, path: &ChainPath, n: i64, most: usize) -> Result<Vec<i64>> {
        let asked = params![path.to_string(), n, most as i64];
        self.ask_all(query!("write/orders_after", TEXT, INT8, INT8), asked, |row| get(row, 0))
    }

    pub(super) fn add_order(&self, n: i64, order: &Order) {
        self.held.borrow_mut().insert_order(n, order);
    }

    pub(super) fn change_order(&self, order: &Numbered) {
        self.held.borrow_mut().save_order(order.n, &order.order);
        self.seen.borrow_mut().orders.remove(&order.n);
    }

    pub(super) fn remove_order(&self, n: i64) {
        self.held.borrow_mut().delete_order(n);
        self.seen.borrow_mut().orders.remove(&n);
    }

    pub(super) fn find_ended_order(&self, tenant: &Tenant, key: &OrderKey) -> Result<Option<EndedOrder>> {
        let held = self.held.borrow().ended_orders.get(tenant, key);
        if held.is_some() {
            return Ok(held);
        }
        let asked = params![key.to_string(), tenant.to_string()];
        self.ask_one(query!("write/ended_order", TEXT, TEXT), asked, |row| {
            Ok(EndedOrder {
                key: key.clone(),
                tenant: tenant.clone(),
                outcome: get::<&str>(row, 0)?.parse().map_err(Fault::damaged)?,
                node: NodeId::new(get::<&str>(row, 1)?).map_err(Fault::damaged)?,
                ended: time(row, 2)?,
            })
        })
    }

    pub(super) fn keep_ended_order(&self, ended: &EndedOrder) {
        self.held.borrow_mut().ended_orders.put(ended);
    }
}
