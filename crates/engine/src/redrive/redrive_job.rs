//! The job of one redrive.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_core::store::{StoreError, Tasks};
use pointsman_core::task::{Task, TaskCommandError, TaskState};
use pointsman_core::{ErrorChain, Rate, TaskId, TaskSeq, TaskStatus};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::{RedriveState, RedriveStatus, TASKS_PER_PAGE, lock_status};
use crate::time::StoreBackoff;
use crate::{Engine, TaskChange};

/// The maximum number of tasks that are retried in one transaction.
const MAX_TASKS_PER_BATCH: usize = 500;
/// The interval between two batches of a redrive with a rate limit.
const RATE_LIMITED_BATCH_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum number of canaries, whatever the request says.
const MAX_CANARIES: usize = 1000;

/// A running redrive.
pub(super) struct RedriveJob {
    engine: Engine,
    status: Arc<Mutex<RedriveStatus>>,
    rate_limiter: Option<RetryRateLimiter>,
}

/// The tasks that match the filter of a job, the oldest first.
struct MatchedTasks {
    task_seqs: VecDeque<TaskSeq>,
    /// The ids of the first tasks, which are the canaries.
    canary_ids: VecDeque<TaskId>,
}

/// Limits the rate at which a redrive retries tasks.
struct RetryRateLimiter {
    rate: Rate,
    next_batch_at: Instant,
}

impl RetryRateLimiter {
    /// Waits until the next batch is due, and returns its size.
    async fn wait_until_next_batch_is_due(&mut self) -> usize {
        let interval = self.rate.start_interval().max(Duration::from_micros(1));
        let batch_size = (RATE_LIMITED_BATCH_INTERVAL.as_micros() / interval.as_micros())
            .clamp(1, MAX_TASKS_PER_BATCH as u128) as usize;
        sleep_until(self.next_batch_at).await;
        // After a delay the rate stays the same: the delayed retries are not caught up.
        self.next_batch_at = self.next_batch_at.max(Instant::now()) + interval * batch_size as u32;
        batch_size
    }
}

impl RedriveJob {
    pub(super) fn new(engine: Engine, status: Arc<Mutex<RedriveStatus>>) -> Self {
        let rate = lock_status(&status).rate;
        Self {
            engine,
            status,
            rate_limiter: rate.map(|rate| RetryRateLimiter { rate, next_batch_at: Instant::now() }),
        }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let result = stop.run_until_cancelled(self.run_to_end()).await;
        let state = match result {
            Some(Ok(())) => RedriveState::Done,
            Some(Err(reason)) => RedriveState::Stopped(reason),
            None => RedriveState::Stopped("on request".into()),
        };
        let mut status = lock_status(&self.status);
        tracing::info!(
            redrive = status.id,
            requested_by = status.requested_by,
            ?state,
            retried_count = status.retried_count,
            "redrive ended; tasks that it did not retry stay in `error`"
        );
        status.state = state;
        status.ended_at = Some(self.engine.now());
    }

    async fn run_to_end(&mut self) -> Result<(), String> {
        let mut matched_tasks = self.read_matching_tasks().await?;
        let canary_count = lock_status(&self.status).canary_count;
        if let Some(canaries) = canary_count {
            let changes = self.engine.subscribe_task_changes();
            let canary_ids = self.retry_canaries(&mut matched_tasks, canaries.min(MAX_CANARIES)).await?;
            self.update_status(|status| status.state = RedriveState::WaitingForCanaries);
            self.wait_for_canaries(canary_ids, changes).await?;
            self.update_status(|status| status.state = RedriveState::Running);
        }
        while !matched_tasks.task_seqs.is_empty() {
            let count = self.wait_until_next_batch_is_due().await.min(matched_tasks.task_seqs.len());
            self.retry_batch(matched_tasks.task_seqs.drain(..count).collect()).await?;
        }
        Ok(())
    }

    async fn wait_until_next_batch_is_due(&mut self) -> usize {
        match &mut self.rate_limiter {
            Some(limiter) => limiter.wait_until_next_batch_is_due().await,
            None => MAX_TASKS_PER_BATCH,
        }
    }

    /// Reads all matching tasks. The store returns the newest first, and they are collected with the oldest first.
    async fn read_matching_tasks(&self) -> Result<MatchedTasks, String> {
        let (filter, canaries) = {
            let status = lock_status(&self.status);
            (status.filter.clone(), status.canary_count.unwrap_or(0).min(MAX_CANARIES))
        };
        let mut matched_tasks = MatchedTasks { task_seqs: VecDeque::new(), canary_ids: VecDeque::new() };
        let mut before = None;
        loop {
            let page = self
                .call_store_until_success(|store| store.list_tasks(filter.clone(), before, TASKS_PER_PAGE))
                .await?;
            for task in page.tasks {
                matched_tasks.task_seqs.push_front(task.seq);
                matched_tasks.canary_ids.push_front(task.id);
                matched_tasks.canary_ids.truncate(canaries);
            }
            self.update_status(|status| status.matched_count = matched_tasks.task_seqs.len() as u64);
            before = page.next_cursor;
            if before.is_none() {
                return Ok(matched_tasks);
            }
        }
    }

