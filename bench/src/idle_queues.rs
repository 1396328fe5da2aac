//! Measures whether queues without runnable tasks make claims slower.
//!
//! The store is in memory, so that no disk hides the cost of a claim itself.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::{HandlerDef, HandlerName, NewEvent, Rule, RuleKind, RuleScope, Tenant};
use pointsman_store_sqlite::Sqlite;

use crate::BenchOptions;
use crate::claiming_node::{self, ClaimingNode, TASKS_PER_CLAIM};
use crate::report::{Figure, MeasurementUnit, percentile};

const BUSY_HANDLER: &str = "working";
/// The number of handlers that the other queues belong to, each with as many tenants as needed.
const OTHER_HANDLER_COUNT: usize = 100;
const ROUNDS: usize = 1_000;

/// The state of the other queues.
#[derive(Clone, Copy, PartialEq)]
enum OtherQueueState {
    /// There are no other queues. As many tasks have run before, so that both stores differ only in the queues.
    Absent,
    /// The other queues had tasks, and are empty now.
    Idle,
    /// The tasks of half of the other queues are due tomorrow; the other half is paused by rules.
    PausedOrNotDue,
}

pub(crate) async fn measure(options: &BenchOptions) -> anyhow::Result<Vec<Figure>> {
    let alone = new_node_with_other_queues(OtherQueueState::Absent, options.idle_queue_count).await?;
    let idle = new_node_with_other_queues(OtherQueueState::Idle, options.idle_queue_count).await?;
    let waiting =
        new_node_with_other_queues(OtherQueueState::PausedOrNotDue, options.idle_queue_count).await?;
    let mut times_ms = [vec![], vec![], vec![]];
    for round in 0..ROUNDS {
        // The order rotates, so that each node is first equally often.
        for offset in 0..times_ms.len() {
            let which = (round + offset) % times_ms.len();
            let node = [&alone, &idle, &waiting][which];
            times_ms[which].push(node.time_claim_and_finish(TASKS_PER_CLAIM).await?.claim_seconds * 1000.0);
        }
    }
    let [alone, idle, waiting] = times_ms.map(|mut samples| percentile(&mut samples, 0.5));
    let figure = |other_queues_label: &str, median_ms: f64| {
        let name = format!(
            "claim of {TASKS_PER_CLAIM} tasks in memory, with {} {other_queues_label}, p50",
            options.idle_queue_count
        );
        Figure::new(name, median_ms, MeasurementUnit::Milliseconds)
            .with_comparison("without them, p50", alone)
            .with_max_ratio(1.1)
    };
    Ok(vec![figure("idle queues", idle), figure("queues that are paused or not yet due", waiting)])
}

/// Creates a store with one busy queue and these other queues, and joins it as a node.
async fn new_node_with_other_queues(others: OtherQueueState, queues: usize) -> anyhow::Result<ClaimingNode> {
    let handlers = if others == OtherQueueState::Absent { 0 } else { OTHER_HANDLER_COUNT };
    let names = (0..handlers).map(|n| format!("other.{n}")).chain([BUSY_HANDLER.to_owned()]);
    let defs = names.map(|name| Ok(HandlerDef::new(HandlerName::new(name)?)));
    let store = Arc::new(Sqlite::in_memory(pointsman_engine::machine_clock_now())?);
    let node = ClaimingNode::register_and_join(store, defs.collect::<anyhow::Result<_>>()?).await?;
    match others {
        OtherQueueState::Absent => {
            let events = (0..queues)
                .map(|n| claiming_node::new_event_for_handler(BUSY_HANDLER, &Tenant::default(), n));
            claiming_node::append_events(node.store(), events).await?;
            node.claim_and_finish_all_ready_tasks().await?;
        }
        OtherQueueState::Idle => {
            claiming_node::append_events(node.store(), (0..queues).map(other_queue_event)).await?;
            node.claim_and_finish_all_ready_tasks().await?;
        }
        OtherQueueState::PausedOrNotDue => {
            for n in (1..OTHER_HANDLER_COUNT).step_by(2) {
                node.store().set_rule(other_handler_pause_rule(n)?).await?;
            }
            let tomorrow = pointsman_engine::machine_clock_now().plus(Duration::from_secs(24 * 3600));
            let events = (0..queues).map(|n| {
                let delayed = (n % OTHER_HANDLER_COUNT).is_multiple_of(2);
                other_queue_event(n).map(|event| NewEvent { due: delayed.then_some(tomorrow), ..event })
            });
            claiming_node::append_events(node.store(), events).await?;
        }
    }
    let work = (0..ROUNDS * TASKS_PER_CLAIM)
        .map(|n| claiming_node::new_event_for_handler(BUSY_HANDLER, &Tenant::default(), n));
    claiming_node::append_events(node.store(), work).await?;
    Ok(node)
}

/// Returns the event that creates the n-th of the other queues.
fn other_queue_event(n: usize) -> anyhow::Result<NewEvent> {
    let tenant = Tenant::new(format!("tenant-{}", n / OTHER_HANDLER_COUNT))?;
    claiming_node::new_event_for_handler(&format!("other.{}", n % OTHER_HANDLER_COUNT), &tenant, n)
}

/// Returns a rule that pauses the n-th of the other handlers.
fn other_handler_pause_rule(n: usize) -> anyhow::Result<Rule> {
    Ok(Rule {
        kind: RuleKind::Pause,
        scope: RuleScope::Handler(HandlerName::new(format!("other.{n}"))?),
        tenant: None,
        set_by: "bench".into(),
        reason: String::new(),
        since: pointsman_engine::machine_clock_now(),
    })
}
