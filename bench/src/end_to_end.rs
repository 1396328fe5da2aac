//! An event's whole way: emitted, handled by a handler that does nothing, ended, history kept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::store::Registry;
use pointsman_engine::Rooms;

use crate::Options;
use crate::bare::{self, Rows};
use crate::report::{Figure, Unit};
use crate::rig::{self, Handled};

const PRODUCERS: usize = 8;
const BATCH: usize = 100;
/// More than the 16 of a server, because a handler that does nothing is over before the next commit.
const SLOTS: usize = 512;

pub(crate) async fn measure(options: &Options) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let store = rig::open(dir.path(), "end.db")?;
    let handled = Arc::new(Handled::default());
    let counter = handled.clone();
    let engine = Arc::new(rig::engine(store.clone(), SLOTS, Rooms::default(), move |_| counter.add()).await?);
    let per_producer = (options.events / PRODUCERS / BATCH).max(1);
    let events = per_producer * PRODUCERS * BATCH;
    let commits = store.commits();
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
    while !store.queues().await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let rate = events as f64 / start.elapsed().as_secs_f64();
    let per_commit = (events as u64 / (store.commits() - commits).max(1)).max(1) as usize;
    engine.stop(Duration::from_secs(10)).await;

    let conn = bare::open(dir.path(), "bare.db")?;
    let limit = bare::rate(&conn, events, per_commit, Rows::WholeLife)?;
    let name = format!("end to end, {PRODUCERS} producers, {BATCH} at a time, {SLOTS} slots");
    let against = format!("bare SQLite, same rows, {per_commit} events a commit");
    Ok(vec![Figure::new(name, rate, Unit::PerSecond).against(against, limit).at_least(0.5)])
}
