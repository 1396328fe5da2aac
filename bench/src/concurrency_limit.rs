//! Measures the cost of a concurrency limit, with few and with many queues behind it.
//!
//! The limited handler may run sixteen tasks at a time, and each claim requests twice as many: it gets sixteen and
//! reaches the limit. A claim of the unlimited handler requests sixteen. The store is in memory, so that no disk hides
//! the cost of a claim itself.

use std::sync::Arc;

use pointsman_core::{HandlerDef, HandlerName, Limits, Tenant};
use pointsman_store_sqlite::Sqlite;

use crate::BenchOptions;
use crate::claiming_node::{self, CLAIM_SIZE, ClaimingNode};
use crate::report::{Figure, MeasurementUnit, percentile};

const LIMITED_HANDLER: &str = "limited";
const FEW_QUEUES: usize = 16;
const ROUNDS: usize = 500;

pub(crate) async fn measure(options: &BenchOptions) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for queues in [FEW_QUEUES, (options.idle_queue_count / 10).max(FEW_QUEUES), options.idle_queue_count] {
        let limited = new_claiming_node(queues, Some(CLAIM_SIZE as u32)).await?;
        let unlimited = new_claiming_node(queues, None).await?;
        let (mut limited_ms, mut unlimited_ms) = (vec![], vec![]);
        for _ in 0..ROUNDS {
            // The rounds alternate, so that both sides have the same noise. Finishing tasks is timed too: it frees capacity
            // under the limit, which has a cost.
            let timings = limited.claim_and_finish(2 * CLAIM_SIZE).await?;
            limited_ms.push((timings.claim_seconds + timings.finish_seconds) * 1000.0);
            let timings = unlimited.claim_and_finish(CLAIM_SIZE).await?;
            unlimited_ms.push((timings.claim_seconds + timings.finish_seconds) * 1000.0);
        }
        let name = format!(
            "{CLAIM_SIZE} tasks claimed and ended in memory, {queues} queues behind `concurrency: {CLAIM_SIZE}`, p50"
        );
        figures.push(
            Figure::new(name, percentile(&mut limited_ms, 0.5), MeasurementUnit::Milliseconds)
                .compared_with("without a limit, p50", percentile(&mut unlimited_ms, 0.5))
                .with_max_ratio(1.1),
        );
    }
    Ok(figures)
}

/// Creates a store in which tasks of one handler wait in this many queues, enough that no queue becomes empty, and
/// joins it as a node.
async fn new_claiming_node(queues: usize, concurrency: Option<u32>) -> anyhow::Result<ClaimingNode> {
    let mut def = HandlerDef::new(HandlerName::new(LIMITED_HANDLER)?);
    def.limits = Limits { concurrency, ..Limits::default() };
    let node = ClaimingNode::new(Arc::new(Sqlite::in_memory(pointsman_engine::now())?), vec![def]).await?;
    let tenants = (0..queues).map(|n| Tenant::new(format!("tenant-{n}"))).collect::<Result<Vec<_>, _>>()?;
    let events_per_queue = (ROUNDS * CLAIM_SIZE).div_ceil(queues) + 2;
    let events = (0..events_per_queue * queues)
        .map(|n| claiming_node::new_event_for_handler(LIMITED_HANDLER, &tenants[n % queues], n));
    claiming_node::append_events(node.store(), events).await?;
    Ok(node)
}
