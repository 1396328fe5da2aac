//! The attempts that run on this node now, and how each of them is stopped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pointsman_core::TaskSeq;
use pointsman_core::store::{ClaimedTask, StoreError, TaskQueue};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Why an attempt is stopped before its handler ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// The attempt exceeded the timeout of its handler.
    TimedOut,
    /// The node stops and has waited long enough; the task is released.
    Draining,
    /// The task no longer belongs to this attempt: it was cancelled, or given to another node.
    TaskLost,
}

/// Identifies a running attempt, and stops it on request.
#[derive(Debug)]
pub(crate) struct AttemptControl {
    task_seq: TaskSeq,
    fence: i64,
    cancel_token: CancellationToken,
    stop_reason: OnceLock<StopReason>,
}

impl AttemptControl {
    /// Requests that the attempt ends. The first reason counts.
    pub(crate) fn request_stop(&self, reason: StopReason) {
        let _ = self.stop_reason.set(reason);
        self.cancel_token.cancel();
    }

    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.stop_reason.get().copied()
    }

    /// The token that is cancelled when the attempt is to end.
    pub(crate) fn cancel_token(&self) -> &CancellationToken {
        &self.cancel_token
    }
}

/// All running attempts, by their fence, which is unique.
#[derive(Debug, Default)]
pub(crate) struct RunningAttempts {
    attempts: Mutex<HashMap<i64, Arc<AttemptControl>>>,
    all_ended: Notify,
    is_draining: AtomicBool,
}

impl RunningAttempts {
    /// Adds an attempt that is about to start.
    pub(crate) fn add(&self, task: &ClaimedTask) -> Arc<AttemptControl> {
        let control = Arc::new(AttemptControl {
            task_seq: task.seq,
            fence: task.fence,
            cancel_token: CancellationToken::new(),
            stop_reason: OnceLock::new(),
        });
        let mut attempts = self.lock_attempts();
        if self.is_draining.load(Ordering::Acquire) {
            control.request_stop(StopReason::Draining);
        }
        attempts.insert(task.fence, control.clone());
        control
    }

    /// Removes an attempt whose end was handed to the worker.
    pub(crate) fn remove(&self, control: &AttemptControl) {
        let mut attempts = self.lock_attempts();
        attempts.remove(&control.fence);
        if attempts.is_empty() {
            self.all_ended.notify_waiters();
        }
    }

    /// Stops all attempts, and from now on each one that is added, so that their tasks are released.
    pub(crate) fn stop_all_attempts(&self) {
        let attempts = self.lock_attempts();
        self.is_draining.store(true, Ordering::Release);
        for control in attempts.values() {
            control.request_stop(StopReason::Draining);
        }
    }

    /// Waits until no attempt runs.
    pub(crate) async fn wait_until_empty(&self) {
        loop {
            let all_ended = self.all_ended.notified();
            if self.lock_attempts().is_empty() {
                return;
            }
            all_ended.await;
        }
    }

    /// Stops the attempts whose task the store no longer has locked under their fence.
    pub(crate) async fn stop_lost_attempts(&self, task_queue: &dyn TaskQueue) -> Result<(), StoreError> {
        let owned_tasks =
            self.lock_attempts().values().map(|control| (control.task_seq, control.fence)).collect();
        for fence in task_queue.find_lost_attempts(owned_tasks).await? {
            if let Some(control) = self.lock_attempts().get(&fence) {
                control.request_stop(StopReason::TaskLost);
            }
        }
        Ok(())
    }

    fn lock_attempts(&self) -> MutexGuard<'_, HashMap<i64, Arc<AttemptControl>>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
