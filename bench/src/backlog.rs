//! Whether claims grow slower, or memory larger, with the number of tasks that wait.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use pointsman_core::route::Binding;
use pointsman_core::store::{Claim, Ended, Ending, Journal, Queue, Registration, Registry, Store};
use pointsman_core::{HandlerDef, HandlerName, HandlingKey, Routes};
use pointsman_store_sqlite::SqliteStore;

use crate::report::{Figure, Unit};
use crate::{Options, memory, rig};

const FEW: usize = 1_000;
const AT_A_TIME: usize = 16;
const ROUNDS: usize = 200;

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let few = filled(dir.path(), "few.db", FEW + AT_A_TIME * ROUNDS).await?;
    let many = filled(dir.path(), "many.db", options.backlog).await?;
    let resident = memory::resident_mb();
    // In turns, so that both meet the same disk and the same neighbours.
    let (mut with_few, mut with_many) = (Took::default(), Took::default());
    for _ in 0..ROUNDS {
        with_few.add(round(&few).await?);
        with_many.add(round(&many).await?);
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
async fn filled(dir: &std::path::Path, name: &str, waiting: usize) -> anyhow::Result<SqliteStore> {
    let store = rig::open(dir, name)?;
    let handler = HandlerName::new(rig::HANDLER)?;
    let mut routes = Routes::new();
    routes.bind(HandlingKey::new(rig::TYPE)?, Binding::queued(handler.clone()));
    store
        .register(Registration { handlers: vec![HandlerDef::new(handler)], routes }, pointsman_engine::now())
        .await?;
    store.join("bench", pointsman_engine::now()).await?;
    let mut from = 0;
    while from < waiting {
        let count = 5_000.min(waiting - from);
        let mut emission = rig::emission(from, count)?;
        for (index, event) in emission.events.iter_mut().enumerate() {
            event.key = Some(pointsman_core::ObjectKey::new(format!("waiting:{}", from + index))?);
        }
        store.append(vec![emission], None, pointsman_engine::now()).await?;
        from += count;
    }
    Ok(store)
}

/// How long claims and ends took, in seconds.
#[derive(Clone, Copy, Default)]
struct Took {
    claims: f64,
    ends: f64,
}

impl Took {
    fn add(&mut self, other: Self) {
        self.claims += other.claims;
        self.ends += other.ends;
    }
}

/// One claim and the end of what it got.
async fn round(store: &SqliteStore) -> anyhow::Result<Took> {
    let handlers = Arc::new(BTreeSet::from([HandlerName::new(rig::HANDLER)?]));
    let start = Instant::now();
    let claims = store.claim(Claim { node: 1, handlers, max: AT_A_TIME }, pointsman_engine::now()).await?;
    let claimed = start.elapsed();
    let endings = claims.tasks.iter().map(|task| Ending {
        task: task.seq,
        fence: task.fence,
        ended: Ended::Succeeded { result: None },
        emits: vec![],
        logs: vec![],
    });
    store.finish(endings.collect(), None, pointsman_engine::now()).await?;
    let ended = start.elapsed() - claimed;
    Ok(Took { claims: claimed.as_secs_f64(), ends: ended.as_secs_f64() })
}
