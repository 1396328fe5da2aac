//! Reading orders and chains.

use std::collections::HashMap;

use futures::future::{try_join, try_join3};
use pointsman_core::chain::{ChainNodeId, OrderKey};
use pointsman_core::journal::{JournalRange, PathFilter};
use pointsman_core::order::{Order, OrderStatistics};
use pointsman_core::store::{ChainView, OrderCursor, OrderPage, OrderView};
use pointsman_core::task::{QueueSubject, TaskIdNamespace};
use pointsman_core::{HandlerName, TaskId, Tenant, Timestamp};
use pointsman_store::ChainRegistry;
use pointsman_store::columns::{ChainColumns, Columns, OrderColumns};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::ChainRow;
use pointsman_store::views::{
    OrderPageBuilder, StepTaskColumns, ViewEnvironment, build_chain_view, order_key_range,
};
use tokio_postgres::Row;

use super::journal::read_journal_range;
use super::nodes_rules_audit_fires::list_rules;
use super::tasks::read_task_id_namespace;
use super::{ChunkSize, SQL_MAX_PAGE_BYTES};
use crate::rows::{RowReader, decode_phase, read_column, read_columns};
use crate::session::{QueryParams, Session, query};

/// Allows table scans for the rest of a transaction: no index makes counting all orders faster.
const ALLOW_TABLE_SCANS: &str =
    "SET LOCAL enable_seqscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_hashjoin = on";

/// Reads what all order views need: chains, rules and the task id namespace.
pub(super) async fn read_view_environment(session: &Session) -> TableResult<ViewEnvironment> {
    let (chains, rules, task_id_namespace) =
        try_join3(list_chains(session), list_rules(session), read_task_id_namespace(session)).await?;
    Ok(ViewEnvironment { chains: ChainRegistry::from_rows(chains), rules, task_id_namespace })
}

async fn list_chains(session: &Session) -> TableResult<Vec<ChainRow>> {
    let rows = session.query(query!("chain/list_chains"), &[]).await?;
    rows.iter().map(|row| read_columns::<ChainColumns<'_>>(row, 0)?.into_row()).collect()
}

pub(super) async fn find_order(
    session: &Session,
    tenant: &Tenant,
    key: &OrderKey,
) -> TableResult<Option<(OrderView, JournalRange)>> {
    let (key, tenant) = (key.to_string(), tenant.as_str());
    let rows = async {
        Ok(session.query(query!("orders/find_order_with_task", TEXT, TEXT), &[&key, &tenant]).await?)
    };
    let (journal_range, environment, rows) =
        try_join3(read_journal_range(session), read_view_environment(session), rows).await?;
    let view_of_row = |row| {
        let mut reader = RowReader::new(row, 0);
        let columns = OrderColumns::read_cells(&mut reader)?;
        decode_order_view(&environment, columns, reader)
    };
    rows.first().map(|row| Ok((view_of_row(row)?, journal_range))).transpose()
}

/// A query for orders.
struct OrderQuery<'a> {
    path: &'a PathFilter,
    tenant: Option<&'a Tenant>,
    /// Key and tenant of the order after which the list starts; empty to start at the first.
    after: (String, String),
    includes_values: bool,
}

pub(super) async fn list_order_page(
    session: &Session,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    after: Option<&OrderCursor>,
    limit: usize,
) -> TableResult<OrderPage> {
    let after = after.map(|after| (after.key.to_string(), after.tenant.to_string())).unwrap_or_default();
    list_matching_orders(session, OrderQuery { path, tenant, after, includes_values: true }, limit).await
}

/// Lists all orders of a path without their values, so that memory does not grow with those.
pub(super) async fn list_all_orders(
    session: &Session,
    path: &PathFilter,
    tenant: Option<&Tenant>,
) -> TableResult<OrderPage> {
    list_matching_orders(
        session,
        OrderQuery { path, tenant, after: Default::default(), includes_values: false },
        usize::MAX,
    )
    .await
}

/// Lists the orders that match a query, chunk by chunk, up to a limit.
async fn list_matching_orders(
    session: &Session,
    mut query: OrderQuery<'_>,
    limit: usize,
) -> TableResult<OrderPage> {
    // One more row than requested shows whether there is more.
    let mut chunk_size = ChunkSize::for_limit(limit.saturating_add(1));
    let (journal_range, environment, mut rows) = try_join3(
        read_journal_range(session),
        read_view_environment(session),
        fetch_order_chunk(session, &query, chunk_size),
    )
    .await?;
    let mut page = OrderPageBuilder::new(limit, journal_range);
    loop {
        for row in &rows {
            let mut reader = RowReader::new(row, 1);
            let columns = OrderColumns::read_cells(&mut reader)?;
            query.after = (columns.key.to_string(), columns.tenant.to_string());
            if query.path.matches(&columns.key)
                && !page.try_push_order(decode_order_view(&environment, columns, reader)?)
            {
                return Ok(page.into_page());
            }
        }
        let bytes = rows.last().map_or(Ok(0), |last| read_column(last, 0))?;
        if chunk_size.is_last_chunk(&rows, bytes) {
            return Ok(page.into_page());
        }
        chunk_size = chunk_size.next_larger();
        rows = fetch_order_chunk(session, &query, chunk_size).await?;
    }
}

