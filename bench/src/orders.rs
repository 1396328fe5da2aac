//! Orders through a chain of five steps that do nothing, beside tasks of events that do nothing either.
//!
//! Each step is a task of its own, and its end moves the order on: the journal tells of both, and the task of the next
//! step is made in the same transaction. So a step writes more than a task does, and the two rates say how much.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use pointsman_core::chain::{Chain, ChainPath, Node, NodeId, Role, Step};
use pointsman_core::journal::PathFilter;
use pointsman_core::store::NewOrder;
use pointsman_core::{HandlerName, Json};
use pointsman_engine::{Engine, Outcome, Settings, Setup};

use crate::Options;
use crate::end_to_end::{self, BATCH, DEFAULT_SLOTS, Nodes, PRODUCERS};
use crate::ground::{Ground, Site};
use crate::report::{Figure, Unit};
use crate::rig::{self, Handled};

const STEPS: usize = 5;
const CHAIN: &str = "/bench/chain";
const HANDLER: &str = "bench.step";

pub(crate) async fn measure(options: &Options, site: &Site, slots: usize) -> anyhow::Result<Vec<Figure>> {
    let ground = site.ground()?;
    // A commit for every sixteen takes its time: measure fewer.
    let wanted = if slots == DEFAULT_SLOTS { options.orders / 4 } else { options.orders };
    let tasks = end_to_end::run(&ground, "tasks", wanted * STEPS, Nodes::one(slots)).await?.rate;
    let (orders, rate) = travel(&ground, wanted, slots).await?;
    let against = format!("tasks of events end to end, {slots} slots");
    let steps = Figure::new(
        format!("steps of {orders} orders through {STEPS} nodes, {slots} slots"),
        rate * STEPS as f64,
        Unit::PerSecond,
    );
    let whole = format!("orders through {STEPS} nodes, {slots} slots");
    Ok(vec![
        Figure::new(whole, rate, Unit::PerSecond).against(against.clone(), tasks),
        steps.against(against, tasks).at_least(0.4),
    ])
}

/// About so many orders go their whole way; answers how many, and how many in a second.
async fn travel(ground: &Ground, wanted: usize, slots: usize) -> anyhow::Result<(usize, f64)> {
    let store = ground.open("orders").await?.store;
    let stepped = Arc::new(Handled::default());
    let counter = stepped.clone();
    let handler = rig::handler(HANDLER, move |_| {
        counter.add();
        async { Outcome::done() }
    })?;
    let setup = Setup { handlers: vec![handler], chains: vec![chain()?], ..Setup::default() };
    let settings = Settings { slots, ..Settings::default() };
    let engine = Engine::start(store.clone(), settings, setup).await?;
    let per_producer = (wanted / PRODUCERS / BATCH).max(1);
    let orders = per_producer * PRODUCERS * BATCH;
    let start = Instant::now();
    let producers = (0..PRODUCERS).map(|producer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for round in 0..per_producer {
                let from = (producer * per_producer + round) * BATCH;
                let orders = (from..from + BATCH).map(order).collect::<anyhow::Result<Vec<_>>>()?;
                engine.add_orders(orders).await??;
            }
            anyhow::Ok(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await??;
    }
    stepped.reached((orders * STEPS) as u64).await;
    rig::all_ended(&*store).await?;
    let rate = orders as f64 / start.elapsed().as_secs_f64();
    let left = engine.orders(&PathFilter::Everything, None, None, 1).await?.orders;
    let steps = stepped.count();
    engine.stop(Duration::from_secs(10)).await;
    ensure!(left.is_empty(), "an order has not arrived: {:?}", left.first());
    ensure!(steps == (orders * STEPS) as u64, "{orders} orders made {steps} steps");
    Ok((orders, rate))
}

/// Steps one after another, and an end.
fn chain() -> anyhow::Result<Chain> {
    let name = |n: usize| NodeId::new(format!("node-{n}"));
    let mut nodes = Vec::new();
    for n in 0..STEPS {
        let handler = HandlerName::new(HANDLER)?;
        let step = Step { handler, next: name(n + 1)?, on_error: None, setback: None };
        nodes.push(Node { id: name(n)?, role: Role::Step(step) });
    }
    nodes.push(Node { id: name(STEPS)?, role: Role::End });
    Ok(Chain { path: ChainPath::new(CHAIN)?, nodes })
}

fn order(n: usize) -> anyhow::Result<NewOrder> {
    let value = Json::parse(&rig::payload(n))?;
    Ok(NewOrder { value, ..NewOrder::of(ChainPath::new(CHAIN)?) })
}
