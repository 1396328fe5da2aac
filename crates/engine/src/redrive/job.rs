//! One redrive at work.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::store::{StoreError, Tasks};
use pointsman_core::task::{Rejected, State, Task};
use pointsman_core::{Rate, Status, TaskId, TaskSeq};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{PAGE_SIZE, Redrive, RedriveState, read};
use crate::time::StoreBackoff;
use crate::{Engine, TaskChange};

/// How many tasks are retried in one transaction.
const RETRY_BATCH: usize = 500;
/// With a rate, how often some are retried.
const PACING_INTERVAL: Duration = Duration::from_millis(100);
/// The most tasks that can go ahead of the others.
const MAX_CANARIES: usize = 1000;

pub(super) struct RedriveJob {
    engine: Engine,
    view: Arc<Mutex<Redrive>>,
    pace: Option<RateLimiter>,
}

/// What a job found, the oldest first.
struct MatchedTasks {
    tasks: VecDeque<TaskSeq>,
    /// What the first of them are called.
    names: VecDeque<TaskId>,
}

/// Keeps to a rate.
struct RateLimiter {
    rate: Rate,
    next: Instant,
}

impl RateLimiter {
    /// How many may go now, once it is their time.
    async fn turn(&mut self) -> usize {
        let step = self.rate.step().max(Duration::from_micros(1));
        let batch = (PACING_INTERVAL.as_micros() / step.as_micros()).clamp(1, RETRY_BATCH as u128) as usize;
        sleep_until(self.next).await;
        // Time that was lost is not made up for by haste.
        self.next = self.next.max(Instant::now()) + step * batch as u32;
        batch
    }
}

impl RedriveJob {
    pub(super) fn new(engine: Engine, view: Arc<Mutex<Redrive>>) -> Self {
        let rate = read(&view).rate;
        Self { engine, view, pace: rate.map(|rate| RateLimiter { rate, next: Instant::now() }) }
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
        view.ended_at = Some(self.engine.now());
    }

    async fn work(&mut self) -> Result<(), String> {
        let mut found = self.find().await?;
        let canary = read(&self.view).canary;
        if let Some(canaries) = canary {
            let changes = self.engine.changes();
            let first = self.first(&mut found, canaries.min(MAX_CANARIES)).await?;
            self.change(|view| view.state = RedriveState::Canary);
            self.watch(first, changes).await?;
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
            None => RETRY_BATCH,
        }
    }

    /// Reads what matches, which comes the newest first.
    async fn find(&self) -> Result<MatchedTasks, String> {
        let (filter, canaries) = {
            let view = read(&self.view);
            (view.filter.clone(), view.canary.unwrap_or(0).min(MAX_CANARIES))
        };
        let mut found = MatchedTasks { tasks: VecDeque::new(), names: VecDeque::new() };
        let mut before = None;
        loop {
            let page = self.patiently(|store| store.tasks(filter.clone(), before, PAGE_SIZE)).await?;
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
    async fn first(&mut self, found: &mut MatchedTasks, canaries: usize) -> Result<Vec<TaskId>, String> {
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

    /// Waits until these have ended, and well. What this node runs it hears of at once, before the task could be
    /// forgotten; the store is asked about what others run, and has the last word on failures.
    async fn watch(
        &self,
        canaries: Vec<TaskId>,
        mut changes: broadcast::Receiver<TaskChange>,
    ) -> Result<(), String> {
        let mut left: BTreeSet<TaskId> = canaries.into_iter().collect();
        let mut patience = StoreBackoff::new();
        while let Some(first) = left.first() {
            let id = match timeout(patience.wait(), end_of(&left, &mut changes)).await {
                Ok(TaskChange { id, status: Status::Done, .. }) => {
                    left.remove(&id);
                    continue;
                }
                Ok(change) => change.id,
                Err(_) => first.clone(),
            };
            let task = self.patiently(|store| store.task(&id)).await?;
            if is_well(&id, task.map(|(task, _)| task).as_ref())? {
                left.remove(&id);
                patience.reset();
            }
        }
        Ok(())
    }

    async fn retry(&self, tasks: Vec<TaskSeq>) -> Result<Vec<Result<(), Rejected>>, String> {
        let results = self.patiently(|store| store.retry(tasks.clone(), self.engine.now())).await?;
        let retried = results.iter().filter(|result| result.is_ok()).count() as u64;
        self.change(|view| {
            view.retried += retried;
            view.refused += results.len() as u64 - retried;
        });
        self.engine.nudge();
        let again = tasks.iter().zip(&results).filter(|(_, result)| result.is_ok());
        let filter = read(&self.view).filter.clone();
        self.engine.tell_again(&filter, &again.map(|(task, _)| *task).collect()).await;
        Ok(results)
    }

    /// Asks the store until it answers.
    async fn patiently<'a, T, F>(&'a self, ask: impl Fn(&'a dyn Tasks) -> F) -> Result<T, String>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut patience = StoreBackoff::new();
        loop {
            match ask(&**self.engine.store()).await {
                Ok(answer) => return Ok(answer),
                Err(error @ StoreError::Closed) => return Err(error.to_string()),
                Err(error) => {
                    self.engine.node().store_failed();
                    tracing::debug!(%error, "a redrive waits for the store");
                    sleep(patience.wait()).await;
                }
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Redrive)) {
        change(&mut read(&self.view));
    }
}

/// The next of these tasks that is told to have ended, well or not.
async fn end_of(tasks: &BTreeSet<TaskId>, changes: &mut broadcast::Receiver<TaskChange>) -> TaskChange {
    loop {
        match changes.recv().await {
            Ok(change)
                if matches!(change.status, Status::Done | Status::Error | Status::Missing)
                    && tasks.contains(&change.id) =>
            {
                return change;
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Whether a canary has ended well, as the store has it; `false` while it goes on.
fn is_well(id: &TaskId, task: Option<&Task>) -> Result<bool, String> {
    let Some(task) = task else {
        return Err(format!("{id} was forgotten before it could be looked at"));
    };
    match task.life.state {
        State::Done => Ok(true),
        State::New { .. } | State::Scheduled | State::Locked(_) => Ok(false),
        State::Error { .. } => {
            let why = task.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            Err(format!("{id} stands in error again{why}"))
        }
        State::Missing { .. } => Err(format!("{id} is {}: its handler is gone", Status::Missing.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_canary_that_was_forgotten_nothing_is_known() {
        let why = is_well(&TaskId::from_text("h_a_1"), None).unwrap_err();
        assert_eq!(why, "h_a_1 was forgotten before it could be looked at");
    }
}
