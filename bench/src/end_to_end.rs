//! An event's whole way: emitted, handled by a handler that does nothing, ended, history kept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_engine::{Engine, Settings};

use crate::Options;
use crate::bare::Ran;
use crate::ground::{Ground, Opened, Site};
use crate::report::{Figure, Unit};
use crate::rig::{self, Handled};

pub(crate) const PRODUCERS: usize = 8;
pub(crate) const BATCH: usize = 100;
/// How often each side has its turn, so that both meet the same disk and the same neighbours.
pub(crate) const TURNS: usize = 4;

/// As many slots as a server has by default: each commit carries as many ends.
pub(crate) const DEFAULT_SLOTS: usize = 16;
/// More slots, because a handler that does nothing is over before the next commit.
pub(crate) const MANY_SLOTS: usize = 2048;

/// Who works: so many nodes on one database, each with so many slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nodes {
    pub(crate) count: usize,
    pub(crate) slots: usize,
}

impl Nodes {
    pub(crate) fn one(slots: usize) -> Self {
        Self { count: 1, slots }
    }
}

/// How long events took in all.
#[derive(Default)]
pub(crate) struct Total {
    events: usize,
    seconds: f64,
}

impl Total {
    /// So many events, at so many in a second.
    pub(crate) fn add(&mut self, events: usize, rate: f64) {
        self.events += events;
        self.seconds += events as f64 / rate;
    }

    pub(crate) fn rate(&self) -> f64 {
        self.events as f64 / self.seconds
    }
}

pub(crate) async fn measure(options: &Options, site: &Site, slots: usize) -> anyhow::Result<Vec<Figure>> {
    // A commit for every sixteen takes its time: measure fewer.
    let wanted = if slots == DEFAULT_SLOTS { options.events / 4 } else { options.events };
    let (mut whole, mut bare, mut how) = (Total::default(), Total::default(), String::new());
    for _ in 0..TURNS {
        let ground = site.ground()?;
        let ran = run(&ground, "end", wanted / TURNS, Nodes::one(slots)).await?;
        ground.settle("end").await?;
        let limit = ground.bare().await?.whole_life(ran).await?;
        whole.add(ran.events, ran.rate);
        bare.add(ran.events, limit.rate);
        how = limit.how;
    }
    let name = format!("end to end, {PRODUCERS} producers, {BATCH} at a time, {slots} slots");
    let figure = Figure::new(name, whole.rate(), Unit::PerSecond).against(how, bare.rate());
    Ok(vec![if slots == MANY_SLOTS { figure.at_least(0.5) } else { figure }])
}

/// About so many events go their whole way.
pub(crate) async fn run(ground: &Ground, name: &str, wanted: usize, nodes: Nodes) -> anyhow::Result<Ran> {
    let handled = Arc::new(Handled::default());
    let (mut stores, mut engines) = (Vec::new(), Vec::new());
    for _ in 0..nodes.count {
        let opened = ground.open(name).await?;
        engines.push(engine(&opened, nodes.slots, &handled).await?);
        stores.push(opened);
    }
    let per_producer = (wanted / PRODUCERS / BATCH).max(1);
    let events = per_producer * PRODUCERS * BATCH;
    let (commits, rows) = work(&stores);
    let start = Instant::now();
    let producers = (0..PRODUCERS).map(|producer| {
        let engine = engines[producer % engines.len()].clone();
        tokio::spawn(async move {
            for round in 0..per_producer {
                // Objects take turns among all producers, as if these had nothing to do with each other.
                engine.emit(rig::emission((round * PRODUCERS + producer) * BATCH, BATCH)?).await?;
            }
            anyhow::Ok(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await??;
    }
    handled.reached(events as u64).await;
    rig::all_ended(&*stores[0].store).await?;
    let rate = events as f64 / start.elapsed().as_secs_f64();
    let (commits, rows) = (work(&stores).0 - commits, work(&stores).1 - rows);
    for (engine, opened) in engines.iter().zip(&stores) {
        engine.stop(Duration::from_secs(10)).await;
        opened.store.close();
    }
    let per_commit = (events as u64 / commits.max(1)).max(1) as usize;
    Ok(Ran { events, rate, per_commit, rows_per_event: rows as f64 / events as f64 })
}

/// One that counts what it handles.
async fn engine(opened: &Opened, slots: usize, handled: &Arc<Handled>) -> anyhow::Result<Engine> {
    let counter = handled.clone();
    let settings = Settings { slots, ..Settings::default() };
    rig::engine(opened.store.clone(), settings, move |_| counter.add()).await
}

/// How many commits all of them made, and how many rows they wrote.
fn work(stores: &[Opened]) -> (u64, u64) {
    let both = stores.iter().map(|opened| (opened.work.commits(), opened.work.rows()));
    both.fold((0, 0), |(commits, rows), (more, others)| (commits + more, rows + others))
}
