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
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::event::MAX_DEPTH;
use pointsman_core::names::is_reserved;
use pointsman_core::store::{Claimed, Ended, Ending};
use pointsman_core::{Cause, NewEvent};
use tokio::sync::mpsc;
use tokio::task::JoinError;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::held::Asked;
use crate::logbook::{ATTEMPT_BUFFER, Allowance, cut};
use crate::node::Node;
use crate::runner::LogSink;
use crate::running::{Control, Stop};
use crate::slots::Slot;
use crate::time::now;
use crate::{Delivery, HandlerSpec, Outcome};

/// How long a cancelled handler may take to end by itself, and how long its cleaning up on drop may take.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// An attempt that is over, and what is to be written of it.
#[derive(Debug)]
pub(crate) struct EndedAttempt {
    pub(crate) task: Claimed,
    pub(crate) ending: Ending,
}

impl EndedAttempt {
    /// What went wrong, if something did.
    pub(crate) fn error(&self) -> Option<&str> {
        match &self.ending.ended {
            Ended::Failed { error, .. } => Some(error),
            Ended::Succeeded { .. } | Ended::Snoozed { .. } | Ended::Released => None,
        }
    }
}

/// Runs a claimed task on a task of its own.
pub(crate) fn start(node: &Arc<Node>, task: Claimed, slot: Option<Slot>, asked: Asked) {
    let control = node.running.begin(&task);
    let at = now();
    node.changes.locked(&task, at);
    if task.attempt == 1 {
        node.metrics.start_took(at.since(task.event.id.timestamp()));
    }
    let span = tracing::info_span!(
        "attempt",
        task.id = %task.id,
        handler = %task.handler,
        attempt = task.attempt,
        event.id = task.event.id.get(),
    );
    tokio::spawn(run(node.clone(), task, control, slot, asked).instrument(span));
}

async fn run(node: Arc<Node>, task: Claimed, control: Arc<Control>, slot: Option<Slot>, asked: Asked) {
    let began = Instant::now();
    let configured = node.configured();
    let spec = configured.spec(&task.handler);
    let ended = match spec {
        // It was over before it began: the node stops.
        _ if control.stopped().is_some() => Some(settle(&task, released(), Allowance::default())),
        Some(spec) => perform(&node, spec, &task, &control, asked).await,
        // Its handler went away between the claim and now: others may still have it.
        None => Some(settle(&task, released(), Allowance::default())),
    };
    record(spec.is_some(), ended.as_ref());
    drop(slot);
    match ended {
        Some(ending) => {
            node.metrics.attempt_ended(&task.handler, &ending.ended, began.elapsed());
            // The worker is gone only when the node has stopped; then the rescuer frees the task.
            let _ = node.ended.send(EndedAttempt { task, ending });
        }
        None => node.signals.work.notify_one(),
    }
    node.running.end(&control);
}

/// Runs the handler and brings its lines to the store, until both are through.
async fn perform(
    node: &Arc<Node>,
    spec: &HandlerSpec,
    task: &Claimed,
    control: &Control,
    asked: Asked,
) -> Option<Ending> {
    let (sender, lines) = mpsc::channel(ATTEMPT_BUFFER);
    let delivery = Delivery {
        task: task.clone(),
        log: LogSink::new(sender),
        // A handler that cancels its own token tells nobody but itself.
        cancel: control.cancel().child_token(),
    };
    let over = CancellationToken::new();
    let watched = async {
        let outcome = watch(begin(node.clone(), spec, delivery, asked), spec.timeout, control).await;
        over.cancel();
        outcome
    };
    let forwarded = node.logbook.forward(task.seq, task.fence, lines, over.clone());
    let (outcome, allowance) = tokio::join!(watched, forwarded);
    outcome.map(|outcome| settle(task, outcome, allowance))
}

/// The handler's work, unless a rule was set while the claim was under way.
fn begin(
    node: Arc<Node>,
    spec: &HandlerSpec,
    delivery: Delivery,
    asked: Asked,
) -> impl Future<Output = Outcome> + Send + 'static {
    let runner = spec.runner.clone();
    async move {
        if node.held.since(asked, &delivery.task.handler, &delivery.task.event.tenant) {
            return released();
        }
        runner.run(delivery).await
    }
}

