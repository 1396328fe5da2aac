//! How many emits are acknowledged in a second.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use pointsman_engine::{Rooms, Settings};

use crate::bare::Ran;
use crate::ground::{Opened, Site, Target};
use crate::report::{Figure, Unit};
use crate::{Options, rig};

/// So many producers, each sending so many events at a time and waiting for the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) producers: usize,
    pub(crate) batch: usize,
}

const ON_DISK: [Shape; 4] = [
    Shape { producers: 1, batch: 1 },
    Shape { producers: 64, batch: 1 },
    Shape { producers: 1, batch: 100 },
    Shape { producers: 64, batch: 100 },
];

const ON_A_SERVER: [Shape; 4] = [
    Shape { producers: 1, batch: 1 },
    Shape { producers: 16, batch: 1 },
    Shape { producers: 1, batch: 100 },
    Shape { producers: 16, batch: 100 },
];

/// Those that are measured.
pub(crate) fn shapes(target: &Target) -> [Shape; 4] {
    match target {
        Target::Sqlite => ON_DISK,
        Target::Postgres { .. } | Target::Redis { .. } => ON_A_SERVER,
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let producers =
            if self.producers == 1 { "1 producer".into() } else { format!("{} producers", self.producers) };
        match self.batch {
            1 => write!(f, "{producers}, singly"),
            batch => write!(f, "{producers}, {batch} at a time"),
        }
    }
}

pub(crate) async fn measure(options: &Options, site: &Site, shape: Shape) -> anyhow::Result<Vec<Figure>> {
    let ground = site.ground()?;
    let Opened { store, work } = ground.open("emit").await?;
    // One producer that waits for each commit is slow by nature: measure fewer.
    let events = if shape.producers == 1 && shape.batch == 1 { options.events / 20 } else { options.events };
    let events = events.max(shape.producers * shape.batch);
    let rooms = Rooms { scheduler: false, worker: false, ..Rooms::default() };
    let settings = Settings { slots: 1, rooms, ..Settings::default() };
    let engine = Arc::new(rig::engine(store.clone(), settings, |_| {}).await?);
    let commits = work.commits();
    let start = Instant::now();
    let per_producer = events / shape.producers / shape.batch;
    let producers = (0..shape.producers).map(|producer| {
        let engine = engine.clone();
        tokio::spawn(async move {
            for round in 0..per_producer {
                let from = (producer * per_producer + round) * shape.batch;
                engine.emit(rig::emission(from, shape.batch)?).await?;
            }
            anyhow::Ok(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await??;
    }
    let emitted = per_producer * shape.producers * shape.batch;
    let rate = emitted as f64 / start.elapsed().as_secs_f64();
    let per_commit = (emitted as u64 / (work.commits() - commits).max(1)).max(1) as usize;
    engine.stop(std::time::Duration::ZERO).await;
    store.close();

    let ran = Ran { events: emitted, rate, per_commit, rows_per_event: 0.0 };
    let limit = ground.bare().await?.emitted(ran).await?;
    let figure = Figure::new(format!("emits acknowledged, {shape}"), rate, Unit::PerSecond);
    Ok(vec![figure.against(limit.how, limit.rate)])
}
