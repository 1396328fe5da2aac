//! Whether the tables of a server stay as they are at full load for minutes: how large they are, and how many rows in them
//! are dead, looked at over and over.
//!
//! No more than a few thousand tasks wait at a time, and of the journal and the history the newest are kept, so that
//! nothing has a reason to grow. The first third of the time is for the tables to find their size. What they come to in
//! the last is compared with the second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use pointsman_core::journal::Retention;
use pointsman_engine::{Engine, Settings};
use tokio::task::JoinSet;
use tokio_postgres::Client;

use crate::Options;
use crate::end_to_end::{BATCH, MANY_SLOTS, PRODUCERS};
use crate::ground::{Ground, Site};
use crate::report::{Course, Figure, Report, Unit};
use crate::rig::{self, Handled};

const JOURNAL: &str = "journal";
const TABLES: [&str; 4] = ["task", "queue", "version", JOURNAL];

/// So often it is looked at.
const LOOKS: u32 = 24;

/// So many tasks wait at most.
const WAITING: usize = 10_000;

/// So many events and ended tasks are kept.
const KEPT: u64 = 250_000;

/// The journal goes by slices as large as what is kept. After so many events the first has been dropped, and it is as
/// large as it will be.
const FULL: u64 = 2 * KEPT;

/// The size of each table with its indexes and slices, and how many of its rows are dead.
const LOOK: &str = "
    SELECT sum(pg_total_relation_size(part.oid))::bigint, coalesce(sum(pg_stat_get_dead_tuples(part.oid)), 0)::bigint
    FROM unnest($1::text[]) WITH ORDINALITY AS w (name, i)
    CROSS JOIN LATERAL (
        SELECT to_regclass('pointsman.' || w.name)::oid AS oid
        UNION ALL
        SELECT inhrelid FROM pg_inherits WHERE inhparent = to_regclass('pointsman.' || w.name)
    ) AS part
    GROUP BY w.i ORDER BY w.i";

pub(crate) async fn measure(options: &Options, site: &Site) -> anyhow::Result<Report> {
    let ground = site.ground()?;
    let Ground::Postgres(databases) = &ground else { bail!("only PostgreSQL is looked at") };
    let opened = ground.open("load").await?;
    let client = databases.connect("load").await?;
    let handled = Arc::new(Handled::default());
    let counter = handled.clone();
    let kept = Retention { count: KEPT, ..Retention::default() };
    let settings = Settings { slots: MANY_SLOTS, journal: kept, history: kept, ..Settings::default() };
    let engine = rig::engine(opened.store.clone(), settings, move |_| counter.add()).await?;
    let mut producers = Producers::start(&engine, &handled);
    let time = Duration::from_secs(options.load);
    let looked = tokio::select! {
        looked = look_on(&client, &handled, time) => looked?,
        failed = producers.fail() => return Err(failed),
    };
    producers.stop().await?;
    engine.stop(Duration::from_secs(10)).await;
    opened.store.close();
    Ok(judged(options.load, &looked))
}

/// Those who emit, and wait while too much waits.
struct Producers {
    stopped: Arc<AtomicBool>,
    running: JoinSet<anyhow::Result<()>>,
}

