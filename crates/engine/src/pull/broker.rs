//! The long-poll broker: pull workers wait here for tasks.
//!
//! Workers that request the same tasks wait in one queue, first come first served. When the store signals work, each
//! queue costs one claim, however many workers wait in it; the claimed tasks are distributed from the front, one to
//! each worker before any gets a second.
//!
//! A worker may have disconnected meanwhile. Its tasks go to the next in the queue, or are released without a retry: no
//! task waits for the lease of a worker that never received it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{ClaimRequest, Claimant, ClaimedTask, StoreError};
use pointsman_core::{ErrorChain, HandlerName, Tenant, Timestamp};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::attempt_ending::{EndedAttempt, build_finished_attempt, released_outcome};
use crate::claimed_task_summary::ClaimedTaskSummary;
use crate::log_writer::LogQuota;
use crate::node::Node;
use crate::start_gate::PauseVersion;
use crate::supervisor::Service;

/// The maximum number of tasks in one claim.
const MAX_TASKS_PER_CLAIM: usize = 256;
/// The maximum number of requests that are handled at a time.
const MAX_REQUESTS_PER_BATCH: usize = 1024;
/// The pause of a queue after a claim that found no task. Without this pause every commit of a busy store would cost a
/// claim.
const EMPTY_CLAIM_PAUSE: Duration = Duration::from_millis(10);

/// The tasks that a pull worker requests, and for how long it leases them. Workers with equal filters share a queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PullFilter {
    pub(crate) handlers: Arc<BTreeSet<HandlerName>>,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) lease_duration: Duration,
}

/// Sends requests of pull workers to the long-poll service.
#[derive(Clone, Debug)]
pub(crate) struct LongPollBroker {
    request_sender: mpsc::UnboundedSender<BrokerRequest>,
}

#[derive(Debug)]
enum BrokerRequest {
    WaitForTasks(PullFilter, Waiter),
    /// Returns claimed tasks that were not delivered to their pull worker.
    ReturnUndeliveredTasks(Vec<ClaimedTask>),
}

#[derive(Debug)]
struct Waiter {
    max_tasks: usize,
    /// Notified once the store has been queried for this waiter; the waiter's deadline does not end before that.
    store_queried_sender: Option<oneshot::Sender<()>>,
    reply_sender: oneshot::Sender<Result<GrantedTasks, StoreError>>,
}

impl LongPollBroker {
    pub(crate) fn new() -> (Self, BrokerRequestReceiver) {
        let (request_sender, request_receiver) = mpsc::unbounded_channel();
        (Self { request_sender }, BrokerRequestReceiver(request_receiver))
    }

    /// Waits for tasks up to the deadline, and at least until the store has been queried. Returns `None` if there were
    /// none or the node stops.
    pub(crate) async fn wait_for_tasks(
        &self,
        filter: PullFilter,
        max_tasks: usize,
        deadline: Instant,
    ) -> Result<Option<GrantedTasks>, StoreError> {
        let (reply_sender, mut reply_receiver) = oneshot::channel();
        let (store_queried_sender, store_queried_receiver) = oneshot::channel();
        let request = BrokerRequest::WaitForTasks(
            filter,
            Waiter {
                max_tasks: max_tasks.min(MAX_TASKS_PER_CLAIM),
                store_queried_sender: Some(store_queried_sender),
                reply_sender,
            },
        );
        self.request_sender.send(request).map_err(|_| StoreError::Closed)?;
        // This wait also ends when the waiter gets its reply or is dropped.
        let _ = store_queried_receiver.await;
        match timeout_at(deadline, &mut reply_receiver).await {
            Ok(Ok(granted)) => granted.map(Some),
            Ok(Err(_)) => Ok(None),
            Err(_) => {
                // The reply may have been sent just now.
                reply_receiver.close();
                reply_receiver.try_recv().ok().transpose()
            }
        }
    }

    /// Returns claimed tasks that were not started, so that they are released.
    pub(crate) fn return_undelivered_tasks(&self, tasks: Vec<ClaimedTask>) {
        if !tasks.is_empty() {
            // After the service has stopped, their leases have to expire.
            let _ = self.request_sender.send(BrokerRequest::ReturnUndeliveredTasks(tasks));
        }
    }
}

