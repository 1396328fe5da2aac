//! Three nodes run random operations concurrently. Afterwards the tables are consistent, and all remaining work can
//! be finished.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use futures::future::join_all;
use pointsman_core::store::{
    AttemptResult, ClaimedTask, FinishedAttempt, OrderCommand, RescueOptions, TaskFilter,
};
use pointsman_core::{Limits, RuleKind, TaskStatus, Tenant, Timestamp};
use pointsman_testing::Rng;

use super::{TestCluster, join_nodes};
use crate::fixture::*;

/// Number of different order ids: high enough that new orders are added during the whole walk.
const ORDER_ID_COUNT: usize = 240;
/// Number of random operations of each walker.
const OPERATIONS_PER_WALKER: usize = 500;
const WALKERS_PER_NODE: usize = 2;

const HANDLER_NAMES: [&str; 5] = ["audit", "batch", "check", "index", "notify"];
const EVENT_TYPES: [&str; 4] = ["record", "record.published", "note", "unrouted"];
const TENANTS: [&str; 3] = ["default", "shop", "club"];

fn base_registration() -> RegistrationBuilder {
    let two_tasks_per_object = Limits { concurrency_per_key: Some(2), ..Limits::default() };
    RegistrationBuilder::default()
        .route("record", &["audit"])
        .route("record.published", &["check!", "index!", "notify"])
        .route("note", &["notify", "index", "batch"])
        .halt_on_error("audit")
        .unordered("notify")
        .limits("notify", two_tasks_per_object)
        .concurrency_limit("batch", 2)
        .chain("/c", "a=first>b!x b=second>done x=first>done done")
}

/// State shared by all walkers.
struct SharedWalkState {
    clock_micros: AtomicI64,
    /// Running tasks of all nodes; any walker may finish any of them.
    running_tasks: Mutex<Vec<ClaimedTask>>,
}

impl SharedWalkState {
    fn advance_clock(&self) -> Timestamp {
        Timestamp::from_micros(self.clock_micros.fetch_add(1000, Ordering::Relaxed))
    }
}

struct RandomWalker<'w> {
    fixture: &'w StoreFixture<'w>,
    shared: &'w SharedWalkState,
    rng: Rng,
}

