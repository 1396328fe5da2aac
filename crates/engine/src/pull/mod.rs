//! The pull API: workers outside this process lease tasks, renew their leases, log, and end the tasks.
//!
//! ```text
//!   pull ─▶ broker ─▶ store.claim ─▶ leased tasks ─▶ the worker … renew, log, end ─▶ store
//! ```
//!
//! The store alone decides: a task belongs to the worker that has its fence, and an expired lease frees it. The cached
//! leases of this node ([`lease_cache`]) only save reads; a worker may send its next request to another node.

mod broker;
mod lease_cache;
mod used_log_quota;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{AttemptLogLine, AttemptResult, ClaimedTask, FinishReceipt, StoreError};
use pointsman_core::task::{LogLine, TaskCommandError};
use pointsman_core::{HandlerName, TaskId, Tenant, Timestamp};
use tokio::time::Instant;

use crate::attempt_ending::{EndedAttempt, MIN_SNOOZE, build_finished_attempt};
use crate::claimed_task_summary::ClaimedTaskSummary;
use crate::node::Node;
use crate::{Engine, HandlerOutcome};

use broker::PullFilter;
pub(crate) use broker::{LongPollBroker, LongPollService};
pub(crate) use lease_cache::LeaseCache;

/// The maximum time that a pull waits for tasks, whatever the worker requests.
const MAX_PULL_WAIT: Duration = Duration::from_secs(24 * 3600);

/// The duration of a renewal if neither the request nor the cache gives one.
const DEFAULT_LEASE_RENEWAL: Duration = Duration::from_secs(60);

/// A pull worker's request for tasks.
#[derive(Clone, Debug)]
pub struct PullRequest {
    /// The handlers that the worker can run. Only tasks of pulled handlers are leased.
    pub handlers: BTreeSet<HandlerName>,
    /// The maximum number of tasks.
    pub max_tasks: usize,
    /// How long to wait for the first task.
    pub max_wait: Duration,
    /// The duration of the leases.
    pub lease_duration: Duration,
    /// Only tasks of this tenant are leased; of all tenants if `None`.
    pub tenant: Option<Tenant>,
}

/// The part of a leased task that is needed to authorise and check a worker's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasedTaskInfo {
    /// The tenant of the task.
    pub tenant: Tenant,
    /// The maximum size of the task's JSON result, in bytes.
    pub max_result_bytes: usize,
}

impl Engine {
    /// Leases tasks to a worker, at once or as soon as there are some. Returns none if there are none within
    /// `max_wait`, or when the node stops.
    /// Dropping the future releases tasks that were claimed for it.
    pub async fn pull_tasks(&self, request: PullRequest) -> Result<Vec<ClaimedTask>, StoreError> {
        let PullRequest { handlers, max_tasks, max_wait, lease_duration: lease, tenant } = request;
        if handlers.is_empty() || max_tasks == 0 {
            return Ok(vec![]);
        }
        let node = self.node();
        let filter = PullFilter { handlers: Arc::new(handlers), tenant, lease_duration: lease };
        let deadline = Instant::now() + max_wait.min(MAX_PULL_WAIT);
        loop {
            let Some(granted) = node.pull_broker.wait_for_tasks(filter.clone(), max_tasks, deadline).await?
            else {
                return Ok(vec![]);
            };
            // Tasks that were paused since the claim are returned.
            let (paused, tasks): (Vec<_>, Vec<_>) = granted
                .into_tasks()
                .partition(|(version, task)| node.start_gate.is_paused_since(*version, task));
            node.pull_broker.return_undelivered_tasks(paused.into_iter().map(|(_, task)| task).collect());
            if !tasks.is_empty() {
                return Ok(tasks
                    .into_iter()
                    .map(|(_, task)| record_leased_attempt_start(node, task, lease))
                    .collect());
            }
        }
    }

    /// Finds the task that a worker has leased under this fence. Costs nothing if this node granted the lease.
    pub async fn find_leased_task(
        &self,
        id: &TaskId,
        fence: i64,
    ) -> Result<Result<LeasedTaskInfo, TaskCommandError>, StoreError> {
        let node = self.node();
        let found = node.lease_cache.find_leased_task(&*node.store, id, fence).await?;
        Ok(found.map(|task| LeasedTaskInfo { tenant: task.tenant, max_result_bytes: task.max_result_bytes }))
    }