/// Claimed tasks for a pull worker. Tasks that are not taken are returned to the broker when this value is dropped.
#[derive(Debug)]
pub(crate) struct GrantedTasks {
    tasks: Vec<ClaimedTask>,
    pause_version: PauseVersion,
    broker: LongPollBroker,
}

impl GrantedTasks {
    /// Takes the tasks, each with the pause version of its claim.
    pub(crate) fn into_tasks(mut self) -> impl Iterator<Item = (PauseVersion, ClaimedTask)> {
        let version = self.pause_version;
        std::mem::take(&mut self.tasks).into_iter().map(move |task| (version, task))
    }
}

impl Drop for GrantedTasks {
    fn drop(&mut self) {
        self.broker.return_undelivered_tasks(std::mem::take(&mut self.tasks));
    }
}

/// The receiver of requests to the long-poll service.
pub(crate) struct BrokerRequestReceiver(mpsc::UnboundedReceiver<BrokerRequest>);

/// The queue of the pull workers that wait for tasks with equal filters, first come first served.
struct WaiterQueue {
    waiters: VecDeque<Waiter>,
    /// Whether the store may have tasks for the waiters.
    needs_claim: bool,
    /// The earliest time of the next claim.
    claim_not_before: Instant,
    /// When the next waiting task is due.
    next_task_due_at: Option<Timestamp>,
}

impl WaiterQueue {
    /// Decides after a worker has joined whether the queue needs a claim. If others still wait, the last claim found
    /// nothing, and a new one would find nothing either. If all others have disconnected, the last signal may not have
    /// led to a claim.
    fn update_needs_claim_after_join(&mut self) {
        let earlier_count = self.waiters.len().saturating_sub(1);
        let has_earlier_waiter =
            self.waiters.iter().take(earlier_count).any(|waiter| !waiter.reply_sender.is_closed());
        match !self.needs_claim && has_earlier_waiter {
            true => self.notify_store_queried(),
            false => self.needs_claim = true,
        }
    }

    /// Notifies all waiters of this queue that the store has been queried for them.
    fn notify_store_queried(&mut self) {
        for sender in self.waiters.iter_mut().filter_map(|waiter| waiter.store_queried_sender.take()) {
            // A worker that has disconnected needs no notification.
            let _ = sender.send(());
        }
    }
}

/// The service that claims tasks for waiting pull workers.
pub(crate) struct LongPollService {
    node: Arc<Node>,
    request_receiver: mpsc::UnboundedReceiver<BrokerRequest>,
    queues: HashMap<PullFilter, WaiterQueue>,
    /// Requests that were received and are not handled yet.
    unhandled_requests: Vec<BrokerRequest>,
    last_sweep_at: Instant,
}

impl Service for LongPollService {
    /// Serves until stopped; then all waiters get an empty reply, and undelivered tasks are released.
    async fn run(&mut self, stop: CancellationToken) {
        while self.wait_for_requests(&stop).await {
            self.handle_requests().await;
            self.claim_for_ready_queues().await;
        }
        self.queues.clear();
        self.request_receiver.close();
        while let Some(request) = self.request_receiver.recv().await {
            if let BrokerRequest::ReturnUndeliveredTasks(tasks) = request {
                self.release_tasks(tasks).await;
            }
        }
    }
}

impl LongPollService {
    pub(crate) fn new(node: Arc<Node>, receiver: BrokerRequestReceiver) -> Self {
        let (queues, unhandled_requests) = Default::default();
        Self { node, request_receiver: receiver.0, queues, unhandled_requests, last_sweep_at: Instant::now() }
    }

