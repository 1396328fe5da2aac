//! Whether claims grow slower, or memory larger, with the number of tasks that wait, and that have ended.

use pointsman_core::{HandlerDef, HandlerName, Tenant};

use crate::claims::{AT_A_TIME, Desk, Took};
use crate::fill::{self, Stock};
use crate::ground::{Ground, Site};
use crate::report::{Figure, Unit};
use crate::{Options, memory, rig};

const FEW: usize = 1_000;
const ROUNDS: usize = 200;

pub(crate) async fn measure(options: &Options, site: &Site) -> anyhow::Result<Vec<Figure>> {
    let ground = site.ground()?;
    let few = filled(&ground, "few", FEW + AT_A_TIME * ROUNDS, 0).await?;
    let (waiting, kept) = (options.backlog, options.kept());
    let many = filled(&ground, "many", waiting, kept).await?;
    let resident = memory::resident_mb();
    // In turns, so that both meet the same disk and the same neighbours.
    let (mut with_few, mut with_many) = (Took::default(), Took::default());
    for _ in 0..ROUNDS {
        with_few.add(few.round(AT_A_TIME).await?);
        with_many.add(many.round(AT_A_TIME).await?);
    }
    few.close().await?;
    many.close().await?;
    let beside =
        if kept > 0 { format!("{waiting} waiting and {kept} ended") } else { format!("{waiting} waiting") };
    let rate = |seconds: f64| (ROUNDS * AT_A_TIME) as f64 / seconds;
    let figure = |what: &str, many: f64, few: f64| {
        Figure::new(format!("tasks {what} with {beside}"), rate(many), Unit::PerSecond)
            .against(format!("with {FEW} waiting"), rate(few))
    };
    Ok(vec![
        figure("claimed", with_many.claims, with_few.claims).at_least(1.0 / 1.2),
        figure("ended", with_many.ends, with_few.ends),
        Figure::new(format!("memory with {waiting} tasks waiting"), resident, Unit::Megabytes).below(150.0),
    ])
}

/// A store in which so many tasks wait, and so many have ended.
async fn filled(ground: &Ground, name: &str, waiting: usize, kept: usize) -> anyhow::Result<Desk> {
    let stock = Stock { handler: rig::HANDLER, tenant: &Tenant::default(), waiting, kept };
    let store = fill::filled(ground, name, stock).await?.store;
    Desk::new(store, vec![HandlerDef::new(HandlerName::new(rig::HANDLER)?)]).await
}
