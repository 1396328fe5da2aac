//! The tables of orders.

use pointsman_core::Tenant;
use pointsman_core::chain::{ChainPath, OrderKey};
use pointsman_core::order::{EndedOrder, Order};

use crate::error::TableResult;
use crate::row::OrderRow;

/// Unfinished orders, and the outcomes of ended ones.
pub trait OrderTable {
    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>>;

    /// Returns the tenant's order with this key.
    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>>;

    /// Lists the numbers of a chain's orders after this one.
    fn list_order_numbers_after(
        &mut self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>>;

    fn insert_order(&mut self, number: i64, order: &Order) -> TableResult<()>;

    /// Writes the columns of an order that may change: node, value, times, task and whether it is suspended.
    fn update_order(&mut self, order: &OrderRow) -> TableResult<()>;

    fn delete_order(&mut self, number: i64) -> TableResult<()>;

    /// Returns the recorded outcome of the last order with this key.
    fn read_ended_order(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>>;

    /// Records the outcome of an order, replacing that of an earlier order with the same tenant and key.
    fn write_ended_order(&mut self, ended: &EndedOrder) -> TableResult<()>;
}
