//! Chains and orders.

use pointsman_core::chain::{Chain, ChainNodeId, ChainPath, ChainState, OrderKey};
use pointsman_core::order::{EndedOrder, Order};
use pointsman_core::{Tenant, Timestamp};
use pointsman_store::row::{ChainRow, OrderRow};
use rusqlite::Connection;

use super::row::{order_columns, order_from_row, query_all, query_first, query_up_to, read_text, read_time};
use crate::error::{Fault, TableResult};

pub(crate) fn list_chains(conn: &Connection) -> TableResult<Vec<ChainRow>> {
    query_all(conn, "SELECT def, defined, state FROM pointsman_chain ORDER BY path", [], |row| {
        Ok(ChainRow {
            chain: serde_json::from_str(read_text(row, 0)?).map_err(Fault::damaged)?,
            is_defined: row.get(1)?,
            state: serde_json::from_str(read_text(row, 2)?).map_err(Fault::damaged)?,
        })
    })
}

pub(super) fn set_defined_chains(conn: &Connection, chains: &[Chain]) -> TableResult<()> {
    conn.execute("UPDATE pointsman_chain SET defined = 0", [])?;
    let sql = "INSERT INTO pointsman_chain (path, def, defined, state) VALUES (?1, ?2, 1, ?3)
               ON CONFLICT (path) DO UPDATE SET def = ?2, defined = 1";
    let initial_state = serde_json::to_string(&ChainState::default()).map_err(Fault::damaged)?;
    for chain in chains {
        let def = serde_json::to_string(chain).map_err(Fault::damaged)?;
        conn.prepare_cached(sql)?.execute((chain.path.as_str(), def, &initial_state))?;
    }
    Ok(())
}

pub(super) fn write_chain_state(conn: &Connection, path: &ChainPath, state: &ChainState) -> TableResult<()> {
    let json = serde_json::to_string(state).map_err(Fault::damaged)?;
    let sql = "UPDATE pointsman_chain SET state = ?2 WHERE path = ?1";
    conn.prepare_cached(sql)?.execute((path.as_str(), json))?;
    Ok(())
}

pub(super) fn find_reevaluation_cursor(conn: &Connection) -> TableResult<Option<(ChainPath, i64)>> {
    let sql = "SELECT path, reconciled_up_to FROM pointsman_chain WHERE reconciled_up_to IS NOT NULL LIMIT 1";
    query_first(conn, sql, [], |row| {
        Ok((ChainPath::new(read_text(row, 0)?).map_err(Fault::damaged)?, row.get(1)?))
    })
}

pub(super) fn write_reevaluation_cursor(
    conn: &Connection,
    path: &ChainPath,
    after: Option<i64>,
) -> TableResult<()> {
    let sql = "UPDATE pointsman_chain SET reconciled_up_to = ?2 WHERE path = ?1";
    conn.prepare_cached(sql)?.execute((path.as_str(), after))?;
    Ok(())
}

pub(super) fn read_order(conn: &Connection, number: i64) -> TableResult<Option<OrderRow>> {
    let sql = concat!("SELECT ", order_columns!(), " FROM pointsman_order o WHERE o.n = ?1");
    query_first(conn, sql, [number], order_from_row)
}

pub(super) fn find_order_by_key(
    conn: &Connection,
    tenant: &Tenant,
    key: &OrderKey,
) -> TableResult<Option<OrderRow>> {
    let sql =
        concat!("SELECT ", order_columns!(), " FROM pointsman_order o WHERE o.key = ?1 AND o.tenant = ?2");
    query_first(conn, sql, (key.to_string(), tenant.as_str()), order_from_row)
}

pub(super) fn list_order_numbers_after(
    conn: &Connection,
    path: &ChainPath,
    number: i64,
    limit: usize,
) -> TableResult<Vec<i64>> {
    let sql = "SELECT n FROM pointsman_order WHERE chain = ?1 AND n > ?2 ORDER BY n";
    query_up_to(conn, sql, (path.as_str(), number), limit, |row| Ok(row.get(0)?))
}

pub(super) fn insert_order(conn: &Connection, number: i64, order: &Order) -> TableResult<()> {
    let sql = "INSERT INTO pointsman_order
                 (n, key, chain, node, tenant, value, priority, planned, created, suspended, origin, depth)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
    conn.prepare_cached(sql)?.execute((
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

pub(super) fn update_order(conn: &Connection, order_row: &OrderRow) -> TableResult<()> {
    let OrderRow { number, order } = order_row;
    let sql = "UPDATE pointsman_order
               SET node = ?2, value = ?3, planned = ?4, started = ?5, suspended = ?6, task = ?7, step_succeeded = ?8,
                   suspended_by_task = ?9, took_on_error = ?10
               WHERE n = ?1";
    conn.prepare_cached(sql)?.execute((
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

pub(super) fn delete_order(conn: &Connection, number: i64) -> TableResult<()> {
    conn.prepare_cached("DELETE FROM pointsman_order WHERE n = ?1")?.execute([number])?;
    Ok(())
}

pub(super) fn read_ended_order(
    conn: &Connection,
    tenant: &Tenant,
    key: &OrderKey,
) -> TableResult<Option<EndedOrder>> {
    let sql = "SELECT outcome, node, ended FROM pointsman_ended_order WHERE key = ?1 AND tenant = ?2";
    query_first(conn, sql, (key.to_string(), tenant.as_str()), |row| {
        Ok(EndedOrder {
            key: key.clone(),
            tenant: tenant.clone(),
            outcome: read_text(row, 0)?.parse().map_err(Fault::damaged)?,
            node: ChainNodeId::new(read_text(row, 1)?).map_err(Fault::damaged)?,
            ended_at: read_time(row, 2)?,
        })
    })
}

pub(super) fn write_ended_order(conn: &Connection, order: &EndedOrder) -> TableResult<()> {
    let sql = "INSERT OR REPLACE INTO pointsman_ended_order (key, tenant, outcome, node, ended)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let EndedOrder { key, tenant, outcome, node, ended_at } = order;
    let row = (key.to_string(), tenant.as_str(), outcome.as_str(), node.as_str(), ended_at.micros());
    conn.prepare_cached(sql)?.execute(row)?;
    Ok(())
}
