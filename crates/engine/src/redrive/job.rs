//! One redrive at work.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::store::{StoreError, Tasks};
use pointsman_core::task::{Rejected, State};
use pointsman_core::{Rate, Status, TaskId, TaskSeq};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{PAGE, Redrive, RedriveState, read};
use crate::Engine;
use crate::time::{Patience, now};

/// How many tasks are retried in one transaction.
const BATCH: usize = 500;
/// With a rate, how often some are retried.
const BEAT: Duration = Duration::from_millis(100);
/// The most tasks that can go ahead of the others.
const MOST_CANARIES: usize = 1000;

pub(super) struct Job {
    engine: Engine,
    view: Arc<Mutex<Redrive>>,
    pace: Option<Pace>,
}

/// What a job found, the oldest first.
struct Found {
    tasks: VecDeque<TaskSeq>,
    /// What the first of them are called.
    names: VecDeque<TaskId>,
}

/// Keeps to a rate.
struct Pace {
    rate: Rate,
    next: Instant,
}

impl Pace {
    /// How many may go now, once it is their time.
    async fn turn(&mut self) -> usize {
        let step = self.rate.step().max(Duration::from_micros(1));
        let batch = (BEAT.as_micros() / step.as_micros()).clamp(1, BATCH as u128) as usize;
        sleep_until(self.next).await;
        // Time that was lost is not made up for by haste.
        self.next = self.next.max(Instant::now()) + step * batch as u32;
        batch
    }
}

impl Job {
    pub(super) fn new(engine: Engine, view: Arc<Mutex<Redrive>>) -> Self {
        let rate = read(&view).rate;
        Self { engine, view, pace: rate.map(|rate| Pace { rate, next: Instant::now() }) }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let ended = stop.run_until_cancelled(self.work()).await;
        let state = match ended {
            Some(Ok(())) => RedriveState::Done,
            Some(Err(why)) => RedriveState::Stopped(why),
            None => RedriveState::Stopped("it was told to stop".into()),
        };
        let mut view = read(&self.view);
        tracing::info!(job = view.id, by = view.by, ?state, retried = view.retried, "a redrive has ended");
        view.state = state;
        view.ended_at = Some(now());
    }

    async fn work(&mut self) -> Result<(), String> {
        let mut found = self.find().await?;
        let canary = read(&self.view).canary;
        if let Some(canaries) = canary {
            let first = self.first(&mut found, canaries.min(MOST_CANARIES)).await?;
            self.change(|view| view.state = RedriveState::Canary);
            self.watch(first).await?;
            self.change(|view| view.state = RedriveState::Running);
        }
        while !found.tasks.is_empty() {
            let most = self.turn().await.min(found.tasks.len());
            self.retry(found.tasks.drain(..most).collect()).await?;
        }
        Ok(())
    }

    async fn turn(&mut self) -> usize {
        match &mut self.pace {
            Some(pace) => pace.turn().await,
            None => BATCH,
        }
    }

    /// Reads what matches, which comes the newest first.
    async fn find(&self) -> Result<Found, String> {
        let (filter, canaries) = {
            let view = read(&self.view);
            (view.filter.clone(), view.canary.unwrap_or(0).min(MOST_CANARIES))
        };
        let mut found = Found { tasks: VecDeque::new(), names: VecDeque::new() };
        let mut before = None;
        loop {
            let page = self.patiently(|store| store.tasks(filter.clone(), before, PAGE)).await?;
            for task in page.tasks {
                found.tasks.push_front(task.seq);
                found.names.push_front(task.id);
                found.names.truncate(canaries);
            }
            self.change(|view| view.matched = found.tasks.len() as u64);
            before = page.next;
            if before.is_none() {
                return Ok(found);
            }
        }
    }

    /// Retries the first few, and answers what they are called.
    async fn first(&mut self, found: &mut Found, canaries: usize) -> Result<Vec<TaskId>, String> {
        let mut sent = Vec::new();
        let mut left = canaries.min(found.tasks.len());
        while left > 0 {
            let most = self.turn().await.min(left);
            left -= most;
            let results = self.retry(found.tasks.drain(..most).collect()).await?;
            let names = found.names.drain(..most.min(found.names.len()));
            sent.extend(names.zip(results).filter(|(_, result)| result.is_ok()).map(|(name, _)| name));
        }
        match sent.is_empty() && !found.tasks.is_empty() {
            true => Err("none of the first could be retried, so that they tell nothing of the others".into()),
            false => Ok(sent),
        }
    }

    /// Waits until these have ended, and well.
    async fn watch(&self, mut canaries: Vec<TaskId>) -> Result<(), String> {
        let mut patience = Patience::new();
        while let Some(id) = canaries.last() {
            let task = self.patiently(|store| store.task(id)).await?;
            match task.map(|(task, _)| (task.life.state, task.error)) {
                // One that was forgotten since has ended well: those in error are kept longest.
                None | Some((State::Done, _)) => {
                    canaries.pop();
                    patience.reset();
                }
                Some((State::Error { .. }, error)) => {
                    let why = error.map(|error| format!(": {error}")).unwrap_or_default();
                    return Err(format!("{id} stands in error again{why}"));
                }
                Some((State::Missing { .. }, _)) => {
                    return Err(format!("{id} is {}: its handler is gone", Status::Missing.as_str()));
                }
                Some((State::New { .. } | State::Scheduled | State::Locked(_), _)) => {
                    sleep(patience.wait()).await;
                }
            }
        }
        Ok(())
    }

    async fn retry(&self, tasks: Vec<TaskSeq>) -> Result<Vec<Result<(), Rejected>>, String> {
        let results = self.patiently(|store| store.retry(tasks.clone(), now())).await?;
        let retried = results.iter().filter(|result| result.is_ok()).count() as u64;
        self.change(|view| {
            view.retried += retried;
            view.refused += results.len() as u64 - retried;
        });
        self.engine.nudge();
        Ok(results)
    }

    /// Asks the store until it answers.
    async fn patiently<'a, T, F>(&'a self, ask: impl Fn(&'a dyn Tasks) -> F) -> Result<T, String>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut patience = Patience::new();
        loop {
            match ask(&**self.engine.store()).await {
                Ok(answer) => return Ok(answer),
                Err(error @ StoreError::Closed) => return Err(error.to_string()),
                Err(error) => {
                    self.engine.node().store_failed();
                    tracing::warn!(%error, "a redrive waits for the store");
                    sleep(patience.wait()).await;
                }
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Redrive)) {
        change(&mut read(&self.view));
    }
}