    /// Retries the canaries, and returns the ids of those that could be retried; an error if none could.
    async fn retry_canaries(
        &mut self,
        matched_tasks: &mut MatchedTasks,
        canaries: usize,
    ) -> Result<Vec<TaskId>, String> {
        let mut retried_canaries = Vec::new();
        let mut remaining = canaries.min(matched_tasks.task_seqs.len());
        while remaining > 0 {
            let count = self.wait_until_next_batch_is_due().await.min(remaining);
            remaining -= count;
            let results = self.retry_batch(matched_tasks.task_seqs.drain(..count).collect()).await?;
            let ids = matched_tasks.canary_ids.drain(..count.min(matched_tasks.canary_ids.len()));
            retried_canaries.extend(ids.zip(results).filter(|(_, result)| result.is_ok()).map(|(id, _)| id));
        }
        match retried_canaries.is_empty() && !matched_tasks.task_seqs.is_empty() {
            true => Err("none of the canaries could be retried, so the other tasks were not retried".into()),
            false => Ok(retried_canaries),
        }
    }

    /// Waits until all canaries have succeeded; an error if one has failed. The node notifies the job of canaries that
    /// end here, before retention could delete them. The store is read for canaries that run on other nodes, and to
    /// confirm a failure.
    async fn wait_for_canaries(
        &self,
        canaries: Vec<TaskId>,
        mut changes: broadcast::Receiver<TaskChange>,
    ) -> Result<(), String> {
        let mut unfinished: BTreeSet<TaskId> = canaries.into_iter().collect();
        let mut backoff = StoreBackoff::new();
        while let Some(first) = unfinished.first() {
            let id = match timeout(backoff.next_delay(), wait_for_first_task_end(&unfinished, &mut changes))
                .await
            {
                Ok(TaskChange { id, status: TaskStatus::Done, .. }) => {
                    unfinished.remove(&id);
                    continue;
                }
                Ok(change) => change.id,
                Err(_) => first.clone(),
            };
            let task = self.call_store_until_success(|store| store.read_task(&id)).await?;
            if has_canary_succeeded(&id, task.map(|(task, _)| task).as_ref())? {
                unfinished.remove(&id);
                backoff.reset();
            }
        }
        Ok(())
    }

    /// Retries these tasks in one transaction, counts the results, and notifies watchers.
    async fn retry_batch(&self, tasks: Vec<TaskSeq>) -> Result<Vec<Result<(), TaskCommandError>>, String> {
        let results = self
            .call_store_until_success(|store| store.retry_tasks(tasks.clone(), self.engine.now()))
            .await?;
        let retried = results.iter().filter(|result| result.is_ok()).count() as u64;
        self.update_status(|status| {
            status.retried_count += retried;
            status.refused_count += results.len() as u64 - retried;
        });
        self.engine.wake_services();
        let retried_tasks = tasks.iter().zip(&results).filter(|(_, result)| result.is_ok());
        let filter = lock_status(&self.status).filter.clone();
        self.engine
            .notify_watchers_of_retried_tasks(&filter, &retried_tasks.map(|(task, _)| *task).collect())
            .await;
        Ok(results)
    }

    /// Repeats a store call until it succeeds; an error only if the store is closed.
    async fn call_store_until_success<'a, T, F>(
        &'a self,
        call: impl Fn(&'a dyn Tasks) -> F,
    ) -> Result<T, String>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut backoff = StoreBackoff::new();
        loop {
            match call(&**self.engine.store()).await {
                Ok(value) => return Ok(value),
                Err(error @ StoreError::Closed) => return Err(error.to_string()),
                Err(error) => {
                    self.engine.node().count_store_error();
                    tracing::debug!(
                        error = %ErrorChain(&error),
                        "store call of a redrive failed; the redrive waits and retries until the store is available"
                    );
                    sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    fn update_status(&self, update: impl FnOnce(&mut RedriveStatus)) {
        update(&mut lock_status(&self.status));
    }
}

/// Waits until the node reports that one of these tasks has ended, successfully or not.
async fn wait_for_first_task_end(
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

/// Whether a canary has succeeded, by its task in the store; `false` while it has not ended. Returns an error if the
/// canary has failed, or if retention has deleted it.
fn has_canary_succeeded(id: &TaskId, task: Option<&Task>) -> Result<bool, String> {
    let Some(task) = task else {
        return Err(format!("{id} was deleted by retention before its result could be read"));
    };
    match task.lifecycle.state {
        TaskState::Done => Ok(true),
        TaskState::New { .. } | TaskState::Scheduled | TaskState::Locked(_) => Ok(false),
        TaskState::Error { .. } => {
            let reason = task.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            Err(format!("{id} failed again{reason}"))
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
    fn a_canary_deleted_by_retention_is_an_error() {
        let reason = has_canary_succeeded(&TaskId::from_text("h_a_1"), None).unwrap_err();
        assert_eq!(reason, "h_a_1 was deleted by retention before its result could be read");
    }
}
