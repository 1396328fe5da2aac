//! Reading orders and chains.

use std::collections::HashMap;

use futures::future::{try_join, try_join3};
use pointsman_core::chain::{NodeId, OrderKey};
use pointsman_core::journal::{Extent, PathFilter};
use pointsman_core::order::{Order, OrderStatistics};
use pointsman_core::store::{ChainView, OrderCursor, OrderPage, OrderView};
use pointsman_core::task::{QueueOf, Realm};
use pointsman_core::{HandlerName, TaskId, Tenant, Timestamp};
use pointsman_store::Chains;
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::Known;
use pointsman_store::views::{OrderPaging, StepColumns, Surroundings, chain_view, key_range};
use tokio_postgres::Row;

use super::journal::extent;
use super::people::rules;
use super::tasks::realm;
use super::{Chunk, MOST_BYTES};
use crate::rows::{ORDER, chain_of, get, maybe_phase, maybe_time, order_of};
use crate::session::{Params, Session, query};

/// For the rest of a transaction that counts all orders, which no index makes quicker.
const WHOLE_TABLES: &str =
    "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashjoin = on";

/// What there is to know of all orders together.
pub(super) async fn surroundings(session: &Session) -> Result<Surroundings> {
    let (chains, rules, realm) = try_join3(known(session), rules(session), realm(session)).await?;
    Ok(Surroundings { chains: Chains::of(chains), rules, realm })
}

async fn known(session: &Session) -> Result<Vec<Known>> {
    session.query(query!("write/chains"), &[]).await?.iter().map(chain_of).collect()
}

pub(super) async fn order(
    session: &Session,
    tenant: &Tenant,
    key: &OrderKey,
) -> Result<Option<(OrderView, Extent)>> {
    let (key, tenant) = (key.to_string(), tenant.as_str());
    let rows = async { Ok(session.query(query!("read/order", TEXT, TEXT), &[&key, &tenant]).await?) };
    let (extent, around, rows) = try_join3(extent(session), surroundings(session), rows).await?;
    rows.first().map(|row| Ok((view(&around, row)?, extent))).transpose()
}

/// Which orders are wanted.
struct Wanted<'a> {
    path: &'a PathFilter,
    tenant: Option<&'a Tenant>,
    /// Key and tenant of the order after which the list starts; empty to start at the first.
    after: (String, String),
    values: bool,
}

pub(super) async fn orders(
    session: &Session,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    after: Option<&OrderCursor>,
    limit: usize,
) -> Result<OrderPage> {
    let after = after.map(|after| (after.key.to_string(), after.tenant.to_string())).unwrap_or_default();
    list(session, Wanted { path, tenant, after, values: true }, limit).await
}

/// All orders of a path without their values, so that what is held does not grow with those.
pub(super) async fn all_orders(
    session: &Session,
    path: &PathFilter,
    tenant: Option<&Tenant>,
) -> Result<OrderPage> {
    list(session, Wanted { path, tenant, after: Default::default(), values: false }, usize::MAX).await
}

async fn list(session: &Session, mut wanted: Wanted<'_>, limit: usize) -> Result<OrderPage> {
    // One more than is wanted tells whether there is more.
    let mut chunk = Chunk::of(limit.saturating_add(1));
    let (extent, around, mut rows) =
        try_join3(extent(session), surroundings(session), stretch(session, &wanted, chunk)).await?;
    let mut page = OrderPaging::new(limit, extent);
    loop {
        for row in &rows {
            let key: &str = get(row, 1)?;
            wanted.after = (key.into(), get(row, 3)?);
            if wanted.path.matches(key) && !page.take(view(&around, row)?) {
                return Ok(page.page());
            }
        }
        let bytes = rows.last().map_or(Ok(0), |last| get(last, ORDER + 8))?;
        if chunk.is_last(&rows, bytes) {
            return Ok(page.page());
        }
        chunk = chunk.grown();
        rows = stretch(session, &wanted, chunk).await?;
    }
}

