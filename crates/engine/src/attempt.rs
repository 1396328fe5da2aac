//! One attempt: runs the handler of a claimed task, enforces its timeout, and hands the end to the worker.
//!
//! ```text
//!   start ─▶ the handler's spawned future ────▶ outcome ─┐
//!              │ lines ─▶ log writer                     ├─▶ build_finished_attempt ─▶ worker
//!            timeout, drain, loss ─▶ cancel, grace, drop ┘
//! ```
//!
//! An attempt has exactly one end, or none if its task was cancelled or given to another node. The slot is free
//! as soon as the handler has ended: the end becomes durable together with the claim that fills the slot again.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use pointsman_core::store::{AttemptResult, ClaimedTask, FinishedAttempt};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::attempt_ending::{EndedAttempt, build_finished_attempt, released_outcome};
use crate::claimed_task_summary::ClaimedTaskSummary;
use crate::log_writer::{ATTEMPT_LOG_CHANNEL_CAPACITY, LogQuota};
use crate::node::{Node, RunnerWithTimeout};
use crate::runner::LogSink;
use crate::running_attempts::{AttemptControl, StopReason};
use crate::slots::Slot;
use crate::start_gate::PauseVersion;
use crate::supervisor::panic_message;
use crate::{Delivery, HandlerOutcome};

/// How long a cancelled handler may take to end, and how long its cleanup on drop may take.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// Runs a claimed task on a spawned future.
pub(crate) fn start_attempt(
    node: &Arc<Node>,
    task: ClaimedTask,
    slot: Option<Slot>,
    pause_version: PauseVersion,
) {
    let attempt_guard = AttemptGuard::new(node, &task);
    let at = node.time_source.now();
    node.task_changes.notify_attempt_started(&task, at);
    node.metrics.observe_start_latency(&task, at);
    let span = tracing::info_span!(
        "attempt",
        task.id = %task.id,
        handler = %task.handler,
        attempt = task.attempt,
        event.id = task.subject.event().map(|event| event.id.get()),
    );
    tokio::spawn(run_attempt(attempt_guard, task, slot, pause_version).instrument(span));
}

async fn run_attempt(
    mut attempt_guard: AttemptGuard,
    task: ClaimedTask,
    slot: Option<Slot>,
    pause_version: PauseVersion,
) {
    let AttemptGuard { node, control, summary, .. } = &attempt_guard;
    let setup = node.active_setup();
    let runner = setup.find_runner(&task.handler);
    let ended = match runner {
        // The attempt was stopped before its handler started: its task is released.
        _ if control.stop_reason().is_some() => {
            Some(build_finished_attempt(summary, released_outcome(), LogQuota::default()))
        }
        Some(runner) => run_handler(node, runner, task, summary, control, pause_version).await,
        // The handler was removed, or became a pulled one, since the claim: other nodes or workers may run the task.
        None => Some(build_finished_attempt(summary, released_outcome(), LogQuota::default())),
    };
    log_attempt_end(runner.is_some(), ended.as_ref());
    drop(slot);
    attempt_guard.send_end_to_worker(ended);
}

/// Ensures that a started attempt ends: if it is dropped before an end was handed to the worker, because the engine's
/// own code panicked, the attempt fails; if the runtime shuts down, its task is released.
struct AttemptGuard {
    node: Arc<Node>,
    control: Arc<AttemptControl>,
    summary: ClaimedTaskSummary,
    began_at: Instant,
    is_ended: bool,
}

impl AttemptGuard {
    fn new(node: &Arc<Node>, task: &ClaimedTask) -> Self {
        Self {
            control: node.running_attempts.add(task),
            summary: ClaimedTaskSummary::from_claimed_task(task),
            node: node.clone(),
            began_at: Instant::now(),
            is_ended: false,
        }
    }

    /// Hands the end to the worker; `None` if the task no longer belongs to the attempt.
    fn send_end_to_worker(&mut self, ended: Option<FinishedAttempt>) {
        self.is_ended = true;
        match ended {
            Some(finished_attempt) => {
                let (handler, duration) = (&self.summary.handler, self.began_at.elapsed());
                self.node.metrics.count_ended_attempt(handler, &finished_attempt.result, duration);
                let ended = EndedAttempt { task_summary: self.summary.clone(), finished_attempt };
                // The worker is gone only when the node has stopped; then the rescuer frees the task.
                let _ = self.node.ended_attempt_sender.send(ended);
            }
            None => self.node.wake_signals.notify_work(),
        }
        self.node.running_attempts.remove(&self.control);
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        if self.is_ended {
            return;
        }
        let outcome = match std::thread::panicking() {
            true => HandlerOutcome::failed(
                "the engine panicked while it ran this attempt; please report this error",
            ),
            // The runtime is shutting down.
            false => released_outcome(),
        };
        self.send_end_to_worker(Some(build_finished_attempt(&self.summary, outcome, LogQuota::default())));
    }
}

/// Runs the handler and forwards its log lines to the store, until both are complete.
async fn run_handler(
    node: &Arc<Node>,
    runner: &RunnerWithTimeout,
    task: ClaimedTask,
    summary: &ClaimedTaskSummary,
    control: &AttemptControl,
    pause_version: PauseVersion,
) -> Option<FinishedAttempt> {
    let (sender, lines) = mpsc::channel(ATTEMPT_LOG_CHANNEL_CAPACITY);
    let delivery = Delivery {
        task,
        log_sink: LogSink::new(sender, node.time_source.clone()),
        // A child token: a handler that cancels it stops only itself.
        cancel_token: control.cancel_token().child_token(),
    };
    let handler_ended = CancellationToken::new();
    let handler_run = async {
        let outcome = run_until_ended_or_stopped(
            run_unless_paused(node.clone(), runner, delivery, pause_version),
            runner.timeout,
            control,
        )
        .await;
        handler_ended.cancel();
        outcome
    };
    let log_forwarding =
        node.log_writer.forward_lines(summary.seq, summary.fence, lines, handler_ended.clone());
    let (outcome, log_quota) = tokio::join!(handler_run, log_forwarding);
    outcome.map(|outcome| build_finished_attempt(summary, outcome, log_quota))
}

