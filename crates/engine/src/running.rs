//! The attempts that run on this node now, and how each of them is stopped.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pointsman_core::TaskSeq;
use pointsman_core::store::{Claimed, Store, StoreError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Why an attempt is stopped before it ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It took longer than its handler may.
    TimedOut,
    /// The node goes away; the task is given back.
    Draining,
    /// The task is no longer this attempt's: it was cancelled, or given to another node.
    Lost,
}

/// A running attempt, as seen from outside it.
#[derive(Debug)]
pub(crate) struct Control {
    task: TaskSeq,
    fence: i64,
    cancel: CancellationToken,
    stop: OnceLock<Stop>,
}

impl Control {
    /// Tells the attempt to end. The first reason counts.
    pub(crate) fn stop(&self, why: Stop) {
        let _ = self.stop.set(why);
        self.cancel.cancel();
    }

    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.stop.get().copied()
    }

    /// Cancelled when the attempt is to end.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }
}

/// All running attempts, by their fence, which no two ever share.
#[derive(Debug, Default)]
pub(crate) struct Running {
    attempts: Mutex<HashMap<i64, Arc<Control>>>,
    emptied: Notify,
    draining: AtomicBool,
}

impl Running {
    pub(crate) fn begin(&self, task: &Claimed) -> Arc<Control> {
        let control = Arc::new(Control {
            task: task.seq,
            fence: task.fence,
            cancel: CancellationToken::new(),
            stop: OnceLock::new(),
        });
        let mut attempts = self.attempts();
        if self.draining.load(Ordering::Acquire) {
            control.stop(Stop::Draining);
        }
        attempts.insert(task.fence, control.clone());
        control
    }

    /// The attempt is over, and its end has been handed on.
    pub(crate) fn end(&self, control: &Control) {
        let mut attempts = self.attempts();
        attempts.remove(&control.fence);
        if attempts.is_empty() {
            self.emptied.notify_waiters();
        }
    }

    /// Gives back what runs, and what a claim that is still under way brings.
    pub(crate) fn drain(&self) {
        let attempts = self.attempts();
        self.draining.store(true, Ordering::Release);
        for control in attempts.values() {
            control.stop(Stop::Draining);
        }
    }

    /// Waits until no attempt runs.
    pub(crate) async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.attempts().is_empty() {
                return;
            }
            emptied.await;
        }
    }

    /// Stops the attempts whose task the store no longer holds for them.
    pub(crate) async fn check(&self, store: &dyn Store) -> Result<(), StoreError> {
        let held = self.attempts().values().map(|control| (control.task, control.fence)).collect();
        for fence in store.lost(held).await? {
            if let Some(control) = self.attempts().get(&fence) {
                control.stop(Stop::Lost);
            }
        }
        Ok(())
    }

    fn attempts(&self) -> MutexGuard<'_, HashMap<i64, Arc<Control>>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