/// Runs the handler for as long as it may run. `None`: the task is no longer this attempt's.
async fn watch(
    work: impl Future<Output = Outcome> + Send + 'static,
    longest: Duration,
    control: &Control,
) -> Option<Outcome> {
    let span = tracing::Span::current();
    let mut handle = AbortOnDropHandle::new(tokio::spawn(work.instrument(span)));
    let ended = tokio::select! {
        biased;
        ended = &mut handle => Some(ended),
        () = control.cancel().cancelled() => None,
        () = tokio::time::sleep(longest) => {
            control.stop(Stop::TimedOut);
            None
        }
    };
    let outcome = match ended {
        Some(ended) => Some(outcome_of(ended)),
        None => wind_down(&mut handle).await,
    };
    match (control.stopped(), outcome) {
        (None, Some(outcome)) => Some(outcome),
        (Some(Stop::Lost), _) => None,
        // A failure may be no more than the answer to being told to stop.
        (Some(Stop::Draining), outcome) => {
            let good =
                |outcome: &Outcome| matches!(outcome.ended, Ended::Succeeded { .. } | Ended::Snoozed { .. });
            Some(outcome.filter(good).unwrap_or_else(released))
        }
        (Some(Stop::TimedOut), _) | (None, None) => {
            Some(Outcome::failed(format!("timed out after {longest:?}")))
        }
    }
}

/// Waits a moment for a cancelled handler, then drops it and waits a moment for what it cleans up. A handler
/// that blocks its thread is left behind: its fence no longer opens anything.
async fn wind_down(handle: &mut AbortOnDropHandle<Outcome>) -> Option<Outcome> {
    if let Ok(ended) = timeout(GRACE, &mut *handle).await {
        return Some(outcome_of(ended));
    }
    handle.abort();
    match timeout(GRACE, &mut *handle).await {
        Ok(Ok(outcome)) => Some(outcome),
        Ok(Err(_)) => None,
        Err(_) => {
            tracing::warn!("the handler does not yield; it goes on running beside its successor");
            None
        }
    }
}

fn outcome_of(ended: Result<Outcome, JoinError>) -> Outcome {
    ended.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => Outcome::failed(format!("the handler panicked: {}", panic_message(&*panic))),
        // Only a runtime that is shutting down ends a handler from outside: nobody's fault.
        Err(_) => released(),
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

fn released() -> Outcome {
    Outcome { ended: Ended::Released, emits: vec![], logs: vec![] }
}

/// What is written of an attempt: its emits with their cause, or none where it did not succeed; its logs as
/// far as they are allowed.
fn settle(task: &Claimed, outcome: Outcome, mut allowance: Allowance) -> Ending {
    let (ended, emits) = match outcome.ended {
        Ended::Succeeded { .. } | Ended::Snoozed { .. } => match with_cause(task, outcome.emits) {
            Ok(emits) => (outcome.ended, emits),
            Err(error) => (Ended::Failed { error, after: None, last: true }, vec![]),
        },
        Ended::Failed { error, after, last } => (Ended::Failed { error: cut(error), after, last }, vec![]),
        Ended::Released => (Ended::Released, vec![]),
    };
    let logs = outcome.logs.into_iter().filter_map(|line| allowance.admit(line)).collect();
    Ending { task: task.seq, fence: task.fence, ended, emits, logs }
}

/// Tells each emit what caused it. What may not be emitted fails the attempt for good: it would be no other
/// the next time.
fn with_cause(task: &Claimed, mut emits: Vec<NewEvent>) -> Result<Vec<NewEvent>, String> {
    let depth = task.event.depth().saturating_add(1);
    if !emits.is_empty() && depth > MAX_DEPTH {
        return Err(format!(
            "event storm: {MAX_DEPTH} events have caused each other up to this one, and it may cause no more"
        ));
    }
    if let Some(emit) = emits.iter().find(|emit| is_reserved(&emit.kind)) {
        return Err(format!("the handler emitted {}, a type that only the engine may emit", emit.kind));
    }
    for emit in &mut emits {
        emit.cause = Some(Cause { event: Some(task.event.id), task: task.seq, depth });
    }
    Ok(emits)
}

/// The record of an attempt, in the span that names its task.
fn record(loaded: bool, ending: Option<&Ending>) {
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
