//! Whether queues that have nothing to run make claims slower.
//!
//! In memory, so that no disk hides what a claim itself costs.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::{HandlerDef, HandlerName, NewEvent, Place, Rule, RuleKind, Tenant};
use pointsman_store_sqlite::Sqlite;

use crate::Options;
use crate::claims::{self, AT_A_TIME, Desk};
use crate::report::{Figure, Unit, percentile};

const WORKING: &str = "working";
/// The other queues belong to so many handlers, and to as many tenants each as it takes.
const HANDLERS: usize = 100;
const ROUNDS: usize = 1_000;

/// What the other queues are like.
#[derive(Clone, Copy, PartialEq)]
enum Others {
    /// There are none. As many tasks have run before, so that nothing but the queues makes the difference.
    None,
    /// They have had tasks, and are empty now.
    Idle,
    /// Every other one's tasks fall due tomorrow; the rest are held by rules.
    Waiting,
}

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let alone = desk(Others::None, options.queues).await?;
    let idle = desk(Others::Idle, options.queues).await?;
    let waiting = desk(Others::Waiting, options.queues).await?;
    let mut took = [vec![], vec![], vec![]];
    for round in 0..ROUNDS {
        // In turns, and each of them first as often as the others.
        for place in 0..took.len() {
            let which = (round + place) % took.len();
            let desk = [&alone, &idle, &waiting][which];
            took[which].push(desk.round(AT_A_TIME).await?.claims * 1000.0);
        }
    }
    let [alone, idle, waiting] = took.map(|mut took| percentile(&mut took, 0.5));
    let figure = |beside: &str, took: f64| {
        let name = format!("a claim of {AT_A_TIME} in memory, beside {} {beside}, p50", options.queues);
        Figure::new(name, took, Unit::Milliseconds).against("without them, p50", alone).at_most(1.1)
    };
    Ok(vec![figure("idle queues", idle), figure("queues that are held or not due", waiting)])
}

/// A store with one queue that works, and others that do not.
async fn desk(others: Others, queues: usize) -> anyhow::Result<Desk> {
    let handlers = if others == Others::None { 0 } else { HANDLERS };
    let names = (0..handlers).map(|n| format!("other.{n}")).chain([WORKING.to_owned()]);
    let defs = names.map(|name| Ok(HandlerDef::new(HandlerName::new(name)?)));
    let store = Arc::new(Sqlite::in_memory(pointsman_engine::now())?);
    let desk = Desk::new(store, defs.collect::<anyhow::Result<_>>()?).await?;
    match others {
        Others::None => {
            let events = (0..queues).map(|n| claims::event(WORKING, &Tenant::default(), n));
            claims::fill(desk.store(), events).await?;
            desk.drain().await?;
        }
        Others::Idle => {
            claims::fill(desk.store(), (0..queues).map(other)).await?;
            desk.drain().await?;
        }
        Others::Waiting => {
            for n in (1..HANDLERS).step_by(2) {
                desk.store().hold(hold(n)?).await?;
            }
            let tomorrow = pointsman_engine::now().plus(Duration::from_secs(24 * 3600));
            let events = (0..queues).map(|n| {
                let delayed = (n % HANDLERS).is_multiple_of(2);
                other(n).map(|event| NewEvent { due: delayed.then_some(tomorrow), ..event })
            });
            claims::fill(desk.store(), events).await?;
        }
    }
    let work = (0..ROUNDS * AT_A_TIME).map(|n| claims::event(WORKING, &Tenant::default(), n));
    claims::fill(desk.store(), work).await?;
    Ok(desk)
}

/// The event that makes the n-th of the other queues.
fn other(n: usize) -> anyhow::Result<NewEvent> {
    let tenant = Tenant::new(format!("tenant-{}", n / HANDLERS))?;
    claims::event(&format!("other.{}", n % HANDLERS), &tenant, n)
}

fn hold(handler: usize) -> anyhow::Result<Rule> {
    Ok(Rule {
        kind: RuleKind::Pause,
        place: Place::Handler(HandlerName::new(format!("other.{handler}"))?),
        tenant: None,
        by: "bench".into(),
        reason: String::new(),
        since: pointsman_engine::now(),
    })
}
