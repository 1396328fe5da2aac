//! Builds the views of orders, chains and queues from rows that a store has read.

use pointsman_core::chain::{Chain, ChainNodeId};
use pointsman_core::journal::{JournalRange, PathFilter};
use pointsman_core::order::{Order, OrderStatistics};
use pointsman_core::store::{ChainView, OrderCursor, OrderPage, OrderView, QueueView};
use pointsman_core::task::{QueueSubject, TaskIdNamespace, TaskStatus};
use pointsman_core::{HandlerName, Rule, TaskId, Tenant, Timestamp};

use super::MAX_PAGE_PAYLOAD_BYTES;
use crate::chains::ChainRegistry;
use crate::row::{ChainRow, QueueCounts, TaskPhase};

/// Data on which the views of all orders and queues depend: the chains, the rules, and the namespace of task ids.
#[derive(Debug)]
pub struct ViewEnvironment {
    pub chains: ChainRegistry,
    pub rules: Vec<Rule>,
    pub task_id_namespace: TaskIdNamespace,
}

/// Columns of the task of an order's current step; empty if the order has no task.
#[derive(Clone, Debug, Default)]
pub struct StepTaskColumns {
    pub phase: Option<TaskPhase>,
    pub due: Option<Timestamp>,
    pub retries: i64,
    pub handler: Option<HandlerName>,
    /// The task whose end suspended the order, and its error.
    pub suspending_task: Option<(TaskId, Option<String>)>,
}

impl ViewEnvironment {
    pub fn build_order_view(&self, order: Order, step: StepTaskColumns) -> OrderView {
        let StepTaskColumns { phase, due, retries, handler, suspending_task: failed_task } = step;
        let is_new = phase.is_some_and(|phase| phase.status() == TaskStatus::New);
        let due = due.filter(|_| is_new || phase == Some(TaskPhase::Missing));
        let task = match (order.task_seq, &handler, phase) {
            (Some(seq), Some(handler), Some(phase)) => {
                let id = TaskId::new(
                    handler.as_str(),
                    order.node.as_str(),
                    self.task_id_namespace.uuid_of_seq(seq),
                );
                Some((id, phase.status(), due))
            }
            (Some(_), None, _) | (Some(_), Some(_), None) | (None, _, _) => None,
        };
        let chain =
            self.chains.find_chain(&order.key.chain).and_then(|chain_row| chain_row.current_definition());
        OrderView {
            retry_at: due.filter(|_| is_new && retries > 0),
            is_at_removed_node: chain.is_none_or(|chain| chain.find_node(&order.node).is_none()),
            step_blocked_because: handler
                .filter(|_| !order.step_running)
                .and_then(|handler| self.describe_stop_or_rule(&order, &handler)),
            suspended_by_failed_task: failed_task
                .map(|(task, error)| (task, error.unwrap_or_else(|| "canceled".into()))),
            task,
            order,
        }
    }

    /// Describes the stop or the rule that keeps the waiting task of an order from running; `None` if there is none.
    fn describe_stop_or_rule(&self, order: &Order, handler: &HandlerName) -> Option<String> {
        let subject = QueueSubject::ChainNode { chain: order.key.chain.clone(), node: order.node.clone() };
        let describe_rule = || {
            let rule =
                self.rules.iter().find(|rule| rule.applies_to_queue(handler, &subject, &order.tenant))?;
            let Rule { kind, scope, set_by, reason, .. } = rule;
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            Some(format!(
                "a {} of the {} {} by {set_by}{reason}",
                kind.as_str(),
                scope.kind_name(),
                scope.name()
            ))
        };
        self.chains.describe_chain_or_node_stop(&subject).or_else(describe_rule)
    }

