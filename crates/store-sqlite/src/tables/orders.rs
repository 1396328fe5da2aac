//! Orders.

use pointsman_core::chain::{ChainNodeId, ChainPath, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::{Tenant, Timestamp};
use pointsman_store::row::OrderRow;
use pointsman_store::tables::OrderTable;

use super::SqliteTables;
use super::row::{order_columns, order_from_row, query_first, query_up_to, read_text, read_time};
use crate::error::{Fault, TableResult};

impl OrderTable for SqliteTables {
    fn read_order(&mut self, number: i64) -> TableResult<Option<OrderRow>> {
        let sql = concat!("SELECT ", order_columns!(), " FROM pointsman_order o WHERE o.n = ?1");
        query_first(&self.conn, sql, [number], order_from_row)
    }

    fn find_order_by_key(&mut self, tenant: &Tenant, key: &OrderKey) -> TableResult<Option<OrderRow>> {
        let sql = concat!(
            "SELECT ",
            order_columns!(),
            " FROM pointsman_order o WHERE o.key = ?1 AND o.tenant = ?2"
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
        let sql = "INSERT INTO pointsman_order
                     (n, key, chain, node, tenant, value, priority, planned, created, suspended, origin, depth)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        self.conn.prepare_cached(sql)?.execute((
            number,
            order.key.to_string(),
            order.key.chain.as_str(),
            order.node.as_str(),
            order.tenant.as_str(),
            order.value.as_str(),
            i64::from(order.priority),
            order.planned_at.map(Timestamp::micros),
            order.created_at.micros(),
            order.suspended,
            order.origin.map(|origin| origin.event_id.as_i64()),
            order.origin.map_or(0, |origin| origin.cause_depth),
        ))?;
        Ok(())
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
        let sql = "SELECT outcome, node, ended FROM pointsman_ended_order WHERE key = ?1 AND tenant = ?2";
        query_first(&self.conn, sql, (key.to_string(), tenant.as_str()), |row| {
            Ok(EndedOrder {
                key: key.clone(),
                tenant: tenant.clone(),
                outcome: read_text(row, 0)?.parse().map_err(Fault::damaged)?,
                node: ChainNodeId::new(read_text(row, 1)?).map_err(Fault::damaged)?,
                ended_at: read_time(row, 2)?,
            })
        })
    }

    fn write_ended_order(&mut self, order: &EndedOrder) -> TableResult<()> {
        let sql = "INSERT OR REPLACE INTO pointsman_ended_order (key, tenant, outcome, node, ended)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let EndedOrder { key, tenant, outcome, node, ended_at } = order;
        let row = (key.to_string(), tenant.as_str(), outcome.as_str(), node.as_str(), ended_at.micros());
        self.conn.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}
