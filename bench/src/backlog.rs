//! Whether claims grow slower, or memory larger, with the number of tasks that wait.

use std::path::Path;

use pointsman_core::{HandlerDef, HandlerName, Tenant};

use crate::claims::{self, AT_A_TIME, Desk, Took};
use crate::report::{Figure, Unit};
use crate::{Options, memory, rig};

const FEW: usize = 1_000;
const ROUNDS: usize = 200;

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let few = filled(dir.path(), "few.db", FEW + AT_A_TIME * ROUNDS).await?;
    let many = filled(dir.path(), "many.db", options.backlog).await?;
    let resident = memory::resident_mb();
    // In turns, so that both meet the same disk and the same neighbours.
    let (mut with_few, mut with_many) = (Took::default(), Took::default());
    for _ in 0..ROUNDS {
        with_few.add(few.round(AT_A_TIME).await?);
        with_many.add(many.round(AT_A_TIME).await?);
    }
    few.close();
    many.close();
    let rate = |seconds: f64| (ROUNDS * AT_A_TIME) as f64 / seconds;
    let figure = |what: &str, many: f64, few: f64| {
        Figure::new(format!("tasks {what} with {} waiting", options.backlog), rate(many), Unit::PerSecond)
            .against(format!("with {FEW} waiting"), rate(few))
    };
    Ok(vec![
        figure("claimed", with_many.claims, with_few.claims).at_least(1.0 / 1.2),
        figure("ended", with_many.ends, with_few.ends),
        Figure::new(format!("memory with {} tasks waiting", options.backlog), resident, Unit::Megabytes)
            .below(150.0),
    ])
}

/// A store in which so many tasks wait.
async fn filled(dir: &Path, name: &str, waiting: usize) -> anyhow::Result<Desk> {
    let desk =
        Desk::new(rig::open(dir, name)?, vec![HandlerDef::new(HandlerName::new(rig::HANDLER)?)]).await?;
    let events = (0..waiting).map(|n| claims::event(rig::TYPE, &Tenant::default(), n));
    claims::fill(desk.store(), events).await?;
    Ok(desk)
}
