//! Reading orders and chains. Each answer is one transaction, with the extent of the journal that it is true at.

use pointsman_core::chain::{NodeId, OrderKey};
use pointsman_core::journal::{Extent, PathFilter};
use pointsman_core::order::{Order, OrderStatistics};
use pointsman_core::store::{ChainView, OrderCursor, OrderPage, OrderView};
use pointsman_core::{HandlerName, Json, TaskId, Tenant, Timestamp};
use pointsman_store::Chains;
use pointsman_store::row::Phase;
use pointsman_store::views::{
    OrderColumns, OrderPaging, StepColumns, Surroundings, chain_view, counts, key_range,
};
use rusqlite::{Connection, Row};

use crate::error::{Fault, Result};
use crate::read_journal::extent;
use crate::read_tasks;
use crate::tables::row::{all, first, order, order_of, text, time_if_any};
use crate::tables::{chains as chain_rows, numbers, registry};

/// The columns of an order and of its task, in the order that [`view`] reads them.
macro_rules! standing {
    () => {
        concat!(
            "SELECT ",
            order!(),
            ", t.phase, t.due, t.retries, h.name
             FROM pointsman_order o
             LEFT JOIN pointsman_task t ON t.seq = o.task
             LEFT JOIN pointsman_queue q ON q.id = t.queue
             LEFT JOIN pointsman_handler h ON h.id = q.handler"
        )
    };
}

pub(crate) fn order(
    conn: &Connection,
    tenant: &Tenant,
    key: &OrderKey,
) -> Result<Option<(OrderView, Extent)>> {
    let extent = extent(conn)?;
    let around = surroundings(conn)?;
    let sql = concat!(standing!(), " WHERE o.key = ?1 AND o.tenant = ?2");
    let view = first(conn, sql, (key.to_string(), tenant.as_str()), |row| view(conn, &around, row))?;
    Ok(view.map(|view| (view, extent)))
}

pub(crate) fn orders(
    conn: &Connection,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    after: Option<&OrderCursor>,
    limit: usize,
) -> Result<OrderPage> {
    let mut page = OrderPaging::new(limit, extent(conn)?);
    each_of(conn, path, tenant, after, |view| page.take(view))?;
    Ok(page.page())
}

/// All orders of a path without their values, so that what is held does not grow with those.
pub(crate) fn all_orders(conn: &Connection, path: &PathFilter, tenant: Option<&Tenant>) -> Result<OrderPage> {
    let mut page = OrderPage { orders: Vec::new(), next: None, extent: extent(conn)? };
    each_of(conn, path, tenant, None, |mut view| {
        view.order.value = Json::null();
        page.orders.push(view);
        true
    })?;
    Ok(page)
}

/// Shows the orders of a path and a tenant, by key, as long as they are wanted.
fn each_of(
    conn: &Connection,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    after: Option<&OrderCursor>,
    mut wanted: impl FnMut(OrderView) -> bool,
) -> Result<()> {
    let around = surroundings(conn)?;
    let sql = concat!(
        standing!(),
        " WHERE (o.key, o.tenant) > (?1, ?2) AND o.key >= ?3 AND o.key < ?4 AND (?5 IS NULL OR o.tenant = ?5)
          ORDER BY o.key, o.tenant"
    );
    let (low, high) = key_range(path);
    let (key, of) = after.map(|after| (after.key.to_string(), after.tenant.as_str())).unwrap_or_default();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query((key, of, low, high, tenant.map(Tenant::as_str)))?;
    while let Some(row) = rows.next()? {
        if path.matches(text(row, 1)?) && !wanted(view(conn, &around, row)?) {
            break;
        }
    }
    Ok(())
}

pub(crate) fn surroundings(conn: &Connection) -> Result<Surroundings> {
    Ok(Surroundings {
        chains: Chains::of(chain_rows::chains(conn)?),
        rules: registry::rules(conn)?,
        realm: numbers::realm(conn)?,
    })
}

/// An order, from a row of `standing!`.
fn view(conn: &Connection, around: &Surroundings, row: &Row<'_>) -> Result<OrderView> {
    let order = order_of(row)?.order;
    let handler: Option<String> = row.get(20)?;
    let step = StepColumns {
        phase: row.get::<_, Option<i64>>(17)?.and_then(Phase::from_code),
        due: time_if_any(row, 18)?,
        retries: row.get::<_, Option<i64>>(19)?.unwrap_or(0),
        handler: handler.map(HandlerName::new).transpose().map_err(Fault::damaged)?,
        failed: failed(conn, &order)?,
    };
    Ok(around.view(order, step))
}

/// The task that suspended an order.
fn failed(conn: &Connection, order: &Order) -> Result<Option<(TaskId, Option<String>)>> {
    let Some(task) = order.halted_by else { return Ok(None) };
    Ok(read_tasks::task(conn, task)?.map(|task| (task.id, task.error)))
}

pub(crate) fn statistics(
    conn: &Connection,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    now: Timestamp,
) -> Result<(OrderStatistics, Extent)> {
    let extent = extent(conn)?;
    let sql = "SELECT o.key, o.started IS NOT NULL, o.planned, o.suspended, o.task IS NOT NULL, t.phase = 5,
                      t.retries > 0 AND t.phase <= 3
               FROM pointsman_order o LEFT JOIN pointsman_task t ON t.seq = o.task
               WHERE o.key >= ?1 AND o.key < ?2 AND (?3 IS NULL OR o.tenant = ?3)";
    let mut statement = conn.prepare_cached(sql)?;
    let (from, to) = key_range(path);
    let mut rows = statement.query((from, to, tenant.map(Tenant::as_str)))?;
    let mut sum = OrderStatistics::default();
    while let Some(row) = rows.next()? {
        if path.matches(text(row, 0)?) {
            sum.add(&counts(columns(row)?, now));
        }
    }
    Ok((sum, extent))
}

/// What the statistics look at in an order.
fn columns(row: &Row<'_>) -> Result<OrderColumns> {
    let told = |index: usize| -> Result<bool> { Ok(row.get::<_, Option<bool>>(index)?.unwrap_or(false)) };
    Ok(OrderColumns {
        started: row.get(1)?,
        planned: time_if_any(row, 2)?,
        suspended: row.get(3)?,
        has_task: row.get(4)?,
        runs: told(5)?,
        set_back: told(6)?,
    })
}

pub(crate) fn chains(conn: &Connection) -> Result<(Vec<ChainView>, Extent)> {
    let extent = extent(conn)?;
    let sql = "SELECT node, count(*) FROM pointsman_order WHERE chain = ?1 GROUP BY node ORDER BY node";
    let mut views = Vec::new();
    for known in chain_rows::chains(conn)? {
        let orders = all(conn, sql, [known.path().as_str()], |row| {
            Ok((NodeId::new(text(row, 0)?).map_err(Fault::damaged)?, row.get::<_, i64>(1)? as u64))
        })?;
        views.extend(chain_view(known, orders));
    }
    Ok((views, extent))
}
