//! How the worker runs a handler: the [`Runner`] trait, its input and its outcome.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pointsman_core::limit::TargetHealth;
use pointsman_core::store::{AttemptResult, ClaimedTask};
use pointsman_core::task::{LogLevel, LogLine};
use pointsman_core::{HandlerDef, NewEvent, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::TimeSource;

/// A handler: its definition as it is registered in the store, and how it is run.
#[derive(Clone, Debug)]
pub struct HandlerSpec {
    /// The definition of the handler as it is registered in the store.
    pub def: HandlerDef,
    /// The maximum duration of an attempt; an attempt that takes longer fails.
    pub attempt_timeout: Duration,
    /// `None` for a pulled handler, whose tasks are leased by pull workers.
    pub runner: Option<Arc<dyn Runner>>,
}

/// Runs attempts of one handler.
#[async_trait]
pub trait Runner: Send + Sync {
    /// The kind of handler in one word: `in-process`, `http`, `command`.
    fn handler_kind(&self) -> &'static str;

    /// A label of the target, without secrets because everybody who may see the handler sees it: the origin of a URL,
    /// or the name of a program and the number of its arguments. `None` if there is no target.
    fn target_label(&self) -> Option<String> {
        None
    }

    /// Runs one attempt. The worker enforces the timeout by cancelling `delivery.cancel_token`, and drops the future a
    /// moment later, so cleanup (of a process group, say) must happen on drop.
    async fn run(&self, delivery: Delivery) -> HandlerOutcome;
}

impl fmt::Debug for dyn Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.handler_kind())
    }
}

/// A claimed task that is handed to a runner for one attempt.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The task, with the number and the token of the attempt.
    pub task: ClaimedTask,
    /// Receives the log lines of the attempt while it runs.
    pub log_sink: LogSink,
    /// Cancelled when the attempt's time is up, when the task was cancelled, or when the node stops.
    pub cancel_token: CancellationToken,
}

/// How an attempt ended, and what commits with its end.
#[derive(Clone, Debug)]
pub struct HandlerOutcome {
    /// How the attempt ended.
    pub result: AttemptResult,
    /// The health of the target behind the handler, as far as this attempt shows. `None` if the handler has no target.
    pub target_health: Option<TargetHealth>,
    /// Emitted only if the attempt succeeded or snoozed. The worker fills in the cause.
    pub emitted_events: Vec<NewEvent>,
    /// The last log lines of the attempt.
    pub log_lines: Vec<LogLine>,
}

impl HandlerOutcome {
    /// A success without a result.
    pub fn succeeded() -> Self {
        Self {
            result: AttemptResult::Succeeded { result: None },
            target_health: None,
            emitted_events: vec![],
            log_lines: vec![],
        }
    }

    /// A failure that is retried.
    pub fn failed(error: impl Into<String>) -> Self {
        Self::failed_with_return_code(1, error)
    }

    /// A failure that is retried, with the return code of a command or a target.
    pub fn failed_with_return_code(code: i64, error: impl Into<String>) -> Self {
        let result = AttemptResult::Failed {
            error: error.into(),
            return_code: code,
            retry_at: None,
            permanent: false,
        };
        Self { result, target_health: None, emitted_events: vec![], log_lines: vec![] }
    }
}

/// Receives the log lines of a running attempt. Lines reach the store in order, in batches.
#[derive(Clone, Debug)]
pub struct LogSink {
    line_sender: tokio::sync::mpsc::Sender<LogLine>,
    time_source: Arc<TimeSource>,
}

impl LogSink {
    /// A sink that sends lines to the log writer.
    pub fn new(line_sender: tokio::sync::mpsc::Sender<LogLine>, time_source: Arc<TimeSource>) -> Self {
        Self { line_sender, time_source }
    }

    /// The time source of the attempt.
    pub fn time_source(&self) -> &Arc<TimeSource> {
        &self.time_source
    }

    /// The current time according to the store's clock.
    pub fn now(&self) -> Timestamp {
        self.time_source.now()
    }

    /// Adds a line to the log of the attempt; waits while the log writer is behind.
    pub async fn write_line(&self, time: Timestamp, level: LogLevel, message: String) {
        // The receiver is dropped only when the attempt has ended; then its log is closed.
        let _ = self.line_sender.send(LogLine { time, level, message }).await;
    }
}
