//! Reads of orders and chains.

use std::collections::{BTreeMap, HashMap};

use pointsman_core::chain::{ChainNodeId, OrderKey};
use pointsman_core::journal::{JournalRange, PathFilter};
use pointsman_core::order::{Order, OrderStatistics};
use pointsman_core::store::{ChainView, OrderCursor, OrderPage, OrderView};
use pointsman_core::{Json, TaskId, TaskSeq, Tenant, Timestamp};
use pointsman_store::ChainRegistry;
use pointsman_store::error::TableResult;
use pointsman_store::row::{ActiveTaskRow, TaskPhase};
use pointsman_store::views::{
    OrderPageBuilder, OrderStatisticsColumns, StepTaskColumns, ViewEnvironment, build_chain_view,
    statistics_of_order,
};

use super::order_scan::{OrderChainNodeScan, OrderScan};
use super::queue_names::QueueNameCache;
use super::tasks::read_tasks_without_attempts;
use crate::TASK_ID_NAMESPACE_TEXT_NAME;
use crate::codec::MemberOrField;
use crate::keys::Table;
use crate::overlay::{CacheFetch, TransactionOverlay};
use crate::store_state::StoreState;

/// Reads chains, rules and the task id namespace, which views of orders and queues need.
pub(super) fn read_view_environment(overlay: &mut TransactionOverlay) -> TableResult<ViewEnvironment> {
    let namespace =
        CacheFetch::Row(Table::NamedTexts, MemberOrField::from_slice(TASK_ID_NAMESPACE_TEXT_NAME.as_bytes()));
    overlay.fetch_into_cache(vec![
        CacheFetch::Table(Table::Chains),
        CacheFetch::Table(Table::Rules),
        namespace,
    ])?;
    Ok(ViewEnvironment {
        chains: ChainRegistry::from_rows(overlay.read_chains()?),
        rules: overlay.read_rules()?,
        task_id_namespace: overlay.read_task_id_namespace()?,
    })
}

pub(crate) fn read_order_view(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
    tenant: &Tenant,
    key: &OrderKey,
) -> TableResult<Option<(OrderView, JournalRange)>> {
    let Some(found) = overlay.read_order_by_key(tenant, key)? else { return Ok(None) };
    let mut view_builder = OrderViewBuilder::new(overlay)?;
    let view = view_builder.build_views(overlay, vec![found.order])?.pop();
    Ok(view.map(|view| (view, store_state.journal_range())))
}

pub(crate) fn list_orders(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
    (path, tenant): (&PathFilter, Option<&Tenant>),
    after: Option<&OrderCursor>,
    limit: usize,
) -> TableResult<OrderPage> {
    let mut page = OrderPageBuilder::new(limit, store_state.journal_range());
    let mut view_builder = OrderViewBuilder::new(overlay)?;
    // One more than requested shows whether there is a next page.
    let mut scan = OrderScan::new(path, tenant, after, limit.saturating_add(1));
    while let Some(chunk) = scan.next_chunk(overlay)? {
        if !view_builder.build_views(overlay, chunk)?.into_iter().all(|view| page.try_push_order(view)) {
            break;
        }
    }
    Ok(page.into_page())
}

/// Lists all orders of a path without their values, to limit memory.
pub(crate) fn list_all_orders_without_values(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
    path: &PathFilter,
    tenant: Option<&Tenant>,
) -> TableResult<OrderPage> {
    let mut page =
        OrderPage { orders: Vec::new(), next_cursor: None, journal_range: store_state.journal_range() };
    let mut view_builder = OrderViewBuilder::new(overlay)?;
    let mut scan = OrderScan::new(path, tenant, None, usize::MAX);
    while let Some(mut chunk) = scan.next_chunk(overlay)? {
        chunk.iter_mut().for_each(|order| order.value = Json::null());
        page.orders.extend(view_builder.build_views(overlay, chunk)?);
    }
    Ok(page)
}

/// Builds views of orders in chunks.
struct OrderViewBuilder {
    environment: ViewEnvironment,
    queue_names: QueueNameCache,
}

impl OrderViewBuilder {
    fn new(overlay: &mut TransactionOverlay) -> TableResult<Self> {
        Ok(Self { environment: read_view_environment(overlay)?, queue_names: QueueNameCache::default() })
    }

