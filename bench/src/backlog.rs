//! Measures whether claims slow down, or memory grows, with the number of waiting and ended tasks.

use pointsman_core::{HandlerDef, HandlerName, Tenant};

use crate::claiming_node::{ClaimTimings, ClaimingNode, TASKS_PER_CLAIM};
use crate::filled_store::{self, StoreContents};
use crate::report::{Figure, MeasurementUnit};
use crate::stores::{RunEnvironment, StoreFactory};
use crate::{BenchOptions, fixtures, process_memory};

const SMALL_BACKLOG_SIZE: usize = 1_000;
const ROUNDS: usize = 200;

pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
) -> anyhow::Result<Vec<Figure>> {
    let stores = environment.new_store_factory()?;
    let small =
        open_node_with_backlog(&stores, "few", SMALL_BACKLOG_SIZE + TASKS_PER_CLAIM * ROUNDS, 0).await?;
    let (waiting, archived) = (options.backlog_size, options.archived_task_count_for_target());
    let large = open_node_with_backlog(&stores, "many", waiting, archived).await?;
    let resident = process_memory::own_resident_mb();
    // The rounds alternate, so that both sides have the same disk and the same noise.
    let (mut small_timings, mut large_timings) = (ClaimTimings::default(), ClaimTimings::default());
    for _ in 0..ROUNDS {
        small_timings.add(small.time_claim_and_finish(TASKS_PER_CLAIM).await?);
        large_timings.add(large.time_claim_and_finish(TASKS_PER_CLAIM).await?);
    }
    small.leave_and_close_store().await?;
    large.leave_and_close_store().await?;
    let contents = if archived > 0 {
        format!("{waiting} waiting and {archived} ended")
    } else {
        format!("{waiting} waiting")
    };
    let rate = |seconds: f64| (ROUNDS * TASKS_PER_CLAIM) as f64 / seconds;
    let figure = |what: &str, large: f64, small: f64| {
        Figure::new(format!("tasks {what} with {contents}"), rate(large), MeasurementUnit::PerSecond)
            .with_comparison(format!("with {SMALL_BACKLOG_SIZE} waiting"), rate(small))
    };
    Ok(vec![
        figure("claimed", large_timings.claim_seconds, small_timings.claim_seconds).with_min_ratio(1.0 / 1.2),
        figure("ended", large_timings.finish_seconds, small_timings.finish_seconds),
        Figure::new(format!("memory with {waiting} tasks waiting"), resident, MeasurementUnit::Megabytes)
            .with_max_value(150.0),
    ])
}

/// Opens a store with this many waiting and archived tasks, and joins it as a node.
async fn open_node_with_backlog(
    stores: &StoreFactory,
    name: &str,
    waiting: usize,
    archived: usize,
) -> anyhow::Result<ClaimingNode> {
    let contents = StoreContents {
        handler_name: fixtures::HANDLER_NAME,
        tenant: &Tenant::default(),
        waiting_task_count: waiting,
        archived_task_count: archived,
    };
    let store = filled_store::create_filled_store(stores, name, contents).await?.store;
    ClaimingNode::register_and_join(store, vec![HandlerDef::new(HandlerName::new(fixtures::HANDLER_NAME)?)])
        .await
}