async fn stretch(session: &Session, wanted: &Wanted<'_>, chunk: Chunk) -> Result<Vec<Row>> {
    let Wanted { path, tenant, after: (after, of), values } = wanted;
    let (low, high) = key_range(path);
    let tenant = tenant.map(Tenant::as_str);
    let query = query!("read/orders", TEXT, TEXT, TEXT, TEXT, INT8, BOOL, INT8, TEXT);
    let asked: Params<'_> = &[after, &low, &high, &tenant, &chunk.rows(), values, &MOST_BYTES, of];
    Ok(session.query(query, asked).await?)
}

/// An order, from a row with it and then phase, due time, retries and handler of its task, and the task that suspended
/// it by its end: handler, what it was of, whether it is unfinished, error.
fn view(around: &Surroundings, row: &Row) -> Result<OrderView> {
    let order = order_of(row, 0)?.order;
    let handler: Option<&str> = get(row, ORDER + 3)?;
    let step = StepColumns {
        phase: maybe_phase(row, ORDER)?,
        due: maybe_time(row, ORDER + 1)?,
        retries: get::<Option<i64>>(row, ORDER + 2)?.unwrap_or(0),
        handler: handler.map(HandlerName::new).transpose().map_err(Fault::damaged)?,
        failed: failed(&order, row, around.realm)?,
    };
    Ok(around.view(order, step))
}

fn failed(order: &Order, row: &Row, realm: Realm) -> Result<Option<(TaskId, Option<String>)>> {
    let (Some(seq), Some(handler)) = (order.halted_by, get::<Option<&str>>(row, ORDER + 4)?) else {
        return Ok(None);
    };
    let of: &str = get(row, ORDER + 5)?;
    let collection = match get(row, ORDER + 6)? {
        true => match QueueOf::read(of).map_err(Fault::damaged)? {
            QueueOf::Node { node, .. } => node.to_string(),
            other @ (QueueOf::Events | QueueOf::Collection(_)) => other.text(),
        },
        false => of.to_string(),
    };
    Ok(Some((TaskId::new(handler, &collection, realm.uuid(seq)), get(row, ORDER + 7)?)))
}

pub(super) async fn statistics(
    session: &Session,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    now: Timestamp,
) -> Result<(OrderStatistics, Extent)> {
    let (low, high) = key_range(path);
    let (tenant, now) = (tenant.map(Tenant::as_str), now.micros());
    let means = match path {
        PathFilter::Everything | PathFilter::Below(_) => "all",
        PathFilter::ChildrenOf(_) => "children",
        PathFilter::Exactly(_) => "exactly",
    };
    let extent = extent(session).await?;
    let query = query!("read/order_statistics", TEXT, TEXT, TEXT, INT8, TEXT);
    let asked: Params<'_> = &[&low, &high, &tenant, &now, &means];
    let ((), rows) = try_join(session.batch(WHOLE_TABLES), session.query(query, asked)).await?;
    let row = rows.first().ok_or_else(|| Fault::damaged("statistics without a row"))?;
    let count = |at: usize| -> Result<u64> { Ok(get::<i64>(row, at)? as u64) };
    let sum = OrderStatistics {
        total: count(0)?,
        not_planned: count(1)?,
        planned: count(2)?,
        due: count(3)?,
        started: count(4)?,
        in_task: count(5)?,
        in_process: count(6)?,
        setback: count(7)?,
        suspended: count(8)?,
        ..OrderStatistics::default()
    };
    Ok((sum, extent))
}

pub(super) async fn chains(session: &Session) -> Result<(Vec<ChainView>, Extent)> {
    let (extent, known) = try_join(extent(session), known(session)).await?;
    let counts = session.query(query!("read/orders_at_nodes"), &[]);
    let ((), counts) = try_join(session.batch(WHOLE_TABLES), counts).await?;
    let mut orders: HashMap<&str, Vec<(NodeId, u64)>> = HashMap::new();
    for row in &counts {
        let node = NodeId::new(get::<&str>(row, 1)?).map_err(Fault::damaged)?;
        orders.entry(get(row, 0)?).or_default().push((node, get::<i64>(row, 2)? as u64));
    }
    let views = known.into_iter().filter_map(|known| {
        let orders = orders.remove(known.path().as_str()).unwrap_or_default();
        chain_view(known, orders)
    });
    Ok((views.collect(), extent))
}
