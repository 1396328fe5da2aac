//! Reading orders and chains. Each answer is one transaction, with the extent of the journal that it is true at.

use pointsman_core::chain::{Chain, NodeId, OrderKey};
use pointsman_core::journal::{Extent, PathFilter};
use pointsman_core::order::{Order, OrderStatistics};
use pointsman_core::store::{ChainView, OrderPage, OrderView};
use pointsman_core::task::{QueueOf, Realm, Status};
use pointsman_core::{HandlerName, Json, Rule, TaskId, Tenant, Timestamp};
use rusqlite::{Connection, Row};

use crate::chains::{Chains, read_chains};
use crate::error::{Fault, Result};
use crate::orders::{Numbered, order};
use crate::phase::Phase;
use crate::read_journal::extent;
use crate::read_tasks;
use crate::registry::read_rules;

/// So many bytes of values at most come in one page.
const PAGE_BYTES: usize = 8 << 20;

/// The columns of an order and of its task, in the order that [`Surroundings::view`] reads them.
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

pub(crate) fn order(conn: &Connection, key: &OrderKey) -> Result<Option<(OrderView, Extent)>> {
    let extent = extent(conn)?;
    let around = Surroundings::read(conn)?;
    let mut statement = conn.prepare_cached(concat!(standing!(), " WHERE o.key = ?1"))?;
    let mut rows = statement.query([key.to_string()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some((around.view(conn, row)?, extent)))
}

pub(crate) fn orders(
    conn: &Connection,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    after: Option<&OrderKey>,
    limit: usize,
) -> Result<OrderPage> {
    let mut page = OrderPage { orders: Vec::new(), next: None, extent: extent(conn)? };
    let mut bytes = 0;
    each_of(conn, path, tenant, after, |view| {
        if page.orders.len() >= limit || bytes >= PAGE_BYTES {
            page.next = page.orders.last().map(|last: &OrderView| last.order.key.clone());
            return false;
        }
        bytes += view.order.value.as_str().len();
        page.orders.push(view);
        true
    })?;
    Ok(page)
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
    after: Option<&OrderKey>,
    mut wanted: impl FnMut(OrderView) -> bool,
) -> Result<()> {
    let around = Surroundings::read(conn)?;
    let sql = concat!(
        standing!(),
        " WHERE o.key > ?1 AND o.key >= ?2 AND o.key < ?3 AND (?4 IS NULL OR o.tenant = ?4) ORDER BY o.key"
    );
    let (low, high) = range(path);
    let after = after.map(OrderKey::to_string).unwrap_or_default();
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query((after, low, high, tenant.map(Tenant::as_str)))?;
    while let Some(row) = rows.next()? {
        if path.matches(row.get_ref(1)?.as_str().map_err(Fault::damaged)?) && !wanted(around.view(conn, row)?)
        {
            break;
        }
    }
    Ok(())
}

/// From where on, and up to where, the keys lie that a path can match.
fn range(path: &PathFilter) -> (String, String) {
    let prefix = match path {
        PathFilter::Everything => "/",
        PathFilter::Below(prefix) | PathFilter::ChildrenOf(prefix) | PathFilter::Exactly(prefix) => prefix,
    };
    (prefix.to_string(), format!("{prefix}{}", char::MAX))
}

/// What there is to know of all orders together.
struct Surroundings {
    chains: Chains,
    rules: Vec<Rule>,
    realm: Realm,
}

impl Surroundings {
    fn read(conn: &Connection) -> Result<Self> {
        let (chains, rules) = (Chains::load(conn)?, read_rules(conn)?);
        Ok(Self { chains, rules, realm: read_tasks::realm(conn)? })
    }

    /// An order, from a row of `standing!`.
    fn view(&self, conn: &Connection, row: &Row<'_>) -> Result<OrderView> {
        let order = Numbered::from_row(row)?.order;
        let phase = row.get::<_, Option<i64>>(16)?.and_then(Phase::from_code);
        let due = row.get::<_, Option<i64>>(17)?.map(Timestamp::from_micros);
        let due = due
            .filter(|_| phase.is_some_and(|phase| phase.status() == Status::New || phase == Phase::Missing));
        let set_back = row.get::<_, Option<i64>>(18)?.unwrap_or(0) > 0
            && phase.is_some_and(|phase| phase.status() == Status::New);
        let handler: Option<String> = row.get(19)?;
        let handler = handler.map(HandlerName::new).transpose().map_err(Fault::damaged)?;
        let task = match (order.task, &handler, phase) {
            (Some(seq), Some(handler), Some(phase)) => {
                let id = TaskId::new(handler.as_str(), order.node.as_str(), self.realm.uuid(seq));
                Some((id, phase.status(), due))
            }
            _ => None,
        };
        let known = self.chains.get(&order.key.chain).and_then(|known| known.chain());
        Ok(OrderView {
            setback: due.filter(|_| set_back),
            stranded: known.is_none_or(|chain| chain.node(&order.node).is_none()),
            held: handler.filter(|_| !order.running).and_then(|handler| self.held(&order, &handler)),
            failed: self.failed(conn, &order)?,
            task,
            order,
        })
    }

    /// What holds the waiting task of an order back.
    fn held(&self, order: &Order, handler: &HandlerName) -> Option<String> {
        let of = QueueOf::Node { chain: order.key.chain.clone(), node: order.node.clone() };
        let rule = || {
            let rule = self.rules.iter().find(|rule| rule.holds(handler, &of, &order.tenant))?;
            let Rule { kind, place, by, reason, .. } = rule;
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            Some(format!("a {} of the {} {} by {by}{reason}", kind.as_str(), place.space(), place.name()))
        };
        self.chains.stopped(&of).or_else(rule)
    }

    fn failed(&self, conn: &Connection, order: &Order) -> Result<Option<(TaskId, String)>> {
        let Some(task) = order.halted_by else { return Ok(None) };
        let task = read_tasks::task(conn, task)?;
        Ok(task.map(|task| (task.id, task.error.unwrap_or_else(|| "canceled".into()))))
    }
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
    let (from, to) = range(path);
    let mut rows = statement.query((from, to, tenant.map(Tenant::as_str)))?;
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
        let chain = known.chain().cloned();
        let defined = chain.is_some();
        let chain = chain.unwrap_or_else(|| Chain { path: known.path().clone(), nodes: vec![] });
        let mut rows = statement.query([chain.path.as_str()])?;
        let mut orders = Vec::new();
        while let Some(row) = rows.next()? {
            let node =
                NodeId::new(row.get_ref(0)?.as_str().map_err(Fault::damaged)?).map_err(Fault::damaged)?;
            orders.push((node, row.get::<_, i64>(1)? as u64));
        }
        if defined || !orders.is_empty() {
            views.push(ChainView { chain, state: known.state, orders });
        }
    }
    Ok((views, extent))
}
