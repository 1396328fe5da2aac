//! Measures orders through a chain of five steps that do nothing, and compares them with tasks of events that do nothing.
//!
//! Each step is a task, and its end moves the order to the next step: both are recorded in the journal, and the task of
//! the next step is created in the same transaction. So a step writes more than a task does, and the two rates show how
//! much.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use pointsman_core::chain::{Chain, ChainNode, ChainNodeId, ChainNodeRole, ChainPath, ChainStep};
use pointsman_core::journal::PathFilter;
use pointsman_core::store::NewOrder;
use pointsman_core::{HandlerName, Json};
use pointsman_engine::{Engine, HandlerOutcome, Settings, Setup};

use crate::BenchOptions;
use crate::end_to_end::{self, BATCH_SIZE, DEFAULT_SLOTS, NodeSetup, PRODUCER_COUNT};
use crate::fixtures::{self, EventCounter};
use crate::report::{Figure, MeasurementUnit};
use crate::stores::{RunEnvironment, StoreFactory};

const STEPS_PER_ORDER: usize = 5;
const CHAIN_PATH: &str = "/bench/chain";
const STEP_HANDLER: &str = "bench.step";

pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
    slots: usize,
) -> anyhow::Result<Vec<Figure>> {
    let stores = environment.new_store_factory()?;
    // A commit for every sixteen tasks is slow: measure fewer orders.
    let order_count = if slots == DEFAULT_SLOTS { options.order_count / 4 } else { options.order_count };
    let tasks = end_to_end::measure_event_lifecycle(
        &stores,
        "tasks",
        order_count * STEPS_PER_ORDER,
        NodeSetup::single_node(slots),
    )
    .await?
    .events_per_second;
    let (orders, rate) = run_orders(&stores, order_count, slots).await?;
    let tasks_name = format!("tasks of events end to end, {slots} slots");
    let steps = Figure::new(
        format!("steps of {orders} orders through {STEPS_PER_ORDER} nodes, {slots} slots"),
        rate * STEPS_PER_ORDER as f64,
        MeasurementUnit::PerSecond,
    );
    let orders_name = format!("orders through {STEPS_PER_ORDER} nodes, {slots} slots");
    Ok(vec![
        Figure::new(orders_name, rate, MeasurementUnit::PerSecond).with_comparison(tasks_name.clone(), tasks),
        steps.with_comparison(tasks_name, tasks).with_min_ratio(0.4),
    ])
}

/// Runs about `order_count` orders through the chain; returns their number, and the orders per second.
async fn run_orders(stores: &StoreFactory, order_count: usize, slots: usize) -> anyhow::Result<(usize, f64)> {
    let store = stores.open_store("orders").await?.store;
    let step_counter = Arc::new(EventCounter::default());
    let counter = step_counter.clone();
    let handler = fixtures::new_in_process_handler(STEP_HANDLER, move |_| {
        counter.increment();
        async { HandlerOutcome::succeeded() }
    })?;
    let setup = Setup { handlers: vec![handler], chains: vec![new_chain()?], ..Setup::default() };
    let settings = Settings { slot_count: slots, ..Settings::default() };
    let engine = Engine::start(store.clone(), settings, setup).await?;
    let batches_per_producer = (order_count / PRODUCER_COUNT / BATCH_SIZE).max(1);
    let orders = batches_per_producer * PRODUCER_COUNT * BATCH_SIZE;
    let start = Instant::now();
    let producers = (0..PRODUCER_COUNT).map(|producer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for round in 0..batches_per_producer {
                let from = (producer * batches_per_producer + round) * BATCH_SIZE;
                let orders = (from..from + BATCH_SIZE).map(new_order).collect::<anyhow::Result<Vec<_>>>()?;
                engine.add_orders(orders).await??;
            }
            anyhow::Ok(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await??;
    }
    step_counter.wait_until_count_reached((orders * STEPS_PER_ORDER) as u64).await;
    fixtures::wait_until_no_unfinished_tasks(&*store).await?;
    let rate = orders as f64 / start.elapsed().as_secs_f64();
    let left = engine.list_orders(&PathFilter::Everything, None, None, 1).await?.orders;
    let steps = step_counter.count();
    engine.stop(Duration::from_secs(10)).await;
    ensure!(left.is_empty(), "an order has not finished: {:?}", left.first());
    ensure!(steps == (orders * STEPS_PER_ORDER) as u64, "{orders} orders ran {steps} steps");
    Ok((orders, rate))
}

/// Returns a chain of [`STEPS_PER_ORDER`] steps and an end node.
fn new_chain() -> anyhow::Result<Chain> {
    let name = |n: usize| ChainNodeId::new(format!("node-{n}"));
    let mut nodes = Vec::new();
    for n in 0..STEPS_PER_ORDER {
        let handler = HandlerName::new(STEP_HANDLER)?;
        let step = ChainStep { handler, next: name(n + 1)?, on_error: None, retry: None };
        nodes.push(ChainNode { id: name(n)?, role: ChainNodeRole::Step(step) });
    }
    nodes.push(ChainNode { id: name(STEPS_PER_ORDER)?, role: ChainNodeRole::End });
    Ok(Chain { path: ChainPath::new(CHAIN_PATH)?, nodes })
}

fn new_order(n: usize) -> anyhow::Result<NewOrder> {
    let value = Json::parse(&fixtures::event_payload(n))?;
    Ok(NewOrder { value, ..NewOrder::new(ChainPath::new(CHAIN_PATH)?) })
}
