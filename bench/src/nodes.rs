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
    let sides = [("one", Nodes::one(MANY_SLOTS)), ("two", Nodes { count: 2, slots: MANY_SLOTS / 2 })];
    for turn in 0..TURNS {
        // On databases of their own, and now the one first, now the other.
        let ground = site.ground()?;
        for place in [turn, turn + 1] {
            let (name, nodes) = sides[place % 2];
            let ran = end_to_end::run(&ground, name, wanted, nodes).await?;
            ground.settle(name).await?;
            if nodes.count == 1 { &mut alone } else { &mut both }.add(ran.events, ran.rate);
        }
    }
    let name = format!("end to end, {PRODUCERS} producers, {BATCH} at a time, two nodes on one database");
    let figure = Figure::new(name, both.rate(), Unit::PerSecond);
    let figure = figure.against(format!("one node, {MANY_SLOTS} slots in all"), alone.rate());
    // Redis does one thing at a time: there a second node is for when the first one dies.
    Ok(vec![if let Site::Server(_) = site { figure.at_least(1.0) } else { figure }])
}
