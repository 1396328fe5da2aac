//! A store that forwards each call to one of several stores, for tests that choose the store for each call or run code
//! before a call.

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

/// Forwards each call to the store that a function selects. Listeners are added to all of its stores, and closing it
/// closes all of them.
#[allow(missing_debug_implementations, reason = "a store need not have one")]
pub struct DispatchingStore {
    stores: Vec<Arc<dyn Store>>,
    /// Called before each call with the name of its method; returns the index of the store that gets the call.
    select_store: Box<dyn Fn(&'static str) -> usize + Send + Sync>,
}

impl DispatchingStore {
    /// Forwards each call to the next store.
    pub fn round_robin(stores: Vec<Arc<dyn Store>>) -> Arc<dyn Store> {
        let (call_count, len) = (AtomicUsize::new(0), stores.len());
        let select_store = Box::new(move |_: &'static str| call_count.fetch_add(1, Ordering::Relaxed) % len);
        Arc::new(Self { stores, select_store })
    }

    /// Forwards each call to one store, after `before_call` was called with the name of its method.
    pub fn with_hook_before_calls(
        store: Arc<dyn Store>,
        before_call: impl Fn(&'static str) + Send + Sync + 'static,
    ) -> Arc<dyn Store> {
        let select_store = Box::new(move |method: &'static str| {
            before_call(method);
            0
        });
        Arc::new(Self { stores: vec![store], select_store })
    }

    fn store_for_call(&self, method: &'static str) -> &dyn Store {
        &*self.stores[(self.select_store)(method)]
    }
}

/// Implements a store trait by forwarding each method.
macro_rules! dispatch_trait {
    ($store_trait:ident { $($method:ident($($arg:ident: $arg_type:ty),*) -> $output:ty;)* }) => {
        #[async_trait]
        impl $store_trait for DispatchingStore {
            $(async fn $method(&self, $($arg: $arg_type),*) -> StoreResult<$output> {
                self.store_for_call(stringify!($method)).$method($($arg),*).await
            })*
        }
    };
}

dispatch_trait!(Journal {
    append(batches: Vec<EmitBatch>, claim: Option<ClaimRequest>, now: Timestamp) -> (Vec<Result<EmitReceipt, IdempotencyError>>, ClaimResult);
    find_idempotent_response(idempotency: IdempotencyKey) -> Result<Option<String>, IdempotencyError>;
    record_idempotent_response(idempotency: IdempotencyKey, response: String, now: Timestamp) -> Result<IdempotencyRecord, IdempotencyError>;
    publish_engine_events(events: Vec<EngineEvent>, now: Timestamp) -> ();
    read_journal_range() -> JournalRange;
    read_events(query: JournalQuery) -> EventPage;
    read_event(id: EventId) -> Option<EventView>;
    read_object(tenant: &Tenant, key: &ObjectKey, limit: usize) -> Option<ObjectView>;
    prune_events_tasks_and_objects(journal: Retention, history: Retention, objects: Duration, now: Timestamp) -> PruneReport;
});

dispatch_trait!(TaskQueue {
    schedule_tasks_ahead(limit: usize, now: Timestamp) -> usize;
    claim_tasks(claim: ClaimRequest, now: Timestamp) -> ClaimResult;
    finish_attempts(attempts: Vec<FinishedAttempt>, claim: Option<ClaimRequest>, now: Timestamp) -> (Vec<Result<FinishReceipt, TaskCommandError>>, ClaimResult);
    append_log_lines(lines: Vec<AttemptLogLine>) -> usize;
    renew_pull_worker_lease(task: TaskSeq, fence: i64, until: Timestamp) -> Result<(), TaskCommandError>;
    find_lost_attempts(attempts: Vec<(TaskSeq, i64)>) -> Vec<i64>;
    run_collection(run: NewCollectionRun, idempotency: Option<IdempotencyKey>, now: Timestamp) -> Result<CollectionRunReceipt, CollectionRunError>;
    rescue_tasks(sweep: RescueOptions, now: Timestamp) -> RescueReport;
});

dispatch_trait!(Registry {
    register_definitions(registration: Registration, now: Timestamp) -> ();
    read_merged_registration() -> Registration;
    list_registration_names() -> Vec<String>;
    read_store_server_clock() -> Option<Timestamp>;
    join_node(name: &str, now: Timestamp) -> NodeId;
    store_node_capabilities(node: NodeId, capabilities: NodeCapabilities) -> ();
    list_nodes() -> Vec<NodeView>;
    record_heartbeat(node: NodeId, now: Timestamp) -> bool;
    remove_node(node: NodeId, now: Timestamp) -> ();
    set_rule(rule: Rule) -> ();
    lift_rule(kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> bool;
    list_rules() -> Vec<Rule>;
    list_queues(handler: Option<&HandlerName>) -> Vec<QueueView>;
    append_audit_entry(entry: AuditEntry) -> ();
    list_audit_entries(before: Option<i64>, limit: usize) -> Vec<(i64, AuditEntry)>;
});

dispatch_trait!(Tasks {
    read_task(id: &TaskId) -> Option<(Task, JournalRange)>;
    list_tasks(filter: TaskFilter, before: Option<TaskSeq>, limit: usize) -> TaskPage;
    read_logs(id: &TaskId, from: u64, limit: usize) -> Option<LogPage>;
    explain_waiting(id: &TaskId, now: Timestamp) -> Option<Vec<Gate>>;
    retry_tasks(tasks: Vec<TaskSeq>, now: Timestamp) -> Vec<Result<(), TaskCommandError>>;
    cancel_task(id: &TaskId, now: Timestamp) -> Result<(), TaskCommandError>;
    adopt_missing_tasks(handler: &HandlerName, now: Timestamp) -> u64;
    replay_events(handler: &HandlerName, from: EventId, now: Timestamp) -> ReplayReport;
});

dispatch_trait!(Schedules {
    register_schedules(definitions: Vec<ScheduleDef>, now: Timestamp) -> Vec<ScheduleProgress>;
    execute_fire_requests(requests: Vec<FireRequest>, now: Timestamp) -> Vec<(Fire, bool)>;
    mark_caught_up(schedule: &ScheduleName, up_to: Timestamp) -> ();
    list_fires(schedule: &ScheduleName, before: Option<Timestamp>, limit: usize) -> FirePage;
});

dispatch_trait!(Orders {
    add_orders(batch: OrderBatch, now: Timestamp) -> Result<OrderBatchReceipt, OrderBatchError>;
    read_order(tenant: &Tenant, key: &OrderKey) -> Option<(OrderView, JournalRange)>;
    list_orders(path: &PathFilter, tenant: Option<&Tenant>, after: Option<OrderCursor>, limit: usize) -> OrderPage;
    list_all_orders_without_values(path: &PathFilter, tenant: Option<&Tenant>) -> OrderPage;
    read_order_statistics(path: &PathFilter, tenant: Option<&Tenant>, now: Timestamp) -> (OrderStatistics, JournalRange);
    apply_order_command(tenant: &Tenant, key: &OrderKey, command: OrderCommand, now: Timestamp) -> Result<(), OrderError>;
    list_chains() -> (Vec<ChainView>, JournalRange);
    set_chain_stopped(chain: &ChainPath, stopped: bool, now: Timestamp) -> Result<(), OrderError>;
    set_chain_node_action(chain: &ChainPath, node: &chain::ChainNodeId, action: ChainNodeAction, now: Timestamp) -> Result<(), OrderError>;
});

impl Store for DispatchingStore {
    fn add_listener(&self, listener: Arc<dyn StoreListener>) {
        self.stores.iter().for_each(|store| store.add_listener(listener.clone()));
    }

    fn describe_write_problem(&self) -> Option<String> {
        self.stores.iter().find_map(|store| store.describe_write_problem())
    }

    fn close(&self) {
        self.stores.iter().for_each(|store| store.close());
    }
}