/// Runs the handler, or releases the task if a pause was set after its claim was requested.
fn run_unless_paused(
    node: Arc<Node>,
    runner: &RunnerWithTimeout,
    delivery: Delivery,
    pause_version: PauseVersion,
) -> impl Future<Output = HandlerOutcome> + Send + 'static {
    let handler = runner.runner.clone();
    async move {
        let start_guard = node.start_gate.announce_start();
        if node.start_gate.is_paused_since(pause_version, &delivery.task) {
            return released_outcome();
        }
        let mut handler_run = pin!(handler.run(delivery));
        // The handler has started once it has been polled; then a new pause need not wait for it.
        if let Poll::Ready(outcome) = poll_fn(|cx| Poll::Ready(handler_run.as_mut().poll(cx))).await {
            return outcome;
        }
        drop(start_guard);
        handler_run.await
    }
}

/// Runs the handler until it ends, times out or is stopped. `None`: the task no longer belongs to this attempt.
async fn run_until_ended_or_stopped(
    handler_run: impl Future<Output = HandlerOutcome> + Send + 'static,
    time_limit: Duration,
    control: &AttemptControl,
) -> Option<HandlerOutcome> {
    let span = tracing::Span::current();
    let mut handle = AbortOnDropHandle::new(tokio::spawn(handler_run.instrument(span)));
    let ended = tokio::select! {
        biased;
        ended = &mut handle => Some(ended),
        () = control.cancel_token().cancelled() => None,
        () = tokio::time::sleep(time_limit) => {
            control.request_stop(StopReason::TimedOut);
            None
        }
    };
    let outcome = match ended {
        Some(ended) => Some(outcome_from_join_result(ended)),
        None => wait_for_cancelled_handler_end(&mut handle).await,
    };
    match (control.stop_reason(), outcome) {
        (None, Some(outcome)) => Some(outcome),
        (Some(StopReason::TaskLost), _) => None,
        // A failure may just be the handler's reaction to the cancellation, so it does not count.
        (Some(StopReason::Draining), outcome) => {
            let counts_despite_drain = |outcome: &HandlerOutcome| {
                matches!(outcome.result, AttemptResult::Succeeded { .. } | AttemptResult::Snoozed { .. })
            };
            Some(outcome.filter(counts_despite_drain).unwrap_or_else(released_outcome))
        }
        // The outcome of a handler that was cancelled no longer counts, except for the health of its target.
        (Some(StopReason::TimedOut), outcome) => {
            let target_health = outcome.and_then(|outcome| outcome.target_health);
            Some(HandlerOutcome {
                target_health,
                ..HandlerOutcome::failed(format!("timed out after {time_limit:?}"))
            })
        }
        (None, None) => Some(HandlerOutcome::failed(format!("timed out after {time_limit:?}"))),
    }
}

/// Waits a grace period for a cancelled handler, then drops it and waits another one for its cleanup. A handler that
/// blocks its thread keeps running, but its writes are refused because its fence is stale.
async fn wait_for_cancelled_handler_end(
    handle: &mut AbortOnDropHandle<HandlerOutcome>,
) -> Option<HandlerOutcome> {
    if let Ok(ended) = timeout(CANCEL_GRACE, &mut *handle).await {
        return Some(outcome_from_join_result(ended));
    }
    handle.abort();
    match timeout(CANCEL_GRACE, &mut *handle).await {
        Ok(Ok(outcome)) => Some(outcome),
        Ok(Err(_)) => None,
        Err(_) => {
            tracing::warn!(
                "handler ignores its cancellation and keeps running; the next attempt may overlap with it. Make the \
                 handler asynchronous, or have it check for cancellation"
            );
            None
        }
    }
}

fn outcome_from_join_result(ended: Result<HandlerOutcome, JoinError>) -> HandlerOutcome {
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => HandlerOutcome::failed(format!("the handler panicked: {}", panic_message(&*panic))),
        // Only a runtime that is shutting down cancels a handler; that is not the handler's failure.
        Err(_) => released_outcome(),
    })
}

/// Logs how an attempt ended. The current span names its task.
fn log_attempt_end(has_runner: bool, finished: Option<&FinishedAttempt>) {
    match finished.map(|finished| &finished.result) {
        Some(AttemptResult::Succeeded { .. }) => {
            tracing::debug!(
                event.load_success = has_runner,
                event.execution_success = true,
                "attempt succeeded; its end is sent to the store"
            );
        }
        Some(AttemptResult::Snoozed { until }) => {
            tracing::debug!(
                event.load_success = has_runner,
                event.execution_success = true,
                %until,
                "attempt snoozed; its task runs again later"
            );
        }
        Some(AttemptResult::Failed { error, .. }) => {
            tracing::warn!(
                event.load_success = has_runner,
                event.execution_success = false,
                error,
                "attempt failed; its task is retried unless the failure is final or no retries are left"
            );
        }
        Some(AttemptResult::Released) => {
            tracing::info!(
                event.load_success = has_runner,
                event.execution_success = false,
                "attempt released; its task runs again, and no retry is counted"
            );
        }
        None => {
            tracing::info!(
                event.load_success = has_runner,
                event.execution_success = false,
                "attempt ended, and its result is discarded because its task was cancelled or given to another node"
            );
        }
    }
}