impl Producers {
    fn start(engine: &Engine, handled: &Arc<Handled>) -> Self {
        let (stopped, emitted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut running = JoinSet::new();
        for _ in 0..PRODUCERS {
            let (engine, handled) = (engine.clone(), handled.clone());
            let (stopped, emitted) = (stopped.clone(), emitted.clone());
            running.spawn(async move {
                while !stopped.load(Ordering::Relaxed) {
                    let from = emitted.fetch_add(BATCH, Ordering::Relaxed);
                    handled.reached(from.saturating_sub(WAITING) as u64).await;
                    engine.emit(rig::emission(from, BATCH)?).await?;
                }
                Ok(())
            });
        }
        Self { stopped, running }
    }

    /// Waits until one of them fails.
    async fn fail(&mut self) -> anyhow::Error {
        match self.running.join_next().await {
            Some(Ok(Err(error))) => error,
            Some(Err(error)) => error.into(),
            Some(Ok(Ok(()))) | None => anyhow::anyhow!("a producer has ended by itself"),
        }
    }

    async fn stop(mut self) -> anyhow::Result<()> {
        self.stopped.store(true, Ordering::Relaxed);
        while let Some(ended) = self.running.join_next().await {
            ended.context("a producer did not end")??;
        }
        Ok(())
    }
}

/// What a look found.
struct Look {
    /// Seconds since the begin.
    at: f64,
    /// Events handled until then.
    handled: u64,
    /// Events handled in a second since the look before.
    rate: f64,
    /// Of each table its size in megabytes, and how many rows are dead.
    tables: Vec<(f64, f64)>,
}

async fn look_on(client: &Client, handled: &Handled, time: Duration) -> anyhow::Result<Vec<Look>> {
    let look = client.prepare(LOOK).await?;
    let start = Instant::now();
    let (mut before, mut looks) = ((0.0, 0), Vec::new());
    let mut pace = tokio::time::interval(time / LOOKS);
    pace.tick().await;
    for _ in 0..LOOKS {
        pace.tick().await;
        let (at, handled) = (start.elapsed().as_secs_f64(), handled.count());
        let rate = (handled - before.1) as f64 / (at - before.0);
        before = (at, handled);
        let mut tables = Vec::new();
        for row in client.query(&look, &[&TABLES.as_slice()]).await? {
            let (bytes, dead): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            tables.push((bytes as f64 / 1e6, dead as f64));
        }
        looks.push(Look { at, handled, rate, tables });
    }
    Ok(looks)
}

/// What each table came to in the last third beside the second, and how it went.
fn judged(seconds: u64, looks: &[Look]) -> Report {
    let third = looks.len() / 3;
    let (second, last) = (&looks[third..2 * third], &looks[2 * third..]);
    let most = |looks: &[Look], of: &dyn Fn(&Look) -> f64| looks.iter().map(of).fold(0.0, f64::max);
    let mean = |looks: &[Look]| looks.iter().map(|look| look.rate).sum::<f64>() / looks.len() as f64;
    let name = format!("events end to end, last third of {seconds} s at full load");
    let mut figures =
        vec![Figure::new(name, mean(last), Unit::PerSecond).against("in the second third", mean(second))];
    let mut course = Course::new(format!("{seconds} s at full load"));
    course.add("handled", Unit::PerSecond, looks.iter().map(|look| look.rate));
    for (i, table) in TABLES.iter().enumerate() {
        let size = |look: &Look| look.tables[i].0;
        let dead = |look: &Look| look.tables[i].1;
        let name = format!("pointsman.{table}, at its largest in the last third of {seconds} s at full load");
        let figure = Figure::new(name, most(last, &size), Unit::Megabytes)
            .against("in the second third", most(second, &size));
        // A journal that has not been cut yet has a reason to grow.
        let grows = *table == JOURNAL && second.first().is_none_or(|look| look.handled < FULL);
        figures.push(if grows { figure } else { figure.no_more_than(1.2, 1.0) });
        let name =
            format!("dead rows of pointsman.{table}, at most in the last third of {seconds} s at full load");
        let figure = Figure::new(name, most(last, &dead), Unit::Rows);
        figures.push(figure.against("in the second third", most(second, &dead)).no_more_than(1.2, 10_000.0));
        course.add(*table, Unit::Megabytes, looks.iter().map(size));
        course.add(format!("dead in {table}"), Unit::Rows, looks.iter().map(dead));
    }
    course.times = looks.iter().map(|look| look.at).collect();
    Report { figures, courses: vec![course] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(size: impl Fn(u32) -> f64) -> Vec<Look> {
        let tables = |n| vec![(size(n), 0.0); TABLES.len()];
        (0..LOOKS).map(|n| Look { at: f64::from(n), handled: FULL, rate: 1.0, tables: tables(n) }).collect()
    }

    fn is_flat(looks: &[Look]) -> bool {
        judged(24, looks).figures.iter().all(|figure| figure.reached != Some(false))
    }

    #[test]
    fn what_grows_at_first_and_then_no_more_is_flat() {
        assert!(is_flat(&looks(|n| f64::from(n.min(8)) * 100.0)));
        assert!(is_flat(&looks(|n| 500.0 + f64::from(n % 4) * 100.0)), "a saw");
        assert!(is_flat(&looks(|n| 0.01 * f64::from(n))), "a few pages more are nothing");
    }

    #[test]
    fn what_goes_on_growing_is_not() {
        assert!(!is_flat(&looks(|n| f64::from(n) * 100.0)));
    }
    #[test]
    fn a_journal_may_grow_until_it_is_cut() {
        let mut looks = looks(|_| 100.0);
        for (n, look) in looks.iter_mut().enumerate() {
            (look.handled, look.tables[3].0) = (n as u64, 100.0 * n as f64);
        }
        assert!(is_flat(&looks));
        looks.iter_mut().for_each(|look| look.handled += FULL);
        assert!(!is_flat(&looks));
    }
}
