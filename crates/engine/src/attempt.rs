//! One attempt: a claimed task is run by its handler, watched while it runs, and its end handed to the worker.
//!
//! ```text
//!   start ─▶ the handler's own task ──────────▶ outcome ─┐
//!              │ lines ─▶ logbook                        ├─▶ settle ─▶ the end, to the worker
//!            timeout, drain, loss ─▶ cancel, grace, drop ┘
//! ```
//!
//! Whatever happens, one end comes out, or none where the task is no longer this attempt's. The slot is free as
//! soon as the handler is through: the end becomes durable together with the claim that fills the slot again.

use std::any::Any;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use pointsman_core::store::{Claimed, Ended, Ending};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::attempt_ending::{EndedAttempt, build_ending, released_outcome};
use crate::claim_summary::ClaimSummary;
use crate::log_writer::{ATTEMPT_BUFFER_LINES, LogQuota};
use crate::node::{HandlerRunner, Node};
use crate::runner::LogSink;
use crate::running_attempts::{AttemptControl, StopReason};
use crate::slots::Slot;
use crate::start_gate::PauseVersion;
use crate::{AttemptOutcome, Delivery};

/// How long a cancelled handler may take to end by itself, and how long its cleaning up on drop may take.
pub(crate) const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// Runs a claimed task on a task of its own.
pub(crate) fn start_attempt(node: &Arc<Node>, task: Claimed, slot: Option<Slot>, asked: PauseVersion) {
    let control = node.running_attempts.add(&task);
    let at = node.time.now();
    node.task_changes.notify_attempt_started(&task, at);
    node.metrics.observe_start_latency(&task, at);
    let span = tracing::info_span!(
        "attempt",
        task.id = %task.id,
        handler = %task.handler,
        attempt = task.attempt,
        event.id = task.subject.event().map(|event| event.id.get()),
    );
    tokio::spawn(run_attempt(node.clone(), task, control, slot, asked).instrument(span));
}

async fn run_attempt(
    node: Arc<Node>,
    task: Claimed,
    control: Arc<AttemptControl>,
    slot: Option<Slot>,
    asked: PauseVersion,
) {
    let (began, brief) = (Instant::now(), ClaimSummary::from_claimed(&task));
    let configured = node.active_setup();
    let runs = configured.find_runner(&task.handler);
    let ended = match runs {
        // It was over before it began: the node stops.
        _ if control.stop_reason().is_some() => {
            Some(build_ending(&brief, released_outcome(), LogQuota::default()))
        }
        Some(runs) => run_handler(&node, runs, task, &brief, &control, asked).await,
        // Its handler went away between the claim and now, or is pulled now: others may have it.
        None => Some(build_ending(&brief, released_outcome(), LogQuota::default())),
    };
    log_attempt_end(runs.is_some(), ended.as_ref());
    drop(slot);
    match ended {
        Some(ending) => {
            node.metrics.count_ended_attempt(&brief.handler, &ending.ended, began.elapsed());
            // The worker is gone only when the node has stopped; then the rescuer frees the task.
            let _ = node.ended_attempts.send(EndedAttempt { task: brief, ending });
        }
        None => node.signals.notify_work(),
    }
    node.running_attempts.remove(&control);
}

/// Runs the handler and brings its lines to the store, until both are through.
async fn run_handler(
    node: &Arc<Node>,
    runs: &HandlerRunner,
    task: Claimed,
    brief: &ClaimSummary,
    control: &AttemptControl,
    asked: PauseVersion,
) -> Option<Ending> {
    let (sender, lines) = mpsc::channel(ATTEMPT_BUFFER_LINES);
    let delivery = Delivery {
        task,
        log: LogSink::new(sender, node.time.clone()),
        // A handler that cancels its own token tells nobody but itself.
        cancel: control.cancel_token().child_token(),
    };
    let over = CancellationToken::new();
    let watched = async {
        let outcome = run_until_ended_or_stopped(
            start_unless_paused(node.clone(), runs, delivery, asked),
            runs.timeout,
            control,
        )
        .await;
        over.cancel();
        outcome
    };
    let forwarded = node.log_writer.forward_lines(brief.seq, brief.fence, lines, over.clone());
    let (outcome, allowance) = tokio::join!(watched, forwarded);
    outcome.map(|outcome| build_ending(brief, outcome, allowance))
}

