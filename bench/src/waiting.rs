//! How much memory a waiting task takes, where all that waits lies in memory: its event, its object and itself.

use anyhow::bail;
use pointsman_core::{HandlerDef, HandlerName, Tenant};

use crate::claims::{self, Desk};
use crate::ground::{Ground, Site};
use crate::report::{Figure, Unit};
use crate::{Options, rig};

/// Each is of an object of its own, which is the most that it can take.
pub(crate) async fn measure(options: &Options, site: &Site) -> anyhow::Result<Vec<Figure>> {
    let ground = site.ground()?;
    let Ground::Redis(spaces) = &ground else { bail!("only Redis is looked at") };
    let store = ground.open("waiting").await?.store;
    let desk = Desk::new(store, vec![HandlerDef::new(HandlerName::new(rig::HANDLER)?)]).await?;
    let tasks = options.backlog;
    let before = spaces.used()?;
    let event = |n: usize| claims::event(rig::HANDLER, &Tenant::default(), n);
    claims::fill(desk.store(), (0..tasks).map(event)).await?;
    let used = spaces.used()?.saturating_sub(before) as f64 / tasks as f64;
    let payload = (0..tasks).map(|n| rig::payload(n).len()).sum::<usize>() as f64 / tasks as f64;
    desk.close().await?;
    let name = format!("memory of a waiting task, with {tasks} of them");
    Ok(vec![Figure::new(name, used, Unit::Bytes).against("its payload", payload).no_more_than(1.5, 600.0)])
}