impl RandomWalker<'_> {
    async fn run_random_operations(mut self) {
        for _ in 0..OPERATIONS_PER_WALKER {
            match self.rng.next_below(100) {
                0..=27 => self.emit_random_events().await,
                28..=51 => self.claim_tasks().await,
                52..=77 => self.finish_random_attempt().await,
                78..=80 => self.retry_failed_task().await,
                81..=82 => self.cancel_random_task().await,
                83..=86 => self.set_or_lift_rule().await,
                87..=90 => self.add_random_order().await,
                91..=93 => self.send_random_order_command().await,
                94..=95 => {
                    expect_ok(
                        self.fixture
                            .store
                            .schedule_tasks_ahead(self.rng.next_below(6), self.shared.advance_clock())
                            .await,
                    );
                }
                96..=97 => drop(self.shared.clock_micros.fetch_add(3_000_000, Ordering::Relaxed)),
                98 => self.assert_nothing_to_rescue().await,
                _ => drop(expect_ok(self.fixture.store.read_merged_registration().await)),
            }
        }
    }

    async fn emit_random_events(&mut self) {
        let count = 1 + self.rng.next_below(3);
        let mut events = Vec::new();
        for _ in 0..count {
            let (kind, tenant_name) = (*self.rng.choose(&EVENT_TYPES), *self.rng.choose(&TENANTS));
            let mut new = new_event(kind).for_tenant(tenant_name);
            if self.rng.next_below(4) > 0 {
                new = new.with_key(&format!("object:{}", self.rng.next_below(12)));
            }
            if self.rng.next_below(8) == 0 {
                new = new.due_at(self.shared.advance_clock().plus(secs(2)));
            }
            events.push(new.with_priority(1 + 100 * self.rng.next_below(3) as i64));
        }
        let claim = (self.rng.next_below(3) == 0).then(|| self.fixture.claim_request(2));
        let (receipts, claims) = expect_ok(
            self.fixture.store.append(vec![new_emit_batch(events)], claim, self.shared.advance_clock()).await,
        );
        assert!(receipts.iter().all(Result::is_ok));
        self.shared.running_tasks.lock().expect("no lock holder has panicked").extend(claims.tasks);
    }

    async fn claim_tasks(&mut self) {
        let request = self.fixture.claim_request(1 + self.rng.next_below(3));
        let claims = expect_ok(self.fixture.store.claim_tasks(request, self.shared.advance_clock()).await);
        let mut running = self.shared.running_tasks.lock().expect("no lock holder has panicked");
        for task in claims.tasks {
            let before = running.iter().find(|other| other.seq == task.seq);
            assert!(
                before.is_none_or(|before| before.fence < task.fence),
                "{} runs under two fences",
                task.id
            );
            running.push(task);
        }
    }

    /// Takes one of the shared running tasks.
    fn take_running_task(&mut self) -> Option<ClaimedTask> {
        let mut running = self.shared.running_tasks.lock().expect("no lock holder has panicked");
        (!running.is_empty()).then(|| {
            let index = self.rng.next_below(running.len());
            running.swap_remove(index)
        })
    }

    /// Finishes an attempt that this or another node claimed. It may have been cancelled or rescued in the meantime.
    async fn finish_random_attempt(&mut self) {
        let Some(task) = self.take_running_task() else { return };
        let result = match self.rng.next_below(10) {
            0..=5 => success(),
            6 => retryable_failure(),
            7 => permanent_failure(),
            8 => AttemptResult::Snoozed { until: self.shared.advance_clock().plus(secs(1)) },
            _ => AttemptResult::Released,
        };
        let emits = match self.rng.next_below(6) {
            0 => vec![new_event("unrouted").with_key("object:1").caused_by(&task)],
            _ => vec![],
        };
        let logs = vec![info_log_line(self.shared.advance_clock(), "a log line"); self.rng.next_below(3)];
        let attempt =
            FinishedAttempt { emitted_events: emits, log_lines: logs, ..finished_attempt(&task, result) };
        let claim = (self.rng.next_below(2) == 0).then(|| self.fixture.claim_request(1));
        let (_, claims) = expect_ok(
            self.fixture.store.finish_attempts(vec![attempt], claim, self.shared.advance_clock()).await,
        );
        self.shared.running_tasks.lock().expect("no lock holder has panicked").extend(claims.tasks);
    }

    async fn retry_failed_task(&mut self) {
        let failed = TaskFilter { statuses: vec![TaskStatus::Error], ..TaskFilter::default() };
        let failed = expect_ok(self.fixture.store.list_tasks(failed, None, 20).await).tasks;
        if !failed.is_empty() {
            let task = self.rng.choose(&failed).seq;
            // Another walker may have retried it already, and a step is retried through its order.
            let _ = expect_ok(self.fixture.store.retry_tasks(vec![task], self.shared.advance_clock()).await);
        }
    }

    async fn cancel_random_task(&mut self) {
        let unfinished =
            TaskFilter { statuses: vec![TaskStatus::New, TaskStatus::Locked], ..TaskFilter::default() };
        let unfinished = expect_ok(self.fixture.store.list_tasks(unfinished, None, 40).await).tasks;
        if !unfinished.is_empty() {
            let _ = expect_ok(
                self.fixture
                    .store
                    .cancel_task(&self.rng.choose(&unfinished).id, self.shared.advance_clock())
                    .await,
            );
        }
    }

    /// Sets a rule or lifts one.
    async fn set_or_lift_rule(&mut self) {
        let (name, tenant_name) = (*self.rng.choose(&HANDLER_NAMES), *self.rng.choose(&TENANTS));
        let rule = self.fixture.new_rule(
            RuleKind::Pause,
            name,
            (self.rng.next_below(2) == 0).then_some(tenant_name),
        );
        match self.rng.next_below(3) {
            0 => expect_ok(self.fixture.store.set_rule(rule).await),
            _ => {
                let tenant: Option<&Tenant> = rule.tenant.as_ref();
                expect_ok(self.fixture.store.lift_rule(rule.kind, &rule.scope, tenant).await);
            }
        }
    }

    async fn add_random_order(&mut self) {
        let new = new_order(&format!("/c,{}", self.rng.next_below(ORDER_ID_COUNT))).with_value("0");
        // The id may be in use or used up: an order id runs once.
        let _ = expect_ok(self.fixture.store.add_orders(vec![new].into(), self.shared.advance_clock()).await);
    }

    async fn send_random_order_command(&mut self) {
        let key = order_key(&format!("/c,{}", self.rng.next_below(ORDER_ID_COUNT)));
        let command = match self.rng.next_below(5) {
            0 => OrderCommand::Suspend,
            1 | 2 => OrderCommand::Resume,
            3 => move_order_command("b"),
            _ => OrderCommand::Remove,
        };
        let tenant = Tenant::default();
        let _ = expect_ok(
            self.fixture.store.apply_order_command(&tenant, &key, command, self.shared.advance_clock()).await,
        );
    }

    /// Sends a heartbeat and asserts that a rescue finds nothing: with this long lease no node has expired.
    async fn assert_nothing_to_rescue(&mut self) {
        expect_ok(
            self.fixture.store.record_heartbeat(self.fixture.node_id, self.shared.advance_clock()).await,
        );
        let rescued = expect_ok(
            self.fixture
                .store
                .rescue_tasks(RescueOptions::full_sweep(secs(100_000)), self.shared.advance_clock())
                .await,
        );
        assert!(rescued.freed_tasks_with_status.is_empty() && rescued.marked_missing_count == 0);
    }
}

