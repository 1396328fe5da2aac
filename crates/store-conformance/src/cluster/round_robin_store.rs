//! A store that sends each call to the next of three nodes. Behaviours of one node must also hold when their calls
//! are spread over several nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pointsman_core::chain::{self, ChainNodeAction, ChainPath, OrderKey};
use pointsman_core::engine_event::EngineEvent;
use pointsman_core::fire::Fire;
use pointsman_core::journal::{EventPage, JournalRange, PathFilter, Retention};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::*;
use pointsman_core::task::gates::Gate;
use pointsman_core::task::{Task, TaskCommandError, TaskSeq};
use pointsman_core::{
    EventId, HandlerName, ObjectKey, Rule, RuleKind, RuleScope, ScheduleName, TaskId, Tenant, Timestamp,
};

use super::TestCluster;
use crate::Harness;

const NODES_PER_STORE: usize = 3;

struct RoundRobinStore {
    nodes: Vec<Arc<dyn Store>>,
    call_count: AtomicUsize,
}

impl RoundRobinStore {
    fn take_next_node(&self) -> &dyn Store {
        &*self.nodes[self.call_count.fetch_add(1, Ordering::Relaxed) % self.nodes.len()]
    }
}

/// Implements a store trait by forwarding each method to the next node.
macro_rules! delegate_trait {
    ($of:ident { $($verb:ident($($name:ident: $kind:ty),*) -> $answer:ty;)* }) => {
        #[async_trait]
        impl $of for RoundRobinStore {
            $(async fn $verb(&self, $($name: $kind),*) -> Result<$answer> {
                self.take_next_node().$verb($($name),*).await
            })*
        }
    };
}

type StdResult<T, E> = std::result::Result<T, E>;

delegate_trait!(Journal {
    append(emissions: Vec<EmitBatch>, claim: Option<ClaimRequest>, now: Timestamp) -> (Vec<StdResult<EmitReceipt, IdempotencyError>>, ClaimResult);
    find_idempotency_record(idempotency: IdempotencyKey) -> StdResult<Option<String>, IdempotencyError>;
    insert_idempotency_record(idempotency: IdempotencyKey, answer: String, now: Timestamp) -> StdResult<IdempotencyRecord, IdempotencyError>;
    publish_engine_events(events: Vec<EngineEvent>, now: Timestamp) -> ();
    read_journal_range() -> JournalRange;
    read_events(read: JournalQuery) -> EventPage;
    read_event(id: EventId) -> Option<EventView>;
    read_object(tenant: &Tenant, key: &ObjectKey, limit: usize) -> Option<ObjectView>;
    prune(journal: Retention, history: Retention, objects: Duration, now: Timestamp) -> PruneReport;
});

delegate_trait!(Queue {
    schedule_tasks(ahead: usize, now: Timestamp) -> usize;
    claim_tasks(claim: ClaimRequest, now: Timestamp) -> ClaimResult;
    finish_attempts(endings: Vec<FinishedAttempt>, claim: Option<ClaimRequest>, now: Timestamp) -> (Vec<StdResult<FinishReceipt, TaskCommandError>>, ClaimResult);
    append_log_lines(lines: Vec<NewLogLine>) -> usize;
    renew_lease(task: TaskSeq, fence: i64, until: Timestamp) -> StdResult<(), TaskCommandError>;
    find_lost_attempts(held: Vec<(TaskSeq, i64)>) -> Vec<i64>;
    run_collection(run: NewCollectionRun, idempotency: Option<IdempotencyKey>, now: Timestamp) -> StdResult<CollectionRunReceipt, CollectionRunError>;
    rescue(sweep: RescueSweep, now: Timestamp) -> RescueReport;
});

delegate_trait!(Registry {
    register(registration: Registration, now: Timestamp) -> ();
    read_merged_registration() -> Registration;
    list_registrants() -> Vec<String>;
    read_server_clock() -> Option<Timestamp>;
    join_node(name: &str, now: Timestamp) -> NodeId;
    announce_capabilities(node: NodeId, capabilities: NodeCapabilities) -> ();
    list_nodes() -> Vec<NodeView>;
    record_heartbeat(node: NodeId, now: Timestamp) -> bool;
    remove_node(node: NodeId, now: Timestamp) -> ();
    set_rule(rule: Rule) -> ();
    lift_rule(kind: RuleKind, place: &RuleScope, tenant: Option<&Tenant>) -> bool;
    list_rules() -> Vec<Rule>;
    list_queues(handler: Option<&HandlerName>) -> Vec<QueueView>;
    append_audit_entry(entry: AuditEntry) -> ();
    list_audit_entries(before: Option<i64>, limit: usize) -> Vec<(i64, AuditEntry)>;
});

