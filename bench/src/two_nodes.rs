//! Measures whether two nodes on one database are slower than one.
//!
//! Both nodes are in this process, so that both sides have the same cores; each node has its own store and connections.

use crate::BenchOptions;
use crate::end_to_end::{self, BATCH_SIZE, MANY_SLOTS, NodeSetup, PRODUCER_COUNT, ROUNDS, ThroughputTotal};
use crate::report::{Figure, MeasurementUnit};
use crate::stores::RunEnvironment;

pub(crate) async fn measure(
    options: &BenchOptions,
    environment: &RunEnvironment,
) -> anyhow::Result<Vec<Figure>> {
    let event_count = options.event_count / 2;
    let (mut alone, mut both) = (ThroughputTotal::default(), ThroughputTotal::default());
    let sides = [
        ("one", NodeSetup::single_node(MANY_SLOTS)),
        ("two", NodeSetup { node_count: 2, slots_per_node: MANY_SLOTS / 2 }),
    ];
    for round in 0..ROUNDS {
        // Each side has its own database, and the order alternates.
        let stores = environment.new_store_factory()?;
        for index in [round, round + 1] {
            let (name, nodes) = sides[index % 2];
            let run = end_to_end::measure_event_lifecycle(&stores, name, event_count, nodes).await?;
            stores.flush_to_disk(name).await?;
            if nodes.node_count == 1 { &mut alone } else { &mut both }
                .add(run.event_count, run.events_per_second);
        }
    }
    let name = format!(
        "end to end, {PRODUCER_COUNT} producers, {BATCH_SIZE} events at a time, two nodes on one database"
    );
    let figure = Figure::new(name, both.events_per_second(), MeasurementUnit::PerSecond);
    let figure =
        figure.with_comparison(format!("one node, {MANY_SLOTS} slots in all"), alone.events_per_second());
    // Redis executes one command at a time: there a second node helps only when the first one dies.
    Ok(vec![if let RunEnvironment::PostgresServer(_) = environment {
        figure.with_min_ratio(1.0)
    } else {
        figure
    }])
}
