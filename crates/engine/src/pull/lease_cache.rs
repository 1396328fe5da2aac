//! A cache of the leases of pull workers: the task, its lease, and the log quota of its attempt. An entry is dropped
//! when the attempt ends or the lease has expired.
//!
//! A lease that was granted by another node, or by this one before a restart, is read from the store on the worker's
//! next request.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pointsman_core::store::{Store, StoreError, Tasks};
use pointsman_core::task::{LogLine, Task, TaskCommandError, TaskState};
use pointsman_core::{EventId, TaskId, Timestamp};

use super::used_log_quota;
use crate::claimed_task_summary::ClaimedTaskSummary;
use crate::log_writer::LogQuota;

/// How long an expired lease is kept: other nodes may not have freed the task yet, and clocks may differ.
const EXPIRED_LEASE_RETENTION: Duration = Duration::from_secs(60);
/// The maximum lease duration that is inferred from how long a task has been leased.
const MAX_INFERRED_LEASE: Duration = Duration::from_secs(3600);

/// The leases of pull workers, by their fence.
#[derive(Debug, Default)]
pub(crate) struct LeaseCache(Mutex<HashMap<i64, CachedLease>>);

#[derive(Debug)]
struct CachedLease {
    task_summary: ClaimedTaskSummary,
    leased_at: Timestamp,
    expires_at: Timestamp,
    /// The duration of the lease when it was granted, and of renewals that name no duration.
    lease_duration: Duration,
    log_quota: LogQuota,
}

impl LeaseCache {
    pub(crate) fn insert(&self, task: ClaimedTaskSummary, leased_at: Timestamp, duration: Duration) {
        let cached_lease = CachedLease {
            leased_at,
            expires_at: leased_at.plus(duration),
            lease_duration: duration,
            log_quota: LogQuota::default(),
            task_summary: task,
        };
        self.lock_leases().insert(cached_lease.task_summary.fence, cached_lease);
    }

