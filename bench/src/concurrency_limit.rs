//! Measures the cost of a concurrency limit, with few and with many queues behind it.
//!
//! The limited handler may run sixteen tasks at a time, and each claim requests twice as many: it gets sixteen and
//! reaches the limit. A claim of the unlimited handler requests sixteen. The store is in memory, so that no disk hides
//! the cost of a claim itself.

use std::sync::Arc;

use pointsman_core::{HandlerDef, HandlerName, Limits, Tenant};
use pointsman_store_sqlite::Sqlite;

use crate::BenchOptions;
use crate::claiming_node::{self, ClaimingNode, TASKS_PER_CLAIM};
use crate::report::{Figure, MeasurementUnit, percentile};

const MEASURED_HANDLER: &str = "limited";
const MIN_QUEUE_COUNT: usize = 16;
const ROUNDS: usize = 500;

pub(crate) async fn measure(options: &BenchOptions) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for queues in
        [MIN_QUEUE_COUNT, (options.idle_queue_count / 10).max(MIN_QUEUE_COUNT), options.idle_queue_count]
    {
        let limited = new_node_with_waiting_tasks(queues, Some(TASKS_PER_CLAIM as u32)).await?;
        let unlimited = new_node_with_waiting_tasks(queues, None).await?;
        let (mut limited_ms, mut unlimited_ms) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            // The rounds alternate, so that both sides have the same noise. Finishing tasks is timed too: it frees capacity
            // under the limit, which has a cost.
            let timings = limited.time_claim_and_finish(2 * TASKS_PER_CLAIM).await?;
            limited_ms.push((timings.claim_seconds + timings.finish_seconds) * 1000.0);
            let timings = unlimited.time_claim_and_finish(TASKS_PER_CLAIM).await?;
            unlimited_ms.push((timings.claim_seconds + timings.finish_seconds) * 1000.0);
        }
        let name = format!(
            "{TASKS_PER_CLAIM} tasks claimed and ended in memory, {queues} queues behind `concurrency: {TASKS_PER_CLAIM}`, p50"
        );
        figures.push(
            Figure::new(name, percentile(&mut limited_ms, 0.5), MeasurementUnit::Milliseconds)
                .with_comparison("without a limit, p50", percentile(&mut unlimited_ms, 0.5))
                .with_max_ratio(1.1),
        );
    }
    Ok(figures)
}

/// Creates a store in which tasks of one handler wait in this many queues, enough that no queue becomes empty, and
/// joins it as a node.
async fn new_node_with_waiting_tasks(
    queues: usize,
    concurrency: Option<u32>,
) -> anyhow::Result<ClaimingNode> {
    let mut def = HandlerDef::new(HandlerName::new(MEASURED_HANDLER)?);
    def.limits = Limits { concurrency, ..Limits::default() };
    let node = ClaimingNode::register_and_join(
        Arc::new(Sqlite::in_memory(pointsman_engine::machine_clock_now())?),
        vec![def],
    )
    .await?;
    let tenants = (0..queues).map(|n| Tenant::new(format!("tenant-{n}"))).collect::<Result<Vec<_>, _>>()?;
    let events_per_queue = (ROUNDS * TASKS_PER_CLAIM).div_ceil(queues) + 2;
    let events = (0..events_per_queue * queues)
        .map(|n| claiming_node::new_event_for_handler(MEASURED_HANDLER, &tenants[n % queues], n));
    claiming_node::append_events(node.store(), events).await?;
    Ok(node)
}
