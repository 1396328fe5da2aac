//! A long random history, compared with a model after every step.
//!
//! The other behaviours test known cases. A random walk tests combinations of them: it emits, claims, finishes, sets
//! rules, retries, cancels, loses handlers and nodes, prunes and restarts at random, and compares the store with the
//! `model` after each step. Finally it runs all remaining tasks, which finds tasks that got stuck.
//!
//! A walk is determined by its seed, which a failure prints together with the last steps.

mod model;
mod model_checks;
mod operator_steps;
mod producer_and_worker_steps;

use std::collections::BTreeSet;

use pointsman_core::store::{ClaimedTask, EmitBatch, EmitReceipt, FinishedAttempt, NodeId};
use pointsman_core::task::{TaskCommand, TaskState};
use pointsman_core::{Limits, RuleKind, TaskStatus};
use pointsman_testing::Rng;

use crate::Harness;
use crate::fixture::*;
use model::StoreModel;

/// Number of steps of a walk.
const STEP_COUNT: usize = 700;

/// The handlers: one that halts, one limited to two tasks, one that is synchronous, one that is synchronous for some
/// events, one that is unordered and limited to two tasks per object, one pulled by workers, and two sources.
const HANDLER_NAMES: [&str; 8] = ["audit", "batch", "check", "crm", "index", "notify", "remote", "shop"];

/// The collections of the two sources.
const SOURCE_COLLECTIONS: [&str; 3] = ["crm/people", "shop/items", "shop/orders"];

fn base_registration() -> RegistrationBuilder {
    let two_tasks_per_object = Limits { concurrency_per_key: Some(2), ..Limits::default() };
    RegistrationBuilder::default()
        .route("record", &["audit", "remote"])
        .route("record.published", &["check!", "index!", "notify"])
        .route("note", &["notify", "index", "batch"])
        .halt_on_error("audit")
        .unordered("notify")
        .limits("notify", two_tasks_per_object)
        .concurrency_limit("batch", 2)
        .pulled_by_workers("remote")
        .collection("crm/people", 300)
        .collection("shop/items", 500)
        .collection("shop/orders", 100)
}

struct RandomWalk<'h> {
    fixture: StoreFixture<'h>,
    model: StoreModel,
    rng: Rng,
    step_log: StepLog,
    /// Two nodes that claim; a crash replaces one of them.
    node_ids: [NodeId; 2],
    /// All tasks claimed so far, finished or not; the walk also finishes attempts of tasks that it has lost.
    claimed_tasks: Vec<ClaimedTask>,
    /// Emit batches with an idempotency key, and their receipts.
    idempotent_batches_and_receipts: Vec<(EmitBatch, EmitReceipt)>,
    /// Handlers that are currently not registered.
    undefined_handlers: BTreeSet<&'static str>,
    /// The highest fence so far.
    highest_fence: i64,
}

pub async fn a_random_walk_matches_the_model(harness: &dyn Harness) {
    for seed in 1..=read_walk_count_from_env() {
        run_seeded_walk(harness, seed).await;
    }
}

pub async fn a_second_random_walk_matches_the_model(harness: &dyn Harness) {
    run_seeded_walk(harness, 20_260_131).await;
}

pub async fn a_third_random_walk_matches_the_model(harness: &dyn Harness) {
    run_seeded_walk(harness, 0xC0FF_EE00).await;
}

/// Reads the number of walks to run from the environment: `POINTSMAN_WALKS=1000` runs a thousand. Default: one.
fn read_walk_count_from_env() -> u64 {
    std::env::var("POINTSMAN_WALKS").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Runs one walk. It must pass with any seed; the suite runs a few.
pub async fn run_seeded_walk(harness: &dyn Harness, seed: u64) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let second = expect_ok(fixture.store.join_node("second", fixture.now).await);
    let mut walk = RandomWalk {
        node_ids: [fixture.node_id, second],
        fixture,
        model: StoreModel::new(base_registration()),
        rng: Rng::new(seed),
        step_log: StepLog { seed, steps: Vec::new() },
        claimed_tasks: Vec::new(),
        idempotent_batches_and_receipts: Vec::new(),
        undefined_handlers: BTreeSet::new(),
        highest_fence: i64::MIN,
    };
    for n in 1..=STEP_COUNT {
        walk = walk.run_random_step().await;
        if n % 25 == 0 {
            walk.check_lanes().await;
        }
        if n % 100 == 0 {
            walk.check_tasks().await;
            walk.check_journal().await;
        }
    }
    walk.run_remaining_tasks().await;
}