async fn fetch_order_chunk(
    session: &Session,
    order_query: &OrderQuery<'_>,
    chunk_size: ChunkSize,
) -> TableResult<Vec<Row>> {
    let OrderQuery { path, tenant, after: (after_key, after_tenant), includes_values } = order_query;
    let (key_start, key_end) = order_key_range(path);
    let tenant = tenant.map(Tenant::as_str);
    let query = query!("orders/list_orders_with_tasks", TEXT, TEXT, TEXT, TEXT, INT8, BOOL, INT8, TEXT);
    let params: QueryParams<'_> = &[
        after_key,
        &key_start,
        &key_end,
        &tenant,
        &chunk_size.rows(),
        includes_values,
        &SQL_MAX_PAGE_BYTES,
        after_tenant,
    ];
    Ok(session.query(query, params).await?)
}

/// Decodes an order. Its columns are followed by whether its task is locked, by columns of its task (phase, due time,
/// retries, handler), and by columns of the task that suspended the order (handler, subject of its queue, whether it is
/// active, error).
fn decode_order_view(
    environment: &ViewEnvironment,
    columns: OrderColumns<'_>,
    mut reader: RowReader<'_>,
) -> TableResult<OrderView> {
    let order = columns.into_row(reader.read_next()?)?.order;
    let phase: Option<i16> = reader.read_next()?;
    let due: Option<i64> = reader.read_next()?;
    let retries: Option<i64> = reader.read_next()?;
    let handler: Option<&str> = reader.read_next()?;
    let step = StepTaskColumns {
        phase: phase.map(decode_phase).transpose()?,
        due: due.map(Timestamp::from_micros),
        retries: retries.unwrap_or(0),
        handler: handler.map(HandlerName::new).transpose().map_err(Fault::damaged)?,
        suspending_task: decode_failed_task_id_and_error(&order, reader, environment.task_id_namespace)?,
    };
    Ok(environment.build_order_view(order, step))
}

/// Decodes the id and the error of the task whose failure suspended an order.
fn decode_failed_task_id_and_error(
    order: &Order,
    mut reader: RowReader<'_>,
    task_id_namespace: TaskIdNamespace,
) -> TableResult<Option<(TaskId, Option<String>)>> {
    let (Some(seq), Some(handler)) = (order.suspended_by_task_seq, reader.read_next::<Option<&str>>()?)
    else {
        return Ok(None);
    };
    let queue_subject: &str = reader.read_next()?;
    let collection = match reader.read_next()? {
        true => match QueueSubject::from_text(queue_subject).map_err(Fault::damaged)? {
            QueueSubject::ChainNode { node, .. } => node.to_string(),
            other @ (QueueSubject::Events | QueueSubject::Collection(_)) => other.to_text(),
        },
        false => queue_subject.to_string(),
    };
    let id = TaskId::new(handler, &collection, task_id_namespace.uuid_of_seq(seq));
    Ok(Some((id, reader.read_next()?)))
}

/// Counts the orders of a path by state.
pub(super) async fn read_order_statistics(
    session: &Session,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    now: Timestamp,
) -> TableResult<(OrderStatistics, JournalRange)> {
    let (key_start, key_end) = order_key_range(path);
    let (tenant, now) = (tenant.map(Tenant::as_str), now.micros());
    let path_match = match path {
        PathFilter::Everything | PathFilter::Subtree(_) => "all",
        PathFilter::ChildrenOf(_) => "children",
        PathFilter::PathAndItsOrders(_) => "exactly",
    };
    let journal_range = read_journal_range(session).await?;
    let query = query!("orders/count_orders_by_state", TEXT, TEXT, TEXT, INT8, TEXT);
    let params: QueryParams<'_> = &[&key_start, &key_end, &tenant, &now, &path_match];
    let ((), rows) = try_join(session.execute_batch(ALLOW_TABLE_SCANS), session.query(query, params)).await?;
    let row = rows.first().ok_or_else(|| Fault::damaged("statistics without a row"))?;
    let count = |index: usize| -> TableResult<u64> { Ok(read_column::<i64>(row, index)? as u64) };
    let statistics = OrderStatistics {
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
    Ok((statistics, journal_range))
}

pub(super) async fn list_chain_views(session: &Session) -> TableResult<(Vec<ChainView>, JournalRange)> {
    let (journal_range, chains) = try_join(read_journal_range(session), list_chains(session)).await?;
    let counts = session.query(query!("orders/count_orders_by_chain_node"), &[]);
    let ((), counts) = try_join(session.execute_batch(ALLOW_TABLE_SCANS), counts).await?;
    let mut orders: HashMap<&str, Vec<(ChainNodeId, u64)>> = HashMap::new();
    for row in &counts {
        let node = ChainNodeId::new(read_column::<&str>(row, 1)?).map_err(Fault::damaged)?;
        orders.entry(read_column(row, 0)?).or_default().push((node, read_column::<i64>(row, 2)? as u64));
    }
    let views = chains.into_iter().filter_map(|chain| {
        let orders = orders.remove(chain.path().as_str()).unwrap_or_default();
        build_chain_view(chain, orders)
    });
    Ok((views.collect(), journal_range))
}