    fn build_views(
        &mut self,
        overlay: &mut TransactionOverlay,
        orders: Vec<Order>,
    ) -> TableResult<Vec<OrderView>> {
        let mut tasks = Vec::with_capacity(orders.len());
        for order in &orders {
            tasks.push(read_step_task(overlay, order)?);
        }
        self.queue_names.cache_missing_names(overlay, tasks.iter().flatten().map(|active| active.queue))?;
        let failed_tasks = read_suspending_tasks(overlay, &orders)?;
        let views = orders.into_iter().zip(tasks).map(|(order, task)| {
            let failed_task = order.suspended_by_task_seq.and_then(|seq| failed_tasks.get(&seq).cloned());
            let step = StepTaskColumns { suspending_task: failed_task, ..self.build_step_columns(task)? };
            Ok(self.environment.build_order_view(order, step))
        });
        views.collect()
    }

    fn build_step_columns(&self, task: Option<ActiveTaskRow>) -> TableResult<StepTaskColumns> {
        let Some(active) = task else { return Ok(StepTaskColumns::default()) };
        Ok(StepTaskColumns {
            phase: Some(active.phase),
            due: Some(active.due_time()),
            retries: active.lifecycle.retries.into(),
            handler: Some(self.queue_names.get(active.queue)?.handler.clone()),
            suspending_task: None,
        })
    }
}

/// Reads the task of an order's current step.
fn read_step_task(overlay: &mut TransactionOverlay, order: &Order) -> TableResult<Option<ActiveTaskRow>> {
    order.task_seq.map_or(Ok(None), |task| overlay.read_active_task(task))
}

/// Reads the tasks that suspended these orders, with their errors.
fn read_suspending_tasks(
    overlay: &mut TransactionOverlay,
    orders: &[Order],
) -> TableResult<HashMap<TaskSeq, (TaskId, Option<String>)>> {
    let seqs: Vec<TaskSeq> = orders.iter().filter_map(|order| order.suspended_by_task_seq).collect();
    let tasks = read_tasks_without_attempts(overlay, &seqs)?;
    Ok(tasks.into_iter().map(|task| (task.seq, (task.id, task.error))).collect())
}

pub(crate) fn read_order_statistics(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
    path: &PathFilter,
    tenant: Option<&Tenant>,
    now: Timestamp,
) -> TableResult<(OrderStatistics, JournalRange)> {
    let mut sum = OrderStatistics::default();
    let mut scan = OrderScan::new(path, tenant, None, usize::MAX);
    while let Some(chunk) = scan.next_chunk(overlay)? {
        for order in chunk {
            let task = read_step_task(overlay, &order)?;
            sum.add(&statistics_of_order(statistics_columns(&order, task.as_ref()), now));
        }
    }
    Ok((sum, store_state.journal_range()))
}

/// Returns the columns of an order that statistics use.
fn statistics_columns(order: &Order, task: Option<&ActiveTaskRow>) -> OrderStatisticsColumns {
    let is_waiting = |active: &ActiveTaskRow| active.phase.code() <= TaskPhase::Ready.code();
    OrderStatisticsColumns {
        is_started: order.started_at.is_some(),
        planned_at: order.planned_at,
        is_suspended: order.suspended,
        has_task: order.task_seq.is_some(),
        is_running: task.is_some_and(|active| active.phase == TaskPhase::Locked),
        is_retrying: task.is_some_and(|active| active.lifecycle.retries > 0 && is_waiting(active)),
    }
}

pub(crate) fn list_chains(
    overlay: &mut TransactionOverlay,
    store_state: &StoreState,
) -> TableResult<(Vec<ChainView>, JournalRange)> {
    let chains = overlay.read_chains()?;
    let mut orders: HashMap<String, BTreeMap<ChainNodeId, u64>> = HashMap::new();
    let mut scan = OrderChainNodeScan::new();
    while let Some(chunk) = scan.next_chunk(overlay)? {
        for (path, node) in chunk {
            *orders.entry(path).or_default().entry(node).or_default() += 1;
        }
    }
    let views = chains.into_iter().filter_map(|chain| {
        let orders = orders.remove(chain.path().as_str()).unwrap_or_default();
        build_chain_view(chain, orders.into_iter().collect())
    });
    Ok((views.collect(), store_state.journal_range()))
}
