//! Whether two nodes on one database are slower than one.
//!
//! All of it is one process, so that both sides have the same cores; each node has a store with connections of its own.

use crate::Options;
use crate::end_to_end::{self, BATCH, MANY_SLOTS, Nodes, PRODUCERS, TURNS, Total};
use crate::ground::Site;
use crate::report::{Figure, Unit};

pub(crate) async fn measure(options: &Options, site: &Site) -> anyhow::Result<Vec<Figure>> {
    let wanted = options.events / 2;
    let (mut alone, mut both) = (Total::default(), Total::default());
    for _ in 0..TURNS {
        // In turns and on databases of their own, so that both meet the same disk and the same neighbours.
        let ground = site.ground()?;
        let one = end_to_end::run(&ground, "one", wanted, Nodes::one(MANY_SLOTS)).await?;
        alone.add(one.events, one.rate);
        let two = end_to_end::run(&ground, "two", wanted, Nodes { count: 2, slots: MANY_SLOTS / 2 }).await?;
        both.add(two.events, two.rate);
    }
    let name = format!("end to end, {PRODUCERS} producers, {BATCH} at a time, two nodes on one database");
    let figure = Figure::new(name, both.rate(), Unit::PerSecond);
    Ok(vec![figure.against(format!("one node, {MANY_SLOTS} slots in all"), alone.rate()).at_least(1.0)])
}
