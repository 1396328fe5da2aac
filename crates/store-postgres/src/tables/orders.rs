//! Unfinished and ended orders.

use pointsman_core::Tenant;
use pointsman_core::chain::{ChainPath, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_store::columns::{Columns, EndedOrderColumns, OrderColumns};
use pointsman_store::error::TableResult;
use pointsman_store::row::OrderRow;
use pointsman_store::tables::OrderTable;
use tokio_postgres::Row;

use super::PgTables;
use crate::rows::{RowReader, read_column, read_columns};
use crate::session::query;
use crate::writer_connection::params;

impl OrderTable for PgTables {
    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>> {
        let written = self.write_batch.find_order(number);
        if let Some(order) = written {
            return Ok(order);
        }
        if let Some(cached) = self.cache.orders.remove(&number) {
            return Ok(Some(cached));
        }
        self.query_and_decode_first(query!("orders/read_order", INT8), params![number], decode_order)
    }

    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        let params = params![key.to_string(), tenant.to_string()];
        self.query_and_decode_first(query!("orders/find_order_by_key", TEXT, TEXT), params, decode_order)
    }

    fn list_order_numbers_after(
        &mut self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        let params = params![path.to_string(), number, limit as i64];
        self.query_and_decode_rows(
            query!("orders/list_order_numbers_after", TEXT, INT8, INT8),
            params,
            |row| read_column(row, 0),
        )
    }

    fn insert_order(&mut self, number: i64, order: &Order) -> TableResult<()> {
        self.write_batch.insert_order(number, order);
        Ok(())
    }

    fn update_order(&mut self, order: &OrderRow) -> TableResult<()> {
        self.write_batch.update_order(order.number, &order.order);
        self.cache.orders.remove(&order.number);
        Ok(())
    }

    fn delete_order(&mut self, number: i64) -> TableResult<()> {
        self.write_batch.delete_order(number);
        self.cache.orders.remove(&number);
        Ok(())
    }

    fn read_ended_order(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>> {
        let written = self.write_batch.find_ended_order(tenant, key).cloned();
        if written.is_some() {
            return Ok(written);
        }
        let params = params![key.to_string(), tenant.to_string()];
        self.query_and_decode_first(query!("ended_order/read_ended_order", TEXT, TEXT), params, |row| {
            read_columns::<EndedOrderColumns<'_>>(row, 0)?.into_ended_order()
        })
    }

    fn write_ended_order(&mut self, ended: &EndedOrder) -> TableResult<()> {
        self.write_batch.insert_ended_order(ended);
        Ok(())
    }
}

impl PgTables {
    pub(super) fn prefetch_orders(&mut self, orders: &[i64]) -> TableResult<()> {
        let params = params![orders.to_vec()];
        let found =
            self.query_and_decode_rows(query!("orders/prefetch_orders", INT8_ARRAY), params, decode_order)?;
        self.cache.orders.extend(found.into_iter().map(|order| (order.number, order)));
        Ok(())
    }
}

/// Decodes an order from its columns, and from whether its task is locked.
fn decode_order(row: &Row) -> TableResult<OrderRow> {
    let mut reader = RowReader::new(row, 0);
    OrderColumns::read_cells(&mut reader)?.into_row(reader.read_next()?)
}
