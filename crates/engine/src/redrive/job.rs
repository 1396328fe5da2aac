//! The job of one redrive.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::store::{StoreError, Tasks};
use pointsman_core::task::{Task, TaskCommandError, TaskState};
use pointsman_core::{Rate, TaskId, TaskSeq, TaskStatus};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{PAGE_SIZE, RedriveState, RedriveStatus, lock_status};
use crate::time::StoreBackoff;
use crate::{Engine, TaskChange};

/// The maximum number of tasks that are retried in one transaction.
const MAX_TASKS_PER_BATCH: usize = 500;
/// With a rate limit, the interval between two batches.
const RATE_LIMITED_BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of canaries.
const MAX_CANARIES: usize = 1000;

pub(super) struct RedriveJob {
    engine: Engine,
    status: Arc<Mutex<RedriveStatus>>,
    rate_limiter: Option<RateLimiter>,
}

/// The tasks that match the filter of a job, the oldest first.
struct MatchedTasks {
    tasks: VecDeque<TaskSeq>,
    /// The ids of the first tasks, which are the canaries.
    canary_ids: VecDeque<TaskId>,
}

/// Limits the rate of retries.
struct RateLimiter {
    rate: Rate,
    next_batch_at: Instant,
}

impl RateLimiter {
    /// Waits until the next batch is due, and returns its size.
    async fn wait_for_batch_size(&mut self) -> usize {
        let step = self.rate.interval().max(Duration::from_micros(1));
        let batch = (RATE_LIMITED_BATCH_INTERVAL.as_micros() / step.as_micros())
            .clamp(1, MAX_TASKS_PER_BATCH as u128) as usize;
        sleep_until(self.next_batch_at).await;
        // A delay is not compensated by a higher rate later.
        self.next_batch_at = self.next_batch_at.max(Instant::now()) + step * batch as u32;
        batch
    }
}

