//! What this node remembers of the leases that workers come back for: whose task it is, since when and for how long it
//! was given, and how much its attempt may still log. Forgotten with the attempt, or when the lease has run out.
//!
//! A lease that another node gave out, or this one before it was started anew, is read from the store when its worker
//! comes.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pointsman_core::store::{Store, StoreError};
use pointsman_core::task::{LogLine, Rejected, State, Task};
use pointsman_core::{EventId, TaskId, Timestamp};

use super::log_usage;
use crate::claim_summary::ClaimSummary;
use crate::log_writer::LogQuota;

/// A lease that ran out so long ago is nobody's: others had the time to take it, and no clock is this wrong.
const EXPIRED_RETENTION: Duration = Duration::from_secs(60);
/// The longest lease that is read from how long a task has been held.
const MAX_INFERRED_LEASE: Duration = Duration::from_secs(3600);

#[derive(Debug, Default)]
pub(crate) struct LeaseCache(Mutex<HashMap<i64, CachedLease>>);

#[derive(Debug)]
struct CachedLease {
    task: ClaimSummary,
    leased_at: Timestamp,
    expires_at: Timestamp,
    /// What it was claimed for, and is renewed by where nothing else is said.
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

    /// The task that is leased under this fence.
    pub(crate) async fn find_task(
        &self,
        store: &dyn Store,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<ClaimSummary, Rejected>, StoreError> {
        if let Some(leased) = self.lock_leases().get(&fence) {
            return Ok(if leased.task.id == *id {
                Ok(leased.task.clone())
            } else {
                Err(Rejected::StaleFence)
            });
        }
        let (task, since, until) = match read_lease(store, id, fence).await? {
            Ok(lease) => lease,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let task = summarize_task(store, task, fence).await?;
        let allowance = log_usage::read_log_quota(store, &task, since).await?;
        // It may have been renewed since it was claimed; then this is too long, never too short.
        let lease = until.since(since).min(MAX_INFERRED_LEASE);
        let leased = CachedLease {
            task: task.clone(),
            leased_at: since,
            expires_at: until,
            duration: lease,
            log_quota: allowance,
        };
        // Whoever was quicker has counted lines already.
        self.lock_leases().entry(fence).or_insert(leased);
        Ok(Ok(task))
    }

    /// Forgets the lease if the store no longer knows of it, and says why.
    pub(crate) async fn drop_if_lost(
        &self,
        store: &dyn Store,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<(), Rejected>, StoreError> {
        let lease = read_lease(store, id, fence).await?.map(|_| ());
        if lease.is_err() {
            self.drop_cached_lease(fence);
        }
        Ok(lease)
    }

    /// How long a lease lasts that is renewed without a word.
    pub(crate) fn lease_duration(&self, fence: i64) -> Option<Duration> {
        self.lock_leases().get(&fence).map(|leased| leased.duration)
    }

    pub(crate) fn set_expiry(&self, fence: i64, until: Timestamp) {
        if let Some(leased) = self.lock_leases().get_mut(&fence) {
            leased.expires_at = until;
        }
    }

    /// Those of the lines that are within what the attempt may log.
    pub(crate) fn admit_lines(&self, fence: i64, lines: Vec<LogLine>) -> Vec<LogLine> {
        match self.lock_leases().get_mut(&fence) {
            Some(leased) => lines.into_iter().filter_map(|line| leased.log_quota.admit_line(line)).collect(),
            None => vec![],
        }
    }

    /// So many lines of so many bytes were admitted and not logged after all.
    pub(crate) fn refund_lines(&self, fence: i64, lines: usize, bytes: usize) {
        if let Some(leased) = self.lock_leases().get_mut(&fence) {
            leased.log_quota.refund(lines, bytes);
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

    /// Forgets what ran out long ago.
    pub(crate) fn drop_expired(&self, now: Timestamp) {
        self.lock_leases().retain(|_, leased| leased.expires_at.plus(EXPIRED_RETENTION) > now);
    }

    fn lock_leases(&self) -> MutexGuard<'_, HashMap<i64, CachedLease>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task if a worker holds it under this fence, since when and until when.
async fn read_lease(
    store: &dyn Store,
    id: &TaskId,
    fence: i64,
) -> Result<Result<(Task, Timestamp, Timestamp), Rejected>, StoreError> {
    let Some((task, _)) = store.task(id).await? else { return Ok(Err(Rejected::NoSuchTask)) };
    Ok(match task.life.state {
        State::Locked(lease) => match lease.until {
            Some(until) if lease.fence == fence => Ok((task, lease.since, until)),
            // What a node runs is not for workers to end, whatever fence they name.
            Some(_) | None => Err(Rejected::StaleFence),
        },
        State::New { .. } | State::Scheduled | State::Done | State::Error { .. } | State::Missing { .. } => {
            Err(Rejected::WrongState(task.life.state.status()))
        }
    })
}

/// A running task as it is remembered.
async fn summarize_task(store: &dyn Store, task: Task, fence: i64) -> Result<ClaimSummary, StoreError> {
    let (cause, depth) = find_cause(store, &task).await?;
    Ok(ClaimSummary {
        max_result_bytes: task.max_result(),
        seq: task.seq,
        id: task.id,
        handler: task.handler,
        tenant: task.tenant,
        key: task.key,
        event_id: task.event,
        cause_event_id: cause,
        cause_depth: depth,
        attempt: task.life.attempt,
        fence,
    })
}

/// The event that causes what a task emits, and how deep that lies. Where the journal has forgotten the task's event,
/// nobody knows what had caused that; of the event that made an order, the order knows.
async fn find_cause(store: &dyn Store, task: &Task) -> Result<(Option<EventId>, u16), StoreError> {
    if let Some(id) = task.event {
        return Ok((Some(id), store.event(id).await?.map_or(0, |view| view.event.depth())));
    }
    let order = match task.order() {
        Some(order) => store.order(&task.tenant, &order).await?,
        None => None,
    };
    let origin = order.and_then(|(view, _)| view.order.origin);
    Ok((origin.map(|origin| origin.event), origin.map_or(0, |origin| origin.depth)))
}