    /// Waits for a request, a signal or a due time; `false` if the service is to stop.
    async fn wait_for_requests(&mut self, stop: &CancellationToken) -> bool {
        let duration = self.time_until_next_check();
        tokio::select! {
            () = stop.cancelled() => return false,
            _ = self.request_receiver.recv_many(&mut self.unhandled_requests, MAX_REQUESTS_PER_BATCH) => {}
            () = self.node.wake_signals.pull_broker_wakeup.notified() => self.mark_all_queues_for_claim(),
            () = sleep(duration) => {}
        }
        // A signal that arrived together with a request also applies to that request.
        tokio::select! {
            biased;
            () = self.node.wake_signals.pull_broker_wakeup.notified() => self.mark_all_queues_for_claim(),
            () = std::future::ready(()) => {}
        }
        let (now, at) = (self.node.time_source.now(), Instant::now());
        for queue in
            self.queues.values_mut().filter(|queue| queue.next_task_due_at.is_some_and(|due| due <= now))
        {
            queue.needs_claim = true;
        }
        // Every sweep claims for all queues, because a signal may be lost and workers may disconnect.
        if at.duration_since(self.last_sweep_at) >= self.node.settings.sweep_interval {
            self.last_sweep_at = at;
            self.node.lease_cache.drop_expired_leases(now);
            self.mark_all_queues_for_claim();
        }
        true
    }

    fn mark_all_queues_for_claim(&mut self) {
        for queue in self.queues.values_mut() {
            queue.needs_claim = true;
        }
    }

    fn time_until_next_check(&self) -> Duration {
        let (at, now) = (Instant::now(), self.node.time_source.now());
        let sweep = (self.last_sweep_at + self.node.settings.sweep_interval).saturating_duration_since(at);
        let queue_delays = self.queues.values().filter_map(|queue| match queue.needs_claim {
            true => Some(queue.claim_not_before.saturating_duration_since(at)),
            false => queue.next_task_due_at.map(|due| due.duration_since(now).max(EMPTY_CLAIM_PAUSE)),
        });
        queue_delays.chain([sweep]).min().unwrap_or(sweep)
    }

    /// Releases returned tasks and adds new waiters to their queues.
    async fn handle_requests(&mut self) {
        let (mut returned, mut joining) = (Vec::new(), Vec::new());
        for request in self.unhandled_requests.drain(..) {
            match request {
                BrokerRequest::ReturnUndeliveredTasks(tasks) => returned.extend(tasks),
                BrokerRequest::WaitForTasks(filter, waiter) => joining.push((filter, waiter)),
            }
        }
        if !returned.is_empty() {
            self.release_tasks(returned).await;
            self.mark_all_queues_for_claim();
        }
        let new_queue = || WaiterQueue {
            waiters: VecDeque::new(),
            needs_claim: true,
            claim_not_before: Instant::now(),
            next_task_due_at: None,
        };
        for (filter, waiter) in joining {
            let queue = self.queues.entry(filter).or_insert_with(new_queue);
            queue.waiters.push_back(waiter);
            queue.update_needs_claim_after_join();
        }
    }

    /// Claims once for each queue that may get tasks.
    async fn claim_for_ready_queues(&mut self) {
        let at = Instant::now();
        let ready = self.queues.iter().filter(|(_, queue)| queue.needs_claim && queue.claim_not_before <= at);
        let ready: Vec<PullFilter> = ready.map(|(filter, _)| filter.clone()).collect();
        for filter in ready {
            if let Some(mut queue) = self.queues.remove(&filter) {
                self.claim_for_queue(&filter, &mut queue).await;
                if !queue.waiters.is_empty() {
                    self.queues.insert(filter, queue);
                }
            }
        }
    }

    async fn claim_for_queue(&self, filter: &PullFilter, queue: &mut WaiterQueue) {
        queue.waiters.retain(|waiter| !waiter.reply_sender.is_closed());
        let max = queue.waiters.iter().map(|waiter| waiter.max_tasks).sum::<usize>().min(MAX_TASKS_PER_CLAIM);
        if max == 0 {
            return;
        }
        if !self.node.time_source.is_in_service() {
            queue.needs_claim = false;
            return;
        }
        let at = self.node.time_source.now();
        let claimant = Claimant::PullWorker {
            lease_until: at.plus(filter.lease_duration),
            tenant: filter.tenant.clone(),
        };
        let pause_version = self.node.start_gate.pause_version();
        let claim = ClaimRequest { claimant, handlers: filter.handlers.clone(), max_tasks: max };
        match self.node.store.claim_tasks(claim, at).await {
            Ok(claims) => {
                let has_tasks = !claims.tasks.is_empty();
                queue.needs_claim = claims.has_more && has_tasks;
                queue.claim_not_before =
                    Instant::now() + if has_tasks { Duration::ZERO } else { EMPTY_CLAIM_PAUSE };
                queue.next_task_due_at = claims.next_task_due_at;
                self.distribute_tasks(queue, claims.tasks.into(), pause_version).await;
                queue.notify_store_queried();
            }
            Err(error) => {
                self.node.count_store_error();
                tracing::debug!(
                    error = %ErrorChain(&error), pull_worker_count = queue.waiters.len(),
                    "could not claim tasks for waiting pull workers; they get the error and may retry"
                );
                for waiter in queue.waiters.drain(..) {
                    let _ = waiter.reply_sender.send(Err(error.clone()));
                }
            }
        }
    }

