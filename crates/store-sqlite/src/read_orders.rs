//! Reads orders and chains. Each result is from one transaction, with the range of the journal at that time.

use std::borrow::Cow;

use pointsman_core::chain::{ChainNodeId, OrderKey};
use pointsman_core::journal::{JournalRange, PathFilter};
use pointsman_core::order::{Order, OrderStatistics};
use pointsman_core::store::{ChainView, OrderCursor, OrderPage, OrderView};
use pointsman_core::{HandlerName, Json, TaskId, Tenant, Timestamp};
use pointsman_store::ChainRegistry;
use pointsman_store::columns::{Cell, Columns, OrderColumns};
use pointsman_store::expand_sql;
use pointsman_store::row::{OrderRow, TaskPhase};
use pointsman_store::views::{
    OrderPageBuilder, OrderStatisticsColumns, StepTaskColumns, ViewEnvironment, build_chain_view,
    order_key_range, statistics_of_order,
};
use rusqlite::{Connection, Row};

use crate::cells::RowReader;
use crate::error::{Fault, TableResult};
use crate::read_journal::read_journal_range;
use crate::read_tasks;
use crate::tables::queries::{query_all, query_first, read_optional_time, read_text};
use crate::tables::{chains as chain_rows, meta, rules};

/// Selects an order and its task, in the order that [`build_order_view`] reads the columns.
const ORDER_WITH_TASK_QUERY: &str = expand_sql!(
    "SELECT o.:order_columns, t.phase, t.due, t.retries, h.name
     FROM pointsman_order o
     LEFT JOIN pointsman_task t ON t.seq = o.task
     LEFT JOIN pointsman_queue q ON q.id = t.queue
     LEFT JOIN pointsman_handler h ON h.id = q.handler"
);

pub(crate) fn read_order_view(
    conn: &Connection,
    tenant: &Tenant,
    key: &OrderKey,
) -> TableResult<Option<(OrderView, JournalRange)>> {
    let journal_range = read_journal_range(conn)?;
    let environment = read_view_environment(conn)?;
    let sql = format!("{ORDER_WITH_TASK_QUERY} WHERE o.key = ?1 AND o.tenant = ?2");
    let view = query_first(conn, &sql, (key.to_string(), tenant.as_str()), |row| {
        build_order_view(conn, &environment, row)
    })?;
    Ok(view.map(|view| (view, journal_range)))
}

pub(crate) fn list_orders(
    conn: &Connection,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    after: Option<&OrderCursor>,
    limit: usize,
) -> TableResult<OrderPage> {
    let mut page = OrderPageBuilder::new(limit, read_journal_range(conn)?);
    for_each_order(conn, path, tenant, after, |view| page.try_push_order(view))?;
    Ok(page.into_page())
}

/// Lists all orders of a path without their values, so that memory does not grow with the values.
pub(crate) fn list_all_orders(
    conn: &Connection,
    path: &PathFilter,
    tenant: Option<&Tenant>,
) -> TableResult<OrderPage> {
    let mut page =
        OrderPage { orders: Vec::new(), next_cursor: None, journal_range: read_journal_range(conn)? };
    for_each_order(conn, path, tenant, None, |mut view| {
        view.order.value = Json::null();
        page.orders.push(view);
        true
    })?;
    Ok(page)
}

/// Calls `on_order` with the orders of a path and a tenant, by key, until it returns false.
fn for_each_order(
    conn: &Connection,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    after: Option<&OrderCursor>,
    mut on_order: impl FnMut(OrderView) -> bool,
) -> TableResult<()> {
    let environment = read_view_environment(conn)?;
    let sql = format!(
        "{ORDER_WITH_TASK_QUERY}
         WHERE (o.key, o.tenant) > (?1, ?2) AND o.key >= ?3 AND o.key < ?4 AND (?5 IS NULL OR o.tenant = ?5)
         ORDER BY o.key, o.tenant"
    );
    let (first_key, end_key) = order_key_range(path);
    let (after_key, after_tenant) =
        after.map(|after| (after.key.to_string(), after.tenant.as_str())).unwrap_or_default();
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows =
        statement.query((after_key, after_tenant, first_key, end_key, tenant.map(Tenant::as_str)))?;
    while let Some(row) = rows.next()? {
        if path.matches(read_text(row, 1)?) && !on_order(build_order_view(conn, &environment, row)?) {
            break;
        }
    }
    Ok(())
}