impl RedriveJob {
    pub(super) fn new(engine: Engine, status: Arc<Mutex<RedriveStatus>>) -> Self {
        let rate = lock_status(&status).rate;
        Self {
            engine,
            status,
            rate_limiter: rate.map(|rate| RateLimiter { rate, next_batch_at: Instant::now() }),
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let ended = stop.run_until_cancelled(self.run_to_end()).await;
        let state = match ended {
            Some(Ok(())) => RedriveState::Done,
            Some(Err(reason)) => RedriveState::Stopped(reason),
            None => RedriveState::Stopped("on request".into()),
        };
        let mut status = lock_status(&self.status);
        tracing::info!(
            job = status.id,
            by = status.requested_by,
            ?state,
            retried = status.retried,
            "redrive ended"
        );
        status.state = state;
        status.ended_at = Some(self.engine.now());
    }

    async fn run_to_end(&mut self) -> Result<(), String> {
        let mut found = self.read_matching_tasks().await?;
        let canary = lock_status(&self.status).canary_count;
        if let Some(canaries) = canary {
            let changes = self.engine.subscribe_task_changes();
            let first = self.retry_canaries(&mut found, canaries.min(MAX_CANARIES)).await?;
            self.update_status(|status| status.state = RedriveState::WaitingForCanaries);
            self.wait_for_canaries(first, changes).await?;
            self.update_status(|status| status.state = RedriveState::Running);
        }
        while !found.tasks.is_empty() {
            let count = self.wait_for_batch_size().await.min(found.tasks.len());
            self.retry_batch(found.tasks.drain(..count).collect()).await?;
        }
        Ok(())
    }

    async fn wait_for_batch_size(&mut self) -> usize {
        match &mut self.rate_limiter {
            Some(limiter) => limiter.wait_for_batch_size().await,
            None => MAX_TASKS_PER_BATCH,
        }
    }

    /// Reads all matching tasks. The store returns the newest first.
    async fn read_matching_tasks(&self) -> Result<MatchedTasks, String> {
        let (filter, canaries) = {
            let status = lock_status(&self.status);
            (status.filter.clone(), status.canary_count.unwrap_or(0).min(MAX_CANARIES))
        };
        let mut found = MatchedTasks { tasks: VecDeque::new(), canary_ids: VecDeque::new() };
        let mut before = None;
        loop {
            let page =
                self.retry_store_call(|store| store.list_tasks(filter.clone(), before, PAGE_SIZE)).await?;
            for task in page.tasks {
                found.tasks.push_front(task.seq);
                found.canary_ids.push_front(task.id);
                found.canary_ids.truncate(canaries);
            }
            self.update_status(|status| status.matched = found.tasks.len() as u64);
            before = page.next;
            if before.is_none() {
                return Ok(found);
            }
        }
    }

    /// Retries the canaries, and returns their ids.
    async fn retry_canaries(
        &mut self,
        found: &mut MatchedTasks,
        canaries: usize,
    ) -> Result<Vec<TaskId>, String> {
        let mut sent = Vec::new();
        let mut left = canaries.min(found.tasks.len());
        while left > 0 {
            let count = self.wait_for_batch_size().await.min(left);
            left -= count;
            let results = self.retry_batch(found.tasks.drain(..count).collect()).await?;
            let ids = found.canary_ids.drain(..count.min(found.canary_ids.len()));
            sent.extend(ids.zip(results).filter(|(_, result)| result.is_ok()).map(|(id, _)| id));
        }
        match sent.is_empty() && !found.tasks.is_empty() {
            true => Err("none of the canaries could be retried, so the other tasks were not retried".into()),
            false => Ok(sent),
        }
    }

    /// Waits until all canaries have succeeded. Changes of this node arrive at once, before a task could expire; the
    /// store is read for tasks that other nodes run, and to confirm failures.
    async fn wait_for_canaries(
        &self,
        canaries: Vec<TaskId>,
        mut changes: broadcast::Receiver<TaskChange>,
    ) -> Result<(), String> {
        let mut left: BTreeSet<TaskId> = canaries.into_iter().collect();
        let mut backoff = StoreBackoff::new();
        while let Some(first) = left.first() {
            let id = match timeout(backoff.next_delay(), wait_for_task_end(&left, &mut changes)).await {
                Ok(TaskChange { id, status: TaskStatus::Done, .. }) => {
                    left.remove(&id);
                    continue;
                }
                Ok(change) => change.id,
                Err(_) => first.clone(),
            };
            let task = self.retry_store_call(|store| store.read_task(&id)).await?;
            if has_canary_succeeded(&id, task.map(|(task, _)| task).as_ref())? {
                left.remove(&id);
                backoff.reset();
            }
        }
        Ok(())
    }

    async fn retry_batch(&self, tasks: Vec<TaskSeq>) -> Result<Vec<Result<(), TaskCommandError>>, String> {
        let results =
            self.retry_store_call(|store| store.retry_tasks(tasks.clone(), self.engine.now())).await?;
        let retried = results.iter().filter(|result| result.is_ok()).count() as u64;
        self.update_status(|status| {
            status.retried += retried;
            status.refused += results.len() as u64 - retried;
        });
        self.engine.wake_services();
        let again = tasks.iter().zip(&results).filter(|(_, result)| result.is_ok());
        let filter = lock_status(&self.status).filter.clone();
        self.engine.notify_retried_tasks(&filter, &again.map(|(task, _)| *task).collect()).await;
        Ok(results)
    }

    /// Retries a store call until it succeeds.
    async fn retry_store_call<'a, T, F>(&'a self, call: impl Fn(&'a dyn Tasks) -> F) -> Result<T, String>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut backoff = StoreBackoff::new();
        loop {
            match call(&**self.engine.store()).await {
                Ok(answer) => return Ok(answer),
                Err(error @ StoreError::Closed) => return Err(error.to_string()),
                Err(error) => {
                    self.engine.node().count_store_error();
                    tracing::debug!(%error, "store call of a redrive failed; retrying");
                    sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    fn update_status(&self, update: impl FnOnce(&mut RedriveStatus)) {
        update(&mut lock_status(&self.status));
    }
}

/// Waits for the next of these tasks that is reported to have ended, successfully or not.
async fn wait_for_task_end(
    tasks: &BTreeSet<TaskId>,
    changes: &mut broadcast::Receiver<TaskChange>,
) -> TaskChange {
    loop {
        match changes.recv().await {
            Ok(change)
                if matches!(change.status, TaskStatus::Done | TaskStatus::Error | TaskStatus::Missing)
                    && tasks.contains(&change.id) =>
            {
                return change;
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Whether a canary has succeeded according to the store; `false` while it has not ended. A failure is an error.
fn has_canary_succeeded(id: &TaskId, task: Option<&Task>) -> Result<bool, String> {
    let Some(task) = task else {
        return Err(format!("{id} expired before its result could be read"));
    };
    match task.lifecycle.state {
        TaskState::Done => Ok(true),
        TaskState::New { .. } | TaskState::Scheduled | TaskState::Locked(_) => Ok(false),
        TaskState::Error { .. } => {
            let why = task.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            Err(format!("{id} failed again{why}"))
        }
        TaskState::Missing { .. } => {
            Err(format!("{id} is {}: its handler is no longer defined", TaskStatus::Missing.as_str()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_that_expired_is_an_error() {
        let why = has_canary_succeeded(&TaskId::from_text("h_a_1"), None).unwrap_err();
        assert_eq!(why, "h_a_1 expired before its result could be read");
    }
}