    async fn distribute_tasks(
        &self,
        queue: &mut WaiterQueue,
        mut tasks: VecDeque<ClaimedTask>,
        pause_version: PauseVersion,
    ) {
        while !tasks.is_empty() && !queue.waiters.is_empty() {
            for share in
                split_task_count_evenly(queue.waiters.iter().map(|waiter| waiter.max_tasks), tasks.len())
            {
                let Some(waiter) = queue.waiters.pop_front() else { break };
                let granted = tasks.drain(..share).collect();
                let granted =
                    GrantedTasks { tasks: granted, pause_version, broker: self.node.pull_broker.clone() };
                if let Err(Ok(granted)) = waiter.reply_sender.send(Ok(granted)) {
                    tasks.extend(granted.into_tasks().map(|(_, task)| task));
                }
            }
        }
        self.release_tasks(tasks.into()).await;
    }

    /// Releases tasks in the store as if they had never been claimed.
    async fn release_tasks(&self, tasks: Vec<ClaimedTask>) {
        if tasks.is_empty() {
            return;
        }
        let end_released = |task: ClaimedTask| {
            let task = ClaimedTaskSummary::from_claimed_task(&task);
            EndedAttempt {
                finished_attempt: build_finished_attempt(&task, released_outcome(), LogQuota::default()),
                task_summary: task,
            }
        };
        let ended: Vec<_> = tasks.into_iter().map(end_released).collect();
        let finished_attempts = ended.iter().map(|ended| ended.finished_attempt.clone()).collect();
        let at = self.node.time_source.now();
        match self.node.store.finish_attempts(finished_attempts, None, at).await {
            Ok((results, _)) => {
                for (ended, result) in ended.iter().zip(results) {
                    if let Ok(finished) = result {
                        self.node.report_finished_attempt(ended, &finished, at);
                    }
                }
                self.node.wake_signals.notify_work();
            }
            Err(error) => {
                self.node.count_store_error();
                tracing::debug!(
                    error = %ErrorChain(&error), task_count = ended.len(),
                    "could not release undelivered tasks; they run again after their leases have expired"
                );
            }
        }
    }
}

/// The number of tasks for each waiter, from the front: one each, then one more each, up to the waiter's limit.
fn split_task_count_evenly(limits: impl Iterator<Item = usize>, tasks: usize) -> Vec<usize> {
    let mut shares: Vec<(usize, usize)> = limits.take(tasks).map(|limit| (0, limit)).collect();
    let mut remaining = tasks;
    let mut has_progress = true;
    while remaining > 0 && has_progress {
        has_progress = false;
        for (share, limit) in &mut shares {
            if remaining > 0 && share < limit {
                (*share, remaining, has_progress) = (*share + 1, remaining - 1, true);
            }
        }
    }
    shares.into_iter().map(|(share, _)| share).collect()
}

#[cfg(test)]
mod tests {
    use super::split_task_count_evenly;

    #[test]
    fn each_waiter_gets_one_task_before_any_gets_a_second() {
        let split = |limits: &[usize], tasks| split_task_count_evenly(limits.iter().copied(), tasks);
        assert_eq!(split(&[10, 10, 10], 2), [1, 1]);
        assert_eq!(split(&[10, 1, 10], 7), [3, 1, 3]);
        assert_eq!(split(&[1, 2], 9), [1, 2]);
        assert!(split(&[3], 0).is_empty() && split(&[], 3).is_empty());
    }
}
