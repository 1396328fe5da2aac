//! A cache of the leases of pull workers: the task, its lease, and the log quota of its attempt. An entry is dropped
//! when the attempt ends or the lease has expired.
//!
//! A lease that was granted by another node, or by this one before a restart, is read from the store on the worker's
//! next request.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pointsman_core::store::{Store, StoreError};
use pointsman_core::task::{LogLine, Task, TaskCommandError, TaskState};
use pointsman_core::{EventId, TaskId, Timestamp};

use super::log_usage;
use crate::claim_summary::ClaimSummary;
use crate::log_writer::LogQuota;

/// How long an expired lease is kept: other nodes may not have freed the task yet, and clocks may differ.
const EXPIRED_RETENTION: Duration = Duration::from_secs(60);
/// The maximum lease duration that is inferred from how long a task has been leased.
const MAX_INFERRED_LEASE: Duration = Duration::from_secs(3600);

#[derive(Debug, Default)]
pub(crate) struct LeaseCache(Mutex<HashMap<i64, CachedLease>>);

#[derive(Debug)]
struct CachedLease {
    task: ClaimSummary,
    leased_at: Timestamp,
    expires_at: Timestamp,
    /// The duration of the claim, and of renewals that give none.
    duration: Duration,
    log_quota: LogQuota,
}

impl LeaseCache {
    pub(crate) fn insert(&self, task: ClaimSummary, since: Timestamp, lease: Duration) {
        let leased = CachedLease {
            leased_at: since,
            expires_at: since.plus(lease),
            duration: lease,
            log_quota: LogQuota::default(),
            task,
        };
        self.lock_leases().insert(leased.task.fence, leased);
    }

    /// Finds the task that is leased under this fence, in the cache or in the store.
    pub(crate) async fn find_leased_task(
        &self,
        store: &dyn Store,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<ClaimSummary, TaskCommandError>, StoreError> {
        if let Some(leased) = self.lock_leases().get(&fence) {
            return Ok(if leased.task.id == *id {
                Ok(leased.task.clone())
            } else {
                Err(TaskCommandError::StaleFence)
            });
        }
        let (task, since, until) = match read_lease(store, id, fence).await? {
            Ok(lease) => lease,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let task = summarize_task(store, task, fence).await?;
        let allowance = log_usage::read_log_quota(store, &task, since).await?;
        // The lease may have been renewed since the claim; then this is too long, but never too short.
        let lease = until.duration_since(since).min(MAX_INFERRED_LEASE);
        let leased = CachedLease {
            task: task.clone(),
            leased_at: since,
            expires_at: until,
            duration: lease,
            log_quota: allowance,
        };
        // A concurrent request may have inserted it and counted lines already.
        self.lock_leases().entry(fence).or_insert(leased);
        Ok(Ok(task))
    }

    /// Drops the cached lease if the store no longer has it, and returns why.
    pub(crate) async fn drop_cached_lease_if_lost(
        &self,
        store: &dyn Store,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<(), TaskCommandError>, StoreError> {
        let lease = read_lease(store, id, fence).await?.map(|_| ());
        if lease.is_err() {
            self.drop_cached_lease(fence);
        }
        Ok(lease)
    }

    /// The duration of a renewal that gives none.
    pub(crate) fn lease_duration(&self, fence: i64) -> Option<Duration> {
        self.lock_leases().get(&fence).map(|leased| leased.duration)
    }

    pub(crate) fn set_expiry(&self, fence: i64, until: Timestamp) {
        if let Some(leased) = self.lock_leases().get_mut(&fence) {
            leased.expires_at = until;
        }
    }

    /// Returns the lines that are within the log quota of the attempt.
    pub(crate) fn admit_lines(&self, fence: i64, lines: Vec<LogLine>) -> Vec<LogLine> {
        match self.lock_leases().get_mut(&fence) {
            Some(leased) => lines.into_iter().filter_map(|line| leased.log_quota.admit_line(line)).collect(),
            None => vec![],
        }
    }

    /// Returns the quota of lines that were admitted but not stored.
    pub(crate) fn refund_lines(&self, fence: i64, lines: usize, bytes: usize) {
        if let Some(leased) = self.lock_leases().get_mut(&fence) {
            leased.log_quota.refund_lines(lines, bytes);
        }
    }

    pub(crate) fn log_quota(&self, fence: i64) -> LogQuota {
        self.lock_leases().get(&fence).map(|leased| leased.log_quota).unwrap_or_default()
    }

    pub(crate) fn leased_at(&self, fence: i64) -> Option<Timestamp> {
        self.lock_leases().get(&fence).map(|leased| leased.leased_at)
    }

    pub(crate) fn drop_cached_lease(&self, fence: i64) {
        self.lock_leases().remove(&fence);
    }

    /// Drops leases that expired long ago.
    pub(crate) fn drop_expired_leases(&self, now: Timestamp) {
        self.lock_leases().retain(|_, leased| leased.expires_at.plus(EXPIRED_RETENTION) > now);
    }

    fn lock_leases(&self) -> MutexGuard<'_, HashMap<i64, CachedLease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the task and its lease from the store, if a pull worker has it under this fence.
async fn read_lease(
    store: &dyn Store,
    id: &TaskId,
    fence: i64,
) -> Result<Result<(Task, Timestamp, Timestamp), TaskCommandError>, StoreError> {
    let Some((task, _)) = store.read_task(id).await? else { return Ok(Err(TaskCommandError::NoSuchTask)) };
    Ok(match task.lifecycle.state {
        TaskState::Locked(lease) => match lease.until {
            Some(until) if lease.fence == fence => Ok((task, lease.since, until)),
            // A worker must not end a task that a node runs, whatever fence it names.
            Some(_) | None => Err(TaskCommandError::StaleFence),
        },
        TaskState::New { .. }
        | TaskState::Scheduled
        | TaskState::Done
        | TaskState::Error { .. }
        | TaskState::Missing { .. } => Err(TaskCommandError::WrongState(task.lifecycle.state.status())),
    })
}

/// Builds the summary of a running task.
async fn summarize_task(store: &dyn Store, task: Task, fence: i64) -> Result<ClaimSummary, StoreError> {
    let (cause, depth) = find_cause(store, &task).await?;
    Ok(ClaimSummary {
        max_result_bytes: task.max_result_bytes(),
        seq: task.seq,
        id: task.id,
        handler: task.handler,
        tenant: task.tenant,
        key: task.key,
        event_id: task.event,
        cause_event_id: cause,
        cause_depth: depth,
        attempt: task.lifecycle.attempt,
        fence,
    })
}

/// Finds the event that causes what a task emits, and its depth. The depth is 0 if the task's event has expired. The
/// event that created an order is recorded with the order.
async fn find_cause(store: &dyn Store, task: &Task) -> Result<(Option<EventId>, u16), StoreError> {
    if let Some(id) = task.event {
        return Ok((Some(id), store.read_event(id).await?.map_or(0, |view| view.event.cause_depth())));
    }
    let order = match task.order() {
        Some(order) => store.read_order(&task.tenant, &order).await?,
        None => None,
    };
    let origin = order.and_then(|(view, _)| view.order.origin);
    Ok((origin.map(|origin| origin.event), origin.map_or(0, |origin| origin.cause_depth)))
}
