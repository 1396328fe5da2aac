//! Reading orders and chains. Each answer is one transaction, with the extent of the journal that it is true at.

use pointsman_core::chain::{NodeId, OrderKey};
use pointsman_core::journal::{Extent, PathFilter};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::{ChainView, OrderPage, OrderView};
use pointsman_core::task::{State, Status};
use pointsman_core::{Json, Timestamp};
use rusqlite::{Connection, Row};

use crate::chains::read_chains;
use crate::error::{Fault, Result};
use crate::orders::{Numbered, order};
use crate::read_journal::extent;
use crate::read_tasks;
use crate::row::Live;

/// So many bytes of values at most come in one page.
const PAGE_BYTES: usize = 8 << 20;

pub(crate) fn order(conn: &Connection, key: &OrderKey) -> Result<Option<(OrderView, Extent)>> {
    let extent = extent(conn)?;
    let Some(found) = Numbered::named(conn, key)? else { return Ok(None) };
    let nodes = Nodes::read(conn)?;
    Ok(Some((view(conn, found, &nodes)?, extent)))
}

pub(crate) fn orders(
    conn: &Connection,
    path: &PathFilter,
    after: Option<&OrderKey>,
    limit: usize,
) -> Result<OrderPage> {
    let mut page = OrderPage { orders: Vec::new(), next: None, extent: extent(conn)? };
    let nodes = Nodes::read(conn)?;
    let sql = concat!(
        "SELECT ",
        order!(),
        " FROM pointsman_order o WHERE o.key > ?1 AND o.key >= ?2 AND o.key < ?3 ORDER BY o.key"
    );
    let (low, high) = range(path);
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query((after.map(OrderKey::to_string).unwrap_or_default(), low, high))?;
    let mut bytes = 0;
    while let Some(found) = rows.next()?.map(Numbered::from_row).transpose()? {
        if !path.matches(&found.order.key.to_string()) {
            continue;
        }
        if page.orders.len() >= limit || bytes >= PAGE_BYTES {
            page.next = page.orders.last().map(|last: &OrderView| last.order.key.clone());
            break;
        }
        bytes += found.order.value.as_str().len();
        page.orders.push(view(conn, found, &nodes)?);
    }
    Ok(page)
}

/// All orders of a path without their values, so that what is held does not grow with those.
pub(crate) fn all_orders(conn: &Connection, path: &PathFilter) -> Result<OrderPage> {
    let mut page = OrderPage { orders: Vec::new(), next: None, extent: extent(conn)? };
    let nodes = Nodes::read(conn)?;
    let sql = concat!(
        "SELECT ",
        order!(),
        " FROM pointsman_order o WHERE o.key >= ?1 AND o.key < ?2 ORDER BY o.key"
    );
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(range(path))?;
    while let Some(mut found) = rows.next()?.map(Numbered::from_row).transpose()? {
        if path.matches(&found.order.key.to_string()) {
            found.order.value = Json::null();
            page.orders.push(view(conn, found, &nodes)?);
        }
    }
    Ok(page)
}

/// From where on, and up to where, the keys lie that a path can match.
fn range(path: &PathFilter) -> (String, String) {
    let prefix = match path {
        PathFilter::Everything => "/",
        PathFilter::Below(prefix) | PathFilter::ChildrenOf(prefix) | PathFilter::Exactly(prefix) => prefix,
    };
    (prefix.to_string(), format!("{prefix}{}", char::MAX))
}

/// Which nodes each chain has.
struct Nodes(Vec<(String, Vec<NodeId>)>);

impl Nodes {
    fn read(conn: &Connection) -> Result<Self> {
        let chains = read_chains(conn)?;
        let defined = chains.iter().filter_map(|known| known.chain());
        let nodes = defined
            .map(|chain| (chain.path.to_string(), chain.nodes.iter().map(|node| node.id.clone()).collect()));
        Ok(Self(nodes.collect()))
    }

    fn have(&self, chain: &str, node: &NodeId) -> bool {
        self.0.iter().any(|(path, nodes)| path == chain && nodes.contains(node))
    }
}

fn view(conn: &Connection, found: Numbered, nodes: &Nodes) -> Result<OrderView> {
    let order = found.order;
    let task = match order.task {
        Some(seq) => Live::load(conn, seq)?.map(|live| read_tasks::of_live(conn, live)).transpose()?,
        None => None,
    };
    let due = task.as_ref().and_then(|task| match task.life.state {
        State::New { due } | State::Missing { due } => Some(due),
        State::Scheduled | State::Locked(_) | State::Done | State::Error { .. } => None,
    });
    let set_back =
        task.as_ref().is_some_and(|task| task.life.retries > 0 && task.life.state.status() == Status::New);
    Ok(OrderView {
        setback: due.filter(|_| set_back),
        stranded: !nodes.have(order.key.chain.as_str(), &order.node),
        task: task.map(|task| (task.id, task.life.state.status(), due)),
        order,
    })
}

pub(crate) fn statistics(
    conn: &Connection,
    path: &PathFilter,
    now: Timestamp,
) -> Result<(OrderStatistics, Extent)> {
    let extent = extent(conn)?;
    let sql = "SELECT o.key, o.started IS NOT NULL, o.planned, o.suspended, o.task IS NOT NULL, t.phase = 5,
                      t.retries > 0 AND t.phase <= 3
               FROM pointsman_order o LEFT JOIN pointsman_task t ON t.seq = o.task
               WHERE o.key >= ?1 AND o.key < ?2";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(range(path))?;
    let mut sum = OrderStatistics::default();
    while let Some(row) = rows.next()? {
        let key = row.get_ref(0)?.as_str().map_err(Fault::damaged)?;
        if path.matches(key) {
            sum.add(&counts(row, now)?);
        }
    }
    Ok((sum, extent))
}

/// What one order counts for.
fn counts(row: &Row<'_>, now: Timestamp) -> Result<OrderStatistics> {
    let started: bool = row.get(1)?;
    let planned = row.get::<_, Option<i64>>(2)?.map(Timestamp::from_micros);
    let one =
        |index: usize| -> Result<u64> { Ok(row.get::<_, Option<bool>>(index)?.unwrap_or(false).into()) };
    Ok(OrderStatistics {
        total: 1,
        not_planned: u64::from(!started && planned.is_none()),
        planned: u64::from(!started && planned.is_some_and(|planned| planned > now)),
        due: u64::from(!started && planned.is_some_and(|planned| planned <= now)),
        started: started.into(),
        suspended: one(3)?,
        in_task: one(4)?,
        in_process: one(5)?,
        setback: one(6)?,
        ..OrderStatistics::default()
    })
}

pub(crate) fn chains(conn: &Connection) -> Result<(Vec<ChainView>, Extent)> {
    let extent = extent(conn)?;
    let sql = "SELECT node, count(*) FROM pointsman_order WHERE chain = ?1 GROUP BY node ORDER BY node";
    let mut statement = conn.prepare_cached(sql)?;
    let mut views = Vec::new();
    for known in read_chains(conn)? {
        let Some(chain) = known.chain().cloned() else { continue };
        let mut rows = statement.query([chain.path.as_str()])?;
        let mut orders = Vec::new();
        while let Some(row) = rows.next()? {
            let node =
                NodeId::new(row.get_ref(0)?.as_str().map_err(Fault::damaged)?).map_err(Fault::damaged)?;
            orders.push((node, row.get::<_, i64>(1)? as u64));
        }
        views.push(ChainView { chain, state: known.state, orders });
    }
    Ok((views, extent))
}
