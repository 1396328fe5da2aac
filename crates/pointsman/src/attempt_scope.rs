//! The attempt that the current code belongs to, in a task-local variable.
//!
//! While a handler runs, its attempt is local to the future that is polled. It is read by the `tracing` layer that
//! writes task logs, and by every emit: an event that a handler emits in any way (its context, the bus, a unit of work)
//! names its cause, so that event storms are detected.

use std::future::Future;

use pointsman_core::Cause;
use pointsman_core::store::ClaimedTask;

use crate::task_log::LogLineSender;

/// The log sender of the running attempt, and the cause of the events that it emits.
#[derive(Clone)]
pub(crate) struct AttemptScope {
    pub(crate) log_sender: LogLineSender,
    cause: Cause,
}

tokio::task_local! {
    static CURRENT_ATTEMPT: AttemptScope;
}

impl AttemptScope {
    pub(crate) fn new(task: &ClaimedTask, log_sender: LogLineSender) -> Self {
        let depth = task.subject.cause_depth().saturating_add(1);
        Self { log_sender, cause: Cause { event: task.subject.cause_event(), task: task.seq, depth } }
    }

    /// Runs a future as a part of the attempt.
    pub(crate) fn run_in_attempt<F: Future>(self, future: F) -> impl Future<Output = F::Output> + use<F> {
        CURRENT_ATTEMPT.scope(self, future)
    }
}

/// Calls `use_log` with the log sender of the running attempt; outside an attempt it does nothing.
pub(crate) fn with_current_log_sender(use_log: impl FnOnce(&LogLineSender)) {
    // An error means that the calling code is not part of an attempt.
    let _ = CURRENT_ATTEMPT.try_with(|scope| use_log(&scope.log_sender));
}

/// The cause of events that the current code emits: the running attempt, or `None` outside one.
pub(crate) fn current_cause() -> Option<Cause> {
    CURRENT_ATTEMPT.try_with(|scope| scope.cause).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use pointsman_core::TaskSeq;

    /// Runs a future in an attempt that logs to this sender.
    pub(crate) async fn run_in_test_attempt<F: Future>(log_sender: LogLineSender, future: F) -> F::Output {
        let cause = Cause { event: None, task: TaskSeq(7), depth: 3 };
        AttemptScope { log_sender, cause }.run_in_attempt(future).await
    }

    #[tokio::test]
    async fn events_emitted_inside_an_attempt_name_it_as_their_cause() {
        assert_eq!(current_cause(), None);
        let inner =
            run_in_test_attempt(LogLineSender::new(std::sync::Arc::default()).0, async { current_cause() })
                .await;
        assert_eq!(inner.map(|cause| (cause.task, cause.depth)), Some((TaskSeq(7), 3)));
        assert_eq!(current_cause(), None);
    }
}
