//! Orders.

use pointsman_core::chain::{ChainPath, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::{Tenant, Timestamp};
use pointsman_store::columns::{Cell, Columns, EndedOrderColumns, OrderColumns};
use pointsman_store::expand_sql;
use pointsman_store::row::OrderRow;
use pointsman_store::tables::OrderTable;
use rusqlite::Row;

use super::SqliteTables;
use super::queries::{query_first, query_up_to, read_columns, write_columns};
use crate::cells::RowReader;
use crate::error::TableResult;

impl OrderTable for SqliteTables {
    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>> {
        let sql = expand_sql!(
            "SELECT o.:order_columns, (SELECT phase = :locked FROM pointsman_task WHERE seq = o.task)
             FROM pointsman_order o WHERE o.n = ?1"
        );
        query_first(&self.conn, sql, [number], order_from_row)
    }

    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        let sql = expand_sql!(
            "SELECT o.:order_columns, (SELECT phase = :locked FROM pointsman_task WHERE seq = o.task)
             FROM pointsman_order o WHERE o.key = ?1 AND o.tenant = ?2"
        );
        query_first(&self.conn, sql, (key.to_string(), tenant.as_str()), order_from_row)
    }

    fn list_order_numbers_after(
        &mut self,
        path: &ChainPath,
        number: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        let sql = "SELECT n FROM pointsman_order WHERE chain = ?1 AND n > ?2 ORDER BY n";
        query_up_to(&self.conn, sql, (path.as_str(), number), limit, |row| Ok(row.get(0)?))
    }

    fn insert_order(&mut self, number: i64, order: &Order) -> TableResult<()> {
        let sql = expand_sql!("INSERT INTO pointsman_order (:order_columns) VALUES (:order_parameters)");
        write_columns(&self.conn, sql, &OrderColumns::from_order(number, order))
    }

    fn update_order(&mut self, order_row: &OrderRow) -> TableResult<()> {
        let OrderRow { number, order } = order_row;
        let sql = "UPDATE pointsman_order
                   SET node = ?2, value = ?3, planned = ?4, started = ?5, suspended = ?6, task = ?7, step_succeeded = ?8,
                       suspended_by_task = ?9, took_on_error = ?10
                   WHERE n = ?1";
        self.conn.prepare_cached(sql)?.execute((
            number,
            order.node.as_str(),
            order.value.as_str(),
            order.planned_at.map(Timestamp::micros),
            order.started_at.map(Timestamp::micros),
            order.suspended,
            order.task_seq.map(|task| task.0),
            order.step_succeeded_at_removed_node,
            order.suspended_by_task_seq.map(|task| task.0),
            order.took_on_error,
        ))?;
        Ok(())
    }

    fn delete_order(&mut self, number: i64) -> TableResult<()> {
        self.conn.prepare_cached("DELETE FROM pointsman_order WHERE n = ?1")?.execute([number])?;
        Ok(())
    }

    fn read_ended_order(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<EndedOrder>> {
        let sql = expand_sql!(
            "SELECT :ended_order_columns FROM pointsman_ended_order WHERE key = ?1 AND tenant = ?2"
        );
        query_first(&self.conn, sql, (key.to_string(), tenant.as_str()), |row| {
            read_columns::<EndedOrderColumns>(row)?.into_ended_order()
        })
    }

    fn write_ended_order(&mut self, order: &EndedOrder) -> TableResult<()> {
        let sql = expand_sql!(
            "INSERT OR REPLACE INTO pointsman_ended_order (:ended_order_columns)
             VALUES (:ended_order_parameters)"
        );
        write_columns(&self.conn, sql, &EndedOrderColumns::from_ended_order(order))
    }
}

/// Decodes an order from its columns, followed by whether its task is running. A subquery reads the latter, because
/// SQLite prepares the statement again for each order if the table of tasks, with its partial indexes, is joined.
fn order_from_row(row: &Row<'_>) -> TableResult<OrderRow> {
    let mut cells = RowReader::new(row);
    let columns = OrderColumns::read_cells(&mut cells)?;
    let step_running = Option::<bool>::read(&mut cells)?;
    columns.into_row(step_running.unwrap_or(false))
}