/// Lifts all rules and finishes all remaining tasks and orders.
async fn finish_remaining_work(nodes: &mut [StoreFixture<'_>], shared: SharedWalkState) {
    let now = shared.advance_clock().plus(secs(3600));
    nodes.iter_mut().for_each(|node| node.now = now);
    for rule in expect_ok(nodes[0].store.list_rules().await) {
        expect_ok(nodes[0].store.lift_rule(rule.kind, &rule.scope, rule.tenant.as_ref()).await);
    }
    for (task, n) in
        shared.running_tasks.into_inner().expect("no lock holder has panicked").into_iter().zip(0..)
    {
        // The finish of a task that was cancelled while it was running is refused.
        let _ = nodes[n % nodes.len()].finish_attempt(finished_attempt(&task, success())).await;
    }
    for view in nodes[1].list_orders("/").await {
        nodes[2]
            .send_order_command(&view.order.key.to_string(), OrderCommand::Resume)
            .await
            .expect("the command is accepted");
    }
    loop {
        // Permanently failed tasks of a halting handler block their lanes, so all failed tasks are retried.
        let halted = TaskFilter { statuses: vec![TaskStatus::Error], ..TaskFilter::default() };
        let halted = nodes[0].list_tasks(&halted).await.into_iter().map(|task| task.seq).collect::<Vec<_>>();
        for (chunk, n) in halted.chunks(50).zip(0..) {
            nodes[n % nodes.len()].retry_tasks(chunk).await;
        }
        let mut ran = 0;
        for node in nodes.iter() {
            for task in node.claim(50).await {
                node.succeed(&task).await;
                ran += 1;
            }
        }
        if ran == 0 {
            return;
        }
    }
}

async fn run_cluster_walk(cluster: &dyn TestCluster, seed: u64) {
    let mut nodes: [_; 3] = join_nodes(cluster, base_registration()).await;
    let shared = SharedWalkState {
        clock_micros: AtomicI64::new(START_TIME.micros()),
        running_tasks: Mutex::default(),
    };
    let walkers =
        nodes.iter().flat_map(|fixture| [fixture; WALKERS_PER_NODE]).zip(0..).map(|(fixture, n)| {
            RandomWalker { fixture, shared: &shared, rng: Rng::new(seed * 100 + n) }.run_random_operations()
        });
    join_all(walkers).await;
    cluster.assert_consistent().await;
    finish_remaining_work(&mut nodes, shared).await;
    cluster.assert_consistent().await;
    let unfinished = vec![TaskStatus::New, TaskStatus::Scheduled, TaskStatus::Locked, TaskStatus::Missing];
    let left = nodes[0].list_tasks(&TaskFilter { statuses: unfinished, ..TaskFilter::default() }).await;
    assert!(left.is_empty(), "{} are stuck: {:?}", left.len(), left.first());
    assert!(nodes[0].list_orders("/").await.is_empty());
    let queues = expect_ok(nodes[2].store.list_queues(None).await);
    assert!(queues.is_empty(), "{queues:?}");
}

pub async fn a_random_walk_of_three_nodes_leaves_the_store_consistent(cluster: &dyn TestCluster) {
    run_cluster_walk(cluster, 1).await;
}

pub async fn a_second_random_walk_of_three_nodes_leaves_the_store_consistent(cluster: &dyn TestCluster) {
    run_cluster_walk(cluster, 20_261_115).await;
}