/// The handler's work, unless a rule was set while the claim was under way.
fn start_unless_paused(
    node: Arc<Node>,
    runs: &HandlerRunner,
    delivery: Delivery,
    asked: PauseVersion,
) -> impl Future<Output = AttemptOutcome> + Send + 'static {
    let runner = runs.runner.clone();
    async move {
        let beginning = node.start_gate.announce_start();
        if node.start_gate.is_paused_since(asked, &delivery.task) {
            return released_outcome();
        }
        let mut work = pin!(runner.run(delivery));
        // It has begun when it has been polled once.
        if let Poll::Ready(outcome) = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
            return outcome;
        }
        drop(beginning);
        work.await
    }
}

/// Runs the handler for as long as it may run. `None`: the task is no longer this attempt's.
async fn run_until_ended_or_stopped(
    work: impl Future<Output = AttemptOutcome> + Send + 'static,
    longest: Duration,
    control: &AttemptControl,
) -> Option<AttemptOutcome> {
    let span = tracing::Span::current();
    let mut handle = AbortOnDropHandle::new(tokio::spawn(work.instrument(span)));
    let ended = tokio::select! {
        biased;
        ended = &mut handle => Some(ended),
        () = control.cancel_token().cancelled() => None,
        () = tokio::time::sleep(longest) => {
            control.request_stop(StopReason::TimedOut);
            None
        }
    };
    let outcome = match ended {
        Some(ended) => Some(outcome_from_join(ended)),
        None => await_cancelled_handler(&mut handle).await,
    };
    match (control.stop_reason(), outcome) {
        (None, Some(outcome)) => Some(outcome),
        (Some(StopReason::TaskLost), _) => None,
        // A failure may be no more than the answer to being told to stop.
        (Some(StopReason::Draining), outcome) => {
            let good = |outcome: &AttemptOutcome| {
                matches!(outcome.ended, Ended::Succeeded { .. } | Ended::Snoozed { .. })
            };
            Some(outcome.filter(good).unwrap_or_else(released_outcome))
        }
        // What a handler that was cut short says counts no more, but for how its target fares.
        (Some(StopReason::TimedOut), outcome) => {
            let target = outcome.and_then(|outcome| outcome.target_health);
            Some(AttemptOutcome {
                target_health: target,
                ..AttemptOutcome::failed(format!("timed out after {longest:?}"))
            })
        }
        (None, None) => Some(AttemptOutcome::failed(format!("timed out after {longest:?}"))),
    }
}

/// Waits a moment for a cancelled handler, then drops it and waits a moment for what it cleans up. A handler
/// that blocks its thread is left behind: its fence no longer opens anything.
async fn await_cancelled_handler(handle: &mut AbortOnDropHandle<AttemptOutcome>) -> Option<AttemptOutcome> {
    if let Ok(ended) = timeout(CANCEL_GRACE, &mut *handle).await {
        return Some(outcome_from_join(ended));
    }
    handle.abort();
    match timeout(CANCEL_GRACE, &mut *handle).await {
        Ok(Ok(outcome)) => Some(outcome),
        Ok(Err(_)) => None,
        Err(_) => {
            tracing::warn!("the handler does not yield; it goes on running beside its successor");
            None
        }
    }
}

fn outcome_from_join(ended: Result<AttemptOutcome, JoinError>) -> AttemptOutcome {
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => AttemptOutcome::failed(format!("the handler panicked: {}", panic_message(&*panic))),
        // Only a runtime that is shutting down ends a handler from outside: nobody's fault.
        Err(_) => released_outcome(),
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// The record of an attempt, in the span that names its task.
fn log_attempt_end(loaded: bool, ending: Option<&Ending>) {
    match ending.map(|ending| &ending.ended) {
        Some(Ended::Succeeded { .. }) => {
            tracing::debug!(event.load_success = loaded, event.execution_success = true, "attempt succeeded");
        }
        Some(Ended::Snoozed { until }) => {
            tracing::debug!(event.load_success = loaded, event.execution_success = true, %until, "attempt snoozed");
        }
        Some(Ended::Failed { error, .. }) => {
            tracing::warn!(
                event.load_success = loaded,
                event.execution_success = false,
                error,
                "attempt failed"
            );
        }
        Some(Ended::Released) => {
            tracing::info!(
                event.load_success = loaded,
                event.execution_success = false,
                "attempt given back"
            );
        }
        None => {
            tracing::info!(
                event.load_success = loaded,
                event.execution_success = false,
                "attempt lost its task"
            );
        }
    }
}