delegate_trait!(Tasks {
    read_task(id: &TaskId) -> Option<(Task, JournalRange)>;
    list_tasks(filter: TaskFilter, before: Option<TaskSeq>, limit: usize) -> TaskPage;
    read_logs(id: &TaskId, from: u64, limit: usize) -> Option<LogPage>;
    explain_waiting(id: &TaskId, now: Timestamp) -> Option<Vec<Gate>>;
    retry_tasks(tasks: Vec<TaskSeq>, now: Timestamp) -> Vec<StdResult<(), TaskCommandError>>;
    cancel_task(id: &TaskId, now: Timestamp) -> StdResult<(), TaskCommandError>;
    adopt_missing_tasks(handler: &HandlerName, now: Timestamp) -> u64;
    replay_events(handler: &HandlerName, from: EventId, now: Timestamp) -> ReplayReport;
});

delegate_trait!(Schedules {
    register_schedules(plans: Vec<ScheduleDef>, now: Timestamp) -> Vec<ScheduleProgress>;
    record_fires(firings: Vec<FireRequest>, now: Timestamp) -> Vec<(Fire, bool)>;
    mark_caught_up(schedule: &ScheduleName, up_to: Timestamp) -> ();
    list_fires(schedule: &ScheduleName, before: Option<Timestamp>, limit: usize) -> FirePage;
});

delegate_trait!(Orders {
    add_orders(batch: OrderBatch, now: Timestamp) -> StdResult<OrderReceipt, OrderBatchError>;
    read_order(tenant: &Tenant, key: &OrderKey) -> Option<(OrderView, JournalRange)>;
    list_orders(path: &PathFilter, tenant: Option<&Tenant>, after: Option<OrderCursor>, limit: usize) -> OrderPage;
    list_all_orders(path: &PathFilter, tenant: Option<&Tenant>) -> OrderPage;
    read_order_statistics(path: &PathFilter, tenant: Option<&Tenant>, now: Timestamp) -> (OrderStatistics, JournalRange);
    apply_order_command(tenant: &Tenant, key: &OrderKey, command: OrderCommand, now: Timestamp) -> StdResult<(), OrderError>;
    list_chains() -> (Vec<ChainView>, JournalRange);
    set_chain_stopped(chain: &ChainPath, stopped: bool, now: Timestamp) -> StdResult<(), OrderError>;
    set_chain_node_action(chain: &ChainPath, node: &chain::ChainNodeId, action: ChainNodeAction, now: Timestamp) -> StdResult<(), OrderError>;
});

impl Store for RoundRobinStore {
    fn add_listener(&self, listener: Arc<dyn StoreListener>) {
        self.nodes.iter().for_each(|node| node.add_listener(listener.clone()));
    }

    fn write_problem(&self) -> Option<String> {
        self.nodes.iter().find_map(|node| node.write_problem())
    }

    fn close(&self) {
        self.nodes.iter().for_each(|node| node.close());
    }
}

/// Opens each store as a round-robin store over three more nodes on the same location.
#[allow(missing_debug_implementations, reason = "a cluster need not have one")]
pub struct RoundRobinHarness<'c>(pub &'c dyn TestCluster);

impl RoundRobinHarness<'_> {
    async fn open_round_robin_store(&self, now: Timestamp) -> Arc<dyn Store> {
        let mut nodes = Vec::with_capacity(NODES_PER_STORE);
        for _ in 0..NODES_PER_STORE {
            nodes.push(self.0.open_empty(now).await);
        }
        Arc::new(RoundRobinStore { nodes, call_count: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Harness for RoundRobinHarness<'_> {
    async fn open_empty(&self, now: Timestamp) -> Arc<dyn Store> {
        self.open_round_robin_store(now).await
    }

    async fn reopen(&self, store: Arc<dyn Store>, now: Timestamp) -> Arc<dyn Store> {
        store.close();
        self.open_round_robin_store(now).await
    }
}
