//! Many readers of the journal, and what they cost those who emit.
//!
//! ```text
//!                                            ┌─▶ 1,000 by long poll ─┐  each follows one object,
//!   producers ─▶ a real server ─▶ loopback ──┤                       ├─ or fewer of them follow
//!                                            └─▶ 1,000 by SSE ───────┘  everything
//! ```
//!
//! The server and the readers are in this process, but the readers have a thread of their own, and all that they get
//! goes over HTTP. Each checks what it gets: every event of its object exactly once and in order, or the measurement
//! fails. There is a second server that nobody reads from. The two take turns, so that both meet the same disk and the
//! same neighbours.
//!
//! How long an event takes until it has reached all of its readers is measured from the call that emits it, commit
//! included, with all readers and with a quarter of them. It may grow as their number does, and no faster.

mod crowd;
mod files;
mod house;
mod reader;

use std::path::Path;
use std::time::Duration;

use crate::Options;
use crate::emit::Shape;
use crate::report::{Figure, Unit, percentile};
use crowd::{Crowd, Follow};
use house::House;

/// The parts that are told of as they begin.
pub(crate) const STEPS: u64 = 3;

/// Events in a second while each reader follows an object, and while each follows everything.
const RATE: usize = 5_000;
const RATE_OF_EVERYTHING: usize = 500;
/// Of ten readers of an object, one is a reader of everything.
const FEWER: usize = 10;
/// The smaller crowd is a quarter of the larger.
const QUARTER: usize = 4;
/// How long one side emits at full speed before it is the other's turn, and how often it is.
const TURN: Duration = Duration::from_secs(2);
const TURNS: usize = 3;

/// Those who emit as fast as they are answered: about as much as the readers are measured with at a steady pace, and as
/// much as there can be.
const SHAPES: [Shape; 2] = [Shape { producers: 2, batch: 1 }, Shape { producers: 8, batch: 100 }];

pub(crate) async fn measure(options: &Options, begin: &mut dyn FnMut(&str)) -> anyhow::Result<Vec<Figure>> {
    let dir = tempfile::tempdir_in(&options.dir)?;
    let wish = 2 * options.readers;
    let readers = files::readers(wish);
    let stage = Stage::set(dir.path(), readers, Duration::from_secs(options.seconds) / 4).await?;
    begin(&format!("{readers} readers of one object each at {RATE} events/s, and a quarter of them"));
    let mut figures = stage.one_object_each().await?;
    begin(&format!("emits at full speed beside {readers} readers, and without them"));
    figures.extend(stage.full_speed().await?);
    begin(&format!("{} readers of everything at {RATE_OF_EVERYTHING} events/s", readers / FEWER));
    figures.extend(stage.everything().await?);
    stage.end().await;
    if readers < wish {
        for figure in &mut figures {
            figure.name.push_str(&format!(" (fewer than {wish}: too few files may be open)"));
        }
    }
    Ok(figures)
}

/// Two servers, one of which is read from.
struct Stage {
    calm: House,
    watched: House,
    readers: usize,
    time: Duration,
}

/// What a pace came to with a crowd of readers.
struct Paced {
    rate: f64,
    /// How long each event took to reach all of its readers, in milliseconds.
    took: Vec<f64>,
}

impl Stage {
    /// There are as many objects as readers.
    async fn set(dir: &Path, readers: usize, time: Duration) -> anyhow::Result<Self> {
        let calm = House::start(dir, "calm.db", readers, readers).await?;
        let watched = House::start(dir, "watched.db", readers, readers).await?;
        Ok(Self { calm, watched, readers, time })
    }

    async fn one_object_each(&self) -> anyhow::Result<Vec<Figure>> {
        let without = self.calm.paced(RATE, self.time).await?;
        let few = self.paced(Follow::OneObjectEach, self.readers / QUARTER, RATE).await?;
        let all = self.paced(Follow::OneObjectEach, self.readers, RATE).await?;
        let who = format!("{} readers of one object each", self.readers);
        let name = format!("events emitted at a pace of {RATE}/s, {who}, half by long poll and half by SSE");
        let mut figures = vec![
            Figure::new(name, all.rate, Unit::PerSecond).against("without readers", without).at_least(0.7),
        ];
        figures.extend(growth(&who, RATE, all, few));
        Ok(figures)
    }

    async fn everything(&self) -> anyhow::Result<Vec<Figure>> {
        let readers = self.readers / FEWER;
        let without = self.calm.paced(RATE_OF_EVERYTHING, self.time).await?;
        let few = self.paced(Follow::Everything, readers / QUARTER, RATE_OF_EVERYTHING).await?;
        let all = self.paced(Follow::Everything, readers, RATE_OF_EVERYTHING).await?;
        let who = format!("{readers} readers of everything");
        let name = format!("events emitted at a pace of {RATE_OF_EVERYTHING}/s, {who}");
        let mut figures = vec![
            Figure::new(name, all.rate, Unit::PerSecond).against("without readers", without).at_least(0.7),
        ];
        figures.extend(growth(&who, RATE_OF_EVERYTHING, all, few));
        Ok(figures)
    }

    /// Emits at a steady pace before so many readers.
    async fn paced(&self, follow: Follow, readers: usize, rate: usize) -> anyhow::Result<Paced> {
        let mut crowd = Crowd::gather(&self.watched, follow, readers).await?;
        let rate = self.watched.paced(rate, self.time).await?;
        crowd.caught_up(&self.watched).await?;
        Ok(Paced { rate, took: crowd.took() })
    }

    /// Emits as fast as they are answered, with readers and without.
    async fn full_speed(&self) -> anyhow::Result<Vec<Figure>> {
        let turn = TURN.min(self.time / 2);
        let mut crowd = Crowd::gather(&self.watched, Follow::OneObjectEach, self.readers).await?;
        let mut figures = Vec::new();
        for shape in SHAPES {
            let (mut with, mut without) = (0.0, 0.0);
            for _ in 0..TURNS {
                without += self.calm.full_speed(shape, turn).await?;
                with += self.watched.full_speed(shape, turn).await?;
                crowd.caught_up(&self.watched).await?;
            }
            let name = format!("emits acknowledged, {shape}, {} readers of one object each", self.readers);
            let figure = Figure::new(name, with / TURNS as f64, Unit::PerSecond)
                .against("without readers", without / TURNS as f64);
            // In batches there are far more than the readers can be sent on the cores that they share with the server.
            figures.push(if shape.batch == 1 { figure.at_least(0.7) } else { figure });
        }
        Ok(figures)
    }

    async fn end(self) {
        self.calm.stop().await;
        self.watched.stop().await;
    }
}

/// The times beside those with a quarter of the readers.
fn growth(who: &str, rate: usize, mut all: Paced, mut few: Paced) -> Vec<Figure> {
    [(0.5, "p50"), (0.99, "p99")]
        .map(|(part, word)| {
            let name = format!("until an event has reached all of its readers, {word}, {who}, at {rate}/s");
            Figure::new(name, percentile(&mut all.took, part), Unit::Milliseconds)
                .against(format!("with a quarter of them, {word}"), percentile(&mut few.took, part))
                .at_most(QUARTER as f64)
        })
        .into()
}
