//! Measures the memory that a waiting task uses on Redis, where everything is in memory: its event, its object and
//! itself.

use anyhow::bail;
use pointsman_core::{HandlerDef, HandlerName, Tenant};

use crate::claiming_node::{self, ClaimingNode};
use crate::report::{Figure, MeasurementUnit};
use crate::stores::{RunEnvironment, StoreFactory};
use crate::{BenchOptions, fixtures};

/// Measures tasks with an object each, which is the maximum that a task can use.
pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
) -> anyhow::Result<Vec<Figure>> {
    let stores = environment.new_store_factory()?;
    let StoreFactory::Redis(key_prefixes) = &stores else { bail!("the part `waiting` runs on Redis only") };
    let store = stores.open_store("waiting").await?.store;
    let node = ClaimingNode::register_and_join(
        store,
        vec![HandlerDef::new(HandlerName::new(fixtures::HANDLER_NAME)?)],
    )
    .await?;
    let tasks = options.backlog_size;
    let before = key_prefixes.used_memory_bytes()?;
    let event =
        |n: usize| claiming_node::new_event_for_handler(fixtures::HANDLER_NAME, &Tenant::default(), n);
    claiming_node::append_events(node.store(), (0..tasks).map(event)).await?;
    let used = key_prefixes.used_memory_bytes()?.saturating_sub(before) as f64 / tasks as f64;
    let payload = (0..tasks).map(|n| fixtures::event_payload(n).len()).sum::<usize>() as f64 / tasks as f64;
    node.leave_and_close_store().await?;
    let name = format!("memory of a waiting task, with {tasks} of them");
    Ok(vec![
        Figure::new(name, used, MeasurementUnit::Bytes)
            .with_comparison("its payload", payload)
            .with_max_ratio_and_offset(1.5, 600.0),
    ])
}
