//! An event's whole way: emitted, handled by a handler that does nothing, ended, history kept.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_engine::Rooms;

use crate::Options;
use crate::bare::{self, Rows};
use crate::report::{Figure, Unit};
use crate::rig::{self, Handled};

pub(crate) const PRODUCERS: usize = 8;
pub(crate) const BATCH: usize = 100;

/// As many slots as a server has by default: each commit carries as many ends.
pub(crate) const DEFAULT_SLOTS: usize = 16;
/// More slots, because a handler that does nothing is over before the next commit.
pub(crate) const MANY_SLOTS: usize = 2048;

pub(crate) async fn measure(options: &Options, slots: usize) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    // A commit for every sixteen takes its time: measure fewer.
    let wanted = if slots == DEFAULT_SLOTS { options.events / 4 } else { options.events };
    let Ran { events, rate, per_commit, rows_per_event } = run(dir.path(), wanted, slots).await?;
    let conn = bare::open(dir.path(), "bare.db")?;
    let changes = (rows_per_event - bare::LEAST_ROWS).max(0.0);
    let limit = bare::rate(&conn, events, per_commit, Rows::WholeLife { changes })?;
    let name = format!("end to end, {PRODUCERS} producers, {BATCH} at a time, {slots} slots");
    let against = format!("bare SQLite, {rows_per_event:.1} rows an event, {per_commit} events a commit");
    let figure = Figure::new(name, rate, Unit::PerSecond).against(against, limit);
    Ok(vec![if slots == MANY_SLOTS { figure.at_least(0.5) } else { figure }])
}

/// What a run came to.
pub(crate) struct Ran {
    events: usize,
    /// Events in a second.
    pub(crate) rate: f64,
    per_commit: usize,
    rows_per_event: f64,
}

/// About so many events go their whole way.
pub(crate) async fn run(dir: &Path, wanted: usize, slots: usize) -> anyhow::Result<Ran> {
    let store = rig::open(dir, "end.db")?;
    let handled = Arc::new(Handled::default());
    let counter = handled.clone();
    let engine = Arc::new(rig::engine(store.clone(), slots, Rooms::default(), move |_| counter.add()).await?);
    let per_producer = (wanted / PRODUCERS / BATCH).max(1);
    let events = per_producer * PRODUCERS * BATCH;
    let (commits, rows) = store.work();
    let start = Instant::now();
    let producers = (0..PRODUCERS).map(|producer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for round in 0..per_producer {
                engine.emit(rig::emission((producer * per_producer + round) * BATCH, BATCH)?).await?;
            }
            anyhow::Ok(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await??;
    }
    handled.reached(events as u64).await;
    rig::all_ended(&store).await?;
    let rate = events as f64 / start.elapsed().as_secs_f64();
    let (commits, rows) = (store.work().0 - commits, store.work().1 - rows);
    engine.stop(Duration::from_secs(10)).await;
    let per_commit = (events as u64 / commits.max(1)).max(1) as usize;
    Ok(Ran { events, rate, per_commit, rows_per_event: rows as f64 / events as f64 })
}