impl RandomWalk<'_> {
    /// Lifts everything that blocks tasks and runs the rest; afterwards none may be left.
    async fn run_remaining_tasks(&mut self) {
        self.step_log.add("run remaining tasks".into());
        self.fixture.node_id = self.node_ids[0];
        self.fixture.register(base_registration()).await;
        self.undefined_handlers.clear();
        for rule in std::mem::take(&mut self.model.rules) {
            assert!(expect_ok(
                self.fixture.store.lift_rule(rule.kind, &rule.scope, rule.tenant.as_ref()).await
            ));
        }
        for name in HANDLER_NAMES {
            self.adopt_missing_tasks(name).await;
        }
        while !self.model.active_tasks.is_empty() {
            self.succeed_running_tasks().await;
            for seq in self.model.active_tasks_with_status(TaskStatus::Error) {
                let id = self.model.tasks[&seq].id.clone();
                assert_eq!(self.fixture.retry_task(&id).await, Ok(()));
                self.model.apply_command(seq, TaskCommand::Retry, self.fixture.now).expect("it is halted");
            }
            for name in ["crm", "shop"] {
                self.adopt_missing_tasks(name).await;
            }
            let (mut idle, mut next) = (true, None);
            for claim in
                [self.fixture.claim_request(50), self.fixture.pull_worker_claim_request(&["remote"], 50)]
            {
                let claims = expect_ok(self.fixture.store.claim_tasks(claim.clone(), self.fixture.now).await);
                self.check_claim_result(&claim, &claims);
                self.check_queue_counters(&claim.handlers).await;
                idle &= claims.tasks.is_empty();
                next = [next, claims.next_task_due_at].into_iter().flatten().min();
            }
            match next.filter(|_| idle) {
                Some(due) => self.fixture.now = due,
                None => {
                    assert!(
                        !idle || self.model.active_tasks.is_empty(),
                        "stuck: {:?}",
                        self.model.active_tasks
                    )
                }
            }
        }
        self.check_tasks().await;
        self.check_lanes().await;
        self.check_attempts().await;
        self.check_journal().await;
        assert!(self.fixture.claim(10).await.is_empty());
        assert!(self.fixture.claim_as_pull_worker(&["remote"], 10).await.is_empty());
    }

    /// Finishes every running attempt successfully.
    async fn succeed_running_tasks(&mut self) {
        let mut attempts = Vec::new();
        for seq in self.model.active_tasks_with_status(TaskStatus::Locked) {
            if let TaskState::Locked(lease) = self.model.tasks[&seq].lifecycle.state {
                let (emits, logs) = (vec![], vec![]);
                attempts.push(FinishedAttempt {
                    task_seq: seq,
                    fence: lease.fence,
                    result: success(),
                    target_health: None,
                    emitted_events: emits,
                    log_lines: logs,
                });
                self.model
                    .apply_command(seq, TaskCommand::Succeed { fence: lease.fence }, self.fixture.now)
                    .expect("it runs");
            }
        }
        assert!(self.fixture.finish_attempts(attempts).await.iter().all(Result::is_ok));
    }
}

/// The steps so far, printed when the walk fails.
struct StepLog {
    seed: u64,
    steps: Vec<String>,
}

impl StepLog {
    fn add(&mut self, step: String) {
        self.steps.push(step);
    }
}

impl Drop for StepLog {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let shown = self.steps.len().saturating_sub(12);
            eprintln!("the walk with seed {} failed at step {}:", self.seed, self.steps.len());
            for (n, step) in self.steps.iter().enumerate().skip(shown) {
                eprintln!("  {:>4}  {step}", n + 1);
            }
        }
    }
}

/// Returns a random rule kind.
fn random_rule_kind(rng: &mut Rng) -> RuleKind {
    if rng.chance_percent(50) { RuleKind::Pause } else { RuleKind::Block }
}