    /// Finds the task that is leased under this fence, in the cache or in the store.
    pub(crate) async fn find_leased_task(
        &self,
        store: &dyn Store,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<ClaimedTaskSummary, TaskCommandError>, StoreError> {
        if let Some(cached_lease) = self.lock_leases().get(&fence) {
            return Ok(if cached_lease.task_summary.id == *id {
                Ok(cached_lease.task_summary.clone())
            } else {
                Err(TaskCommandError::StaleFence)
            });
        }
        let (task, leased_at, expires_at) = match read_task_with_lease(store, id, fence).await? {
            Ok(lease) => lease,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let task = build_leased_task_summary(store, task, fence).await?;
        let log_quota = used_log_quota::read_used_log_quota(store, &task, leased_at).await?;
        // If the lease was renewed since the claim, this duration is too long, but never too short.
        let duration = expires_at.duration_since(leased_at).min(MAX_INFERRED_LEASE);
        let cached_lease = CachedLease {
            task_summary: task.clone(),
            leased_at,
            expires_at,
            lease_duration: duration,
            log_quota,
        };
        // A concurrent request may have inserted the lease and counted log lines already.
        self.lock_leases().entry(fence).or_insert(cached_lease);
        Ok(Ok(task))
    }

    /// Checks in the store whether the lease still exists. If not, drops it from the cache and returns why.
    pub(crate) async fn drop_cached_lease_if_lost(
        &self,
        tasks: &dyn Tasks,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<(), TaskCommandError>, StoreError> {
        let lease = read_task_with_lease(tasks, id, fence).await?.map(|_| ());
        if lease.is_err() {
            self.drop_cached_lease(fence);
        }
        Ok(lease)
    }

    /// The duration of a renewal that names none: that of the lease when it was granted.
    pub(crate) fn lease_duration(&self, fence: i64) -> Option<Duration> {
        self.lock_leases().get(&fence).map(|cached_lease| cached_lease.lease_duration)
    }

    pub(crate) fn set_lease_expiry(&self, fence: i64, expires_at: Timestamp) {
        if let Some(cached_lease) = self.lock_leases().get_mut(&fence) {
            cached_lease.expires_at = expires_at;
        }
    }

    /// Returns the lines that are within the log quota of the attempt.
    pub(crate) fn admit_log_lines(&self, fence: i64, lines: Vec<LogLine>) -> Vec<LogLine> {
        match self.lock_leases().get_mut(&fence) {
            Some(cached_lease) => {
                lines.into_iter().filter_map(|line| cached_lease.log_quota.admit_line(line)).collect()
            }
            None => vec![],
        }
    }

    /// Gives back the quota of lines that were admitted but not stored.
    pub(crate) fn refund_log_lines(&self, fence: i64, lines: usize, bytes: usize) {
        if let Some(cached_lease) = self.lock_leases().get_mut(&fence) {
            cached_lease.log_quota.refund_lines(lines, bytes);
        }
    }

    pub(crate) fn log_quota(&self, fence: i64) -> LogQuota {
        self.lock_leases().get(&fence).map(|cached_lease| cached_lease.log_quota).unwrap_or_default()
    }

    pub(crate) fn leased_at(&self, fence: i64) -> Option<Timestamp> {
        self.lock_leases().get(&fence).map(|cached_lease| cached_lease.leased_at)
    }

    pub(crate) fn drop_cached_lease(&self, fence: i64) {
        self.lock_leases().remove(&fence);
    }

    /// Drops leases that expired more than [`EXPIRED_LEASE_RETENTION`] ago.
    pub(crate) fn drop_expired_leases(&self, now: Timestamp) {
        self.lock_leases()
            .retain(|_, cached_lease| cached_lease.expires_at.plus(EXPIRED_LEASE_RETENTION) > now);
    }

    fn lock_leases(&self) -> MutexGuard<'_, HashMap<i64, CachedLease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the task and its lease from the store, if a pull worker has it under this fence.
async fn read_task_with_lease(
    tasks: &dyn Tasks,
    id: &TaskId,
    fence: i64,
) -> Result<Result<(Task, Timestamp, Timestamp), TaskCommandError>, StoreError> {
    let Some((task, _)) = tasks.read_task(id).await? else { return Ok(Err(TaskCommandError::NoSuchTask)) };
    Ok(match task.lifecycle.state {
        TaskState::Locked(lease) => match lease.until {
            Some(until) if lease.fence == fence => Ok((task, lease.since, until)),
            // A pull worker must not end a task that a node runs, whatever fence the request names.
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
async fn build_leased_task_summary(
    store: &dyn Store,
    task: Task,
    fence: i64,
) -> Result<ClaimedTaskSummary, StoreError> {
    let (cause, depth) = find_cause_of_emitted_events(store, &task).await?;
    Ok(ClaimedTaskSummary {
        max_result_bytes: task.max_result_bytes(),
        seq: task.seq,
        id: task.id,
        handler: task.handler,
        tenant: task.tenant,
        key: task.key,
        event_id: task.event_id,
        cause_event_id: cause,
        cause_depth: depth,
        attempt: task.lifecycle.attempt,
        fence,
    })
}

/// Finds the event that is the cause of the events a task emits, and the depth of its chain of causes, which is 0 if
/// the event has expired. For a step it is the event that created the order.
async fn find_cause_of_emitted_events(
    store: &dyn Store,
    task: &Task,
) -> Result<(Option<EventId>, u16), StoreError> {
    if let Some(id) = task.event_id {
        return Ok((Some(id), store.read_event(id).await?.map_or(0, |view| view.event.cause_depth())));
    }
    let order = match task.order_key() {
        Some(order) => store.read_order(&task.tenant, &order).await?,
        None => None,
    };
    let origin = order.and_then(|(view, _)| view.order.origin);
    Ok((origin.map(|origin| origin.event_id), origin.map_or(0, |origin| origin.cause_depth)))
}