    /// Renews a worker's lease for this duration from now, or for the duration of its claim if none is given. Returns
    /// when the lease expires.
    pub async fn renew_lease(
        &self,
        id: &TaskId,
        fence: i64,
        lease: Option<Duration>,
    ) -> Result<Result<Timestamp, TaskCommandError>, StoreError> {
        let node = self.node();
        let task = match node.lease_cache.find_leased_task(&*node.store, id, fence).await? {
            Ok(task) => task,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let lease = lease.or_else(|| node.lease_cache.lease_duration(fence)).unwrap_or(DEFAULT_LEASE_RENEWAL);
        let expires_at = node.time_source.now().plus(lease);
        let renewed = node.store.renew_pull_worker_lease(task.seq, fence, expires_at).await?;
        match renewed {
            Ok(()) => node.lease_cache.set_lease_expiry(fence, expires_at),
            Err(_) => node.lease_cache.drop_cached_lease(fence),
        }
        Ok(renewed.map(|()| expires_at))
    }

    /// Appends lines to the log of a worker's attempt, up to the quota. Returns how many were stored.
    pub async fn append_task_log(
        &self,
        id: &TaskId,
        fence: i64,
        lines: Vec<LogLine>,
    ) -> Result<Result<usize, TaskCommandError>, StoreError> {
        let node = self.node();
        let task = match node.lease_cache.find_leased_task(&*node.store, id, fence).await? {
            Ok(task) => task,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let lines = node.lease_cache.admit_log_lines(fence, lines);
        let (admitted, bytes) = (lines.len(), lines.iter().map(|line| line.message.len()).sum());
        let lines: Vec<_> =
            lines.into_iter().map(|line| AttemptLogLine { task_seq: task.seq, fence, line }).collect();
        let stored = match lines.is_empty() {
            true => 0,
            false => node
                .store
                .append_log_lines(lines)
                .await
                .inspect_err(|_| node.lease_cache.refund_log_lines(fence, admitted, bytes))?,
        };
        if stored > 0 {
            node.log_writer.notify_lines_stored();
            return Ok(Ok(stored));
        }
        // No line was stored: the task no longer belongs to the worker, or the quota is used up.
        node.lease_cache
            .drop_cached_lease_if_lost(&*node.store, id, fence)
            .await
            .map(|lease| lease.map(|()| 0))
    }

    /// Ends a worker's attempt and stores everything that commits with it. The caller checks for which tenants the
    /// worker may emit. A snooze lasts at least one second.
    pub async fn end_leased_task(
        &self,
        id: &TaskId,
        fence: i64,
        outcome: HandlerOutcome,
    ) -> Result<Result<FinishReceipt, TaskCommandError>, StoreError> {
        let node = self.node();
        let task = match node.lease_cache.find_leased_task(&*node.store, id, fence).await? {
            Ok(task) => task,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let outcome = enforce_min_snooze(outcome, node.time_source.now());
        let finished_attempt = build_finished_attempt(&task, outcome, node.lease_cache.log_quota(fence));
        let leased_at = node.lease_cache.leased_at(fence);
        let ended = EndedAttempt { task_summary: task, finished_attempt };
        let at = node.time_source.now();
        let (results, _) = node.store.finish_attempts(vec![ended.finished_attempt.clone()], None, at).await?;
        node.lease_cache.drop_cached_lease(fence);
        let result = results.into_iter().next().unwrap_or(Err(TaskCommandError::NoSuchTask));
        if let Ok(finished) = &result {
            let duration = leased_at.map_or(Duration::ZERO, |leased_at| at.duration_since(leased_at));
            node.metrics.count_ended_attempt(
                &ended.task_summary.handler,
                &ended.finished_attempt.result,
                duration,
            );
            node.report_finished_attempt(&ended, finished, at);
            node.wake_signals.notify_work();
        }
        Ok(result)
    }
}

/// Records that a worker's attempt starts: notifies watchers, and caches the lease.
fn record_leased_attempt_start(node: &Node, task: ClaimedTask, lease: Duration) -> ClaimedTask {
    let at = node.time_source.now();
    node.task_changes.notify_attempt_started(&task, at);
    node.metrics.observe_start_latency(&task, at);
    node.lease_cache.insert(ClaimedTaskSummary::from_claimed_task(&task), at, lease);
    task
}

/// Extends a worker's snooze to the minimum, so that it cannot cause a tight loop.
fn enforce_min_snooze(outcome: HandlerOutcome, now: Timestamp) -> HandlerOutcome {
    match outcome.result {
        AttemptResult::Snoozed { until } => HandlerOutcome {
            result: AttemptResult::Snoozed { until: until.max(now.plus(MIN_SNOOZE)) },
            ..outcome
        },
        AttemptResult::Succeeded { .. } | AttemptResult::Failed { .. } | AttemptResult::Released => outcome,
    }
}