pub(crate) fn read_view_environment(conn: &Connection) -> TableResult<ViewEnvironment> {
    Ok(ViewEnvironment {
        chains: ChainRegistry::from_rows(chain_rows::list_chains(conn)?),
        rules: rules::list_rules(conn)?,
        task_id_namespace: meta::read_task_id_namespace(conn)?,
    })
}

/// Builds the view of an order from a row of [`ORDER_WITH_TASK_QUERY`].
fn build_order_view(
    conn: &Connection,
    environment: &ViewEnvironment,
    row: &Row<'_>,
) -> TableResult<OrderView> {
    let mut cells = RowReader::new(row);
    let columns = OrderColumns::read_cells(&mut cells)?;
    let phase = Option::<i16>::read(&mut cells)?.and_then(TaskPhase::from_code);
    let due = Option::<i64>::read(&mut cells)?.map(Timestamp::from_micros);
    let retries = Option::<i64>::read(&mut cells)?.unwrap_or(0);
    let handler = Option::<Cow<'_, str>>::read(&mut cells)?.map(HandlerName::new);
    let handler = handler.transpose().map_err(Fault::damaged)?;
    let OrderRow { order, .. } = columns.into_row(phase == Some(TaskPhase::Locked))?;
    let suspending_task = read_suspending_task(conn, &order)?;
    Ok(environment.build_order_view(order, StepTaskColumns { phase, due, retries, handler, suspending_task }))
}

/// Reads the id and the error of the failed task that suspended an order; `None` if none did.
fn read_suspending_task(conn: &Connection, order: &Order) -> TableResult<Option<(TaskId, Option<String>)>> {
    let Some(task) = order.suspended_by_task_seq else { return Ok(None) };
    Ok(read_tasks::read_task(conn, task)?.map(|task| (task.id, task.error)))
}

pub(crate) fn read_order_statistics(
    conn: &Connection,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    now: Timestamp,
) -> TableResult<(OrderStatistics, JournalRange)> {
    let journal_range = read_journal_range(conn)?;
    let sql = expand_sql!(
        "SELECT o.key, o.started IS NOT NULL, o.planned, o.suspended, o.task IS NOT NULL, t.phase = :locked,
                t.retries > 0 AND t.phase <= :ready
         FROM pointsman_order o LEFT JOIN pointsman_task t ON t.seq = o.task
         WHERE o.key >= ?1 AND o.key < ?2 AND (?3 IS NULL OR o.tenant = ?3)"
    );
    let mut statement = conn.prepare_cached(sql)?;
    let (first_key, end_key) = order_key_range(path);
    let mut rows = statement.query((first_key, end_key, tenant.map(Tenant::as_str)))?;
    let mut statistics = OrderStatistics::default();
    while let Some(row) = rows.next()? {
        if path.matches(read_text(row, 0)?) {
            statistics.add(&statistics_of_order(read_statistics_columns(row)?, now));
        }
    }
    Ok((statistics, journal_range))
}

/// Reads the columns of an order that the statistics count.
fn read_statistics_columns(row: &Row<'_>) -> TableResult<OrderStatisticsColumns> {
    let flag =
        |index: usize| -> TableResult<bool> { Ok(row.get::<_, Option<bool>>(index)?.unwrap_or(false)) };
    Ok(OrderStatisticsColumns {
        is_started: row.get(1)?,
        planned_at: read_optional_time(row, 2)?,
        is_suspended: row.get(3)?,
        has_task: row.get(4)?,
        is_running: flag(5)?,
        is_retrying: flag(6)?,
    })
}

pub(crate) fn list_chain_views(conn: &Connection) -> TableResult<(Vec<ChainView>, JournalRange)> {
    let journal_range = read_journal_range(conn)?;
    let sql = "SELECT node, count(*) FROM pointsman_order WHERE chain = ?1 GROUP BY node ORDER BY node";
    let mut views = Vec::new();
    for chain_row in chain_rows::list_chains(conn)? {
        let order_counts = query_all(conn, sql, [chain_row.path().as_str()], |row| {
            Ok((ChainNodeId::new(read_text(row, 0)?).map_err(Fault::damaged)?, row.get::<_, i64>(1)? as u64))
        })?;
        views.extend(build_chain_view(chain_row, order_counts));
    }
    Ok((views, journal_range))
}