    /// Builds the view of a queue. `head_created_at` is the creation time of the task that would run next.
    pub fn build_queue_view(
        &self,
        handler: HandlerName,
        tenant: Tenant,
        subject: QueueSubject,
        counts: QueueCounts,
        head_created_at: Option<Timestamp>,
    ) -> QueueView {
        let to_count = |number: i64| number.max(0) as u64;
        let QueueCounts { ready, waiting, scheduled, running, halted, missing } = counts;
        QueueView {
            is_paused_or_blocked: self
                .rules
                .iter()
                .any(|rule| rule.applies_to_queue(&handler, &subject, &tenant))
                || self.chains.is_chain_or_node_stopped(&subject),
            handler,
            subject,
            tenant,
            ready_count: to_count(ready),
            waiting_count: to_count(waiting),
            scheduled_count: to_count(scheduled),
            running_count: to_count(running),
            halted_count: to_count(halted),
            missing_count: to_count(missing),
            next_ready_task_created_at: head_created_at.filter(|_| ready > 0),
        }
    }
}

/// Builds a page of orders from the orders that a reader passes to it, by key.
#[derive(Debug)]
pub struct OrderPageBuilder {
    limit: usize,
    page: OrderPage,
    payload_bytes: usize,
}

impl OrderPageBuilder {
    pub fn new(limit: usize, journal_range: JournalRange) -> Self {
        Self {
            limit,
            page: OrderPage { orders: Vec::new(), next_cursor: None, journal_range },
            payload_bytes: 0,
        }
    }

    /// Adds the next order if the page is not full; returns whether it was added.
    pub fn try_push_order(&mut self, view: OrderView) -> bool {
        if self.page.orders.len() >= self.limit || self.payload_bytes >= MAX_PAGE_PAYLOAD_BYTES {
            self.page.next_cursor = self.page.orders.last().map(|OrderView { order, .. }| OrderCursor {
                key: order.key.clone(),
                tenant: order.tenant.clone(),
            });
            return false;
        }
        self.payload_bytes += view.order.value.as_str().len();
        self.page.orders.push(view);
        true
    }

    pub fn into_page(self) -> OrderPage {
        self.page
    }
}

/// Returns the range of order keys that a path can match: the first key, and the end, which is excluded. Keys are
/// compared byte by byte.
pub fn order_key_range(path: &PathFilter) -> (String, String) {
    let prefix = match path {
        PathFilter::Everything => "/",
        PathFilter::Subtree(prefix)
        | PathFilter::ChildrenOf(prefix)
        | PathFilter::PathAndItsOrders(prefix) => prefix,
    };
    (prefix.to_string(), format!("{prefix}{}", char::MAX))
}

/// Columns of an order that statistics need.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderStatisticsColumns {
    pub is_started: bool,
    pub planned_at: Option<Timestamp>,
    pub is_suspended: bool,
    pub has_task: bool,
    /// Whether its task is locked: the step is running.
    pub is_running: bool,
    /// Whether its task is `new` and has had an attempt.
    pub is_retrying: bool,
}

/// Returns the statistics of a single order.
pub fn statistics_of_order(order: OrderStatisticsColumns, now: Timestamp) -> OrderStatistics {
    let OrderStatisticsColumns { is_started, planned_at, is_suspended, has_task, is_running, is_retrying } =
        order;
    OrderStatistics {
        total: 1,
        not_planned: u64::from(!is_started && planned_at.is_none()),
        planned: u64::from(!is_started && planned_at.is_some_and(|planned_at| planned_at > now)),
        due: u64::from(!is_started && planned_at.is_some_and(|planned_at| planned_at <= now)),
        started: is_started.into(),
        suspended: is_suspended.into(),
        in_task: has_task.into(),
        in_process: is_running.into(),
        setback: is_retrying.into(),
        ..OrderStatistics::default()
    }
}

/// Builds the view of a chain, with the number of orders at each node; `None` if it is undefined and has no orders.
pub fn build_chain_view(chain_row: ChainRow, orders: Vec<(ChainNodeId, u64)>) -> Option<ChainView> {
    let ChainRow { chain, is_defined, state } = chain_row;
    if !is_defined && orders.is_empty() {
        return None;
    }
    let nodes = if is_defined { chain.nodes } else { vec![] };
    Some(ChainView { chain: Chain { path: chain.path, nodes }, state, order_counts_by_node: orders })
}
