//! How long it takes from the emit until the handler starts, at a hundred events a second.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pointsman_engine::Settings;

use crate::ground::Site;
use crate::report::{Figure, Unit, percentile};
use crate::{Options, rig};

const PACE: Duration = Duration::from_millis(10);

/// Emits and bare commits take turns, so that both meet the same disk and the same neighbours.
pub(crate) async fn measure(options: &Options, site: &Site) -> anyhow::Result<Vec<Figure>> {
    let ground = site.ground()?;
    let store = ground.open("latency").await?.store;
    let mut bare = ground.bare().await?;
    let started: Arc<Mutex<Option<Instant>>> = Arc::default();
    let handled = Arc::new(rig::Handled::default());
    let (seen, counter) = (started.clone(), handled.clone());
    let engine = rig::engine(store, Settings::default(), move |_| {
        *seen.lock().unwrap_or_else(|e| e.into_inner()) = Some(Instant::now());
        counter.add();
    })
    .await?;
    let rounds = (options.seconds * 1000 / PACE.as_millis() as u64 / 2).max(50);
    let (mut ours, mut commits) = (Vec::new(), Vec::new());
    let mut pace = tokio::time::interval(PACE);
    for round in 0..rounds {
        pace.tick().await;
        commits.push(bare.commit(round as i64).await?);
        pace.tick().await;
        let begin = Instant::now();
        let emitting = engine.emit(rig::emission(round as usize, 1)?);
        let (receipt, ()) = tokio::join!(emitting, handled.reached(round + 1));
        receipt?;
        if let Some(start) = started.lock().unwrap_or_else(|e| e.into_inner()).take() {
            ours.push((start - begin).as_secs_f64() * 1000.0);
        }
    }
    engine.stop(Duration::from_secs(5)).await;
    let figure = |part: f64, name: &str, goal: f64, ours: &mut Vec<f64>, commits: &mut Vec<f64>| {
        let what = format!("emit to handler start, {name}, at 100/s");
        let figure = Figure::new(what, percentile(ours, part), Unit::Milliseconds)
            .against(format!("one bare durable commit, {name}"), percentile(commits, part));
        match site {
            Site::Disk(_) => figure.at_most(goal),
            // No goal is set where each look is a way there and back.
            Site::Server(_) | Site::Redis(_) => figure,
        }
    };
    Ok(vec![
        figure(0.5, "p50", 2.5, &mut ours, &mut commits),
        figure(0.99, "p99", 5.0, &mut ours, &mut commits),
    ])
}
