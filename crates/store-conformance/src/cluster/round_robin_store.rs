//! A store that sends each call to the next of three nodes. Behaviours of one node must also hold when their calls
//! are spread over several nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pointsman_core::chain::{self, Action, ChainPath, OrderKey};
use pointsman_core::engine_event::EngineEvent;
use pointsman_core::fire::Fire;
use pointsman_core::journal::{Extent, Page, PathFilter, Retention};
use pointsman_core::order::OrderStatistics;
use pointsman_core::store::*;
use pointsman_core::task::why::Gate;
use pointsman_core::task::{Rejected, Task, TaskSeq};
use pointsman_core::{
    EventId, HandlerName, ObjectKey, Place, Rule, RuleKind, ScheduleName, TaskId, Tenant, Timestamp,
};

use super::TestCluster;
use crate::Harness;

const NODES_PER_STORE: usize = 3;

struct RoundRobinStore {
    nodes: Vec<Arc<dyn Store>>,
    next_node: AtomicUsize,
}

impl RoundRobinStore {
    fn next_store(&self) -> &dyn Store {
        &*self.nodes[self.next_node.fetch_add(1, Ordering::Relaxed) % self.nodes.len()]
    }
}

/// Implements a store trait by forwarding each method to the next node.
macro_rules! delegate_trait {
    ($of:ident { $($verb:ident($($name:ident: $kind:ty),*) -> $answer:ty;)* }) => {
        #[async_trait]
        impl $of for RoundRobinStore {
            $(async fn $verb(&self, $($name: $kind),*) -> Result<$answer> {
                self.next_store().$verb($($name),*).await
            })*
        }
    };
}

type StdResult<T, E> = std::result::Result<T, E>;

delegate_trait!(Journal {
    append(emissions: Vec<Emission>, claim: Option<Claim>, now: Timestamp) -> (Vec<StdResult<Receipt, Refused>>, Claims);
    recorded_answer(idempotency: Idempotency) -> StdResult<Option<String>, Refused>;
    record_answer(idempotency: Idempotency, answer: String, now: Timestamp) -> StdResult<RecordedAnswer, Refused>;
    tell(events: Vec<EngineEvent>, now: Timestamp) -> ();
    extent() -> Extent;
    read(read: Read) -> Page;
    event(id: EventId) -> Option<EventView>;
    object(tenant: &Tenant, key: &ObjectKey, limit: usize) -> Option<ObjectView>;
    prune(journal: Retention, history: Retention, objects: Duration, now: Timestamp) -> Pruned;
});

delegate_trait!(Queue {
    schedule(ahead: usize, now: Timestamp) -> usize;
    claim(claim: Claim, now: Timestamp) -> Claims;
    finish(endings: Vec<Ending>, claim: Option<Claim>, now: Timestamp) -> (Vec<StdResult<Finished, Rejected>>, Claims);
    log(lines: Vec<NewLogLine>) -> usize;
    renew(task: TaskSeq, fence: i64, until: Timestamp) -> StdResult<(), Rejected>;
    lost(held: Vec<(TaskSeq, i64)>) -> Vec<i64>;
    run(run: NewRun, idempotency: Option<Idempotency>, now: Timestamp) -> StdResult<RunTask, RunRefused>;
    rescue(sweep: Sweep, now: Timestamp) -> Rescued;
});

delegate_trait!(Registry {
    register(registration: Registration, now: Timestamp) -> ();
    registration() -> Registration;
    registrants() -> Vec<String>;
    read_clock() -> Option<Timestamp>;
    join(name: &str, now: Timestamp) -> NodeId;
    announce(node: NodeId, abilities: Abilities) -> ();
    nodes() -> Vec<NodeView>;
    heartbeat(node: NodeId, now: Timestamp) -> bool;
    leave(node: NodeId, now: Timestamp) -> ();
    hold(rule: Rule) -> ();
    release(kind: RuleKind, place: &Place, tenant: Option<&Tenant>) -> bool;
    rules() -> Vec<Rule>;
    queues(handler: Option<&HandlerName>) -> Vec<QueueView>;
    note(deed: Deed) -> ();
    deeds(before: Option<i64>, limit: usize) -> Vec<(i64, Deed)>;
});

delegate_trait!(Tasks {
    task(id: &TaskId) -> Option<(Task, Extent)>;
    tasks(filter: TaskFilter, before: Option<TaskSeq>, limit: usize) -> TaskPage;
    logs(id: &TaskId, from: u64, limit: usize) -> Option<LogPage>;
    why(id: &TaskId, now: Timestamp) -> Option<Vec<Gate>>;
    retry(tasks: Vec<TaskSeq>, now: Timestamp) -> Vec<StdResult<(), Rejected>>;
    cancel(id: &TaskId, now: Timestamp) -> StdResult<(), Rejected>;
    adopt(handler: &HandlerName, now: Timestamp) -> u64;
    replay(handler: &HandlerName, from: EventId, now: Timestamp) -> Replayed;
});

delegate_trait!(Schedules {
    plan(plans: Vec<Plan>, now: Timestamp) -> Vec<Standing>;
    settle(firings: Vec<Firing>, now: Timestamp) -> Vec<(Fire, bool)>;
    made_up(schedule: &ScheduleName, up_to: Timestamp) -> ();
    fires(schedule: &ScheduleName, before: Option<Timestamp>, limit: usize) -> FirePage;
});

delegate_trait!(Orders {
    add_orders(batch: OrderBatch, now: Timestamp) -> StdResult<OrderReceipt, OrdersRefused>;
    order(tenant: &Tenant, key: &OrderKey) -> Option<(OrderView, Extent)>;
    orders(path: &PathFilter, tenant: Option<&Tenant>, after: Option<OrderCursor>, limit: usize) -> OrderPage;
    all_orders(path: &PathFilter, tenant: Option<&Tenant>) -> OrderPage;
    order_statistics(path: &PathFilter, tenant: Option<&Tenant>, now: Timestamp) -> (OrderStatistics, Extent);
    steer_order(tenant: &Tenant, key: &OrderKey, command: OrderCommand, now: Timestamp) -> StdResult<(), OrderRefused>;
    chains() -> (Vec<ChainView>, Extent);
    stop_chain(chain: &ChainPath, stopped: bool, now: Timestamp) -> StdResult<(), OrderRefused>;
    set_node(chain: &ChainPath, node: &chain::NodeId, action: Action, now: Timestamp) -> StdResult<(), OrderRefused>;
});

impl Store for RoundRobinStore {
    fn listen(&self, listener: Arc<dyn Listener>) {
        self.nodes.iter().for_each(|node| node.listen(listener.clone()));
    }

    fn trouble(&self) -> Option<String> {
        self.nodes.iter().find_map(|node| node.trouble())
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
        Arc::new(RoundRobinStore { nodes, next_node: AtomicUsize::new(0) })
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
