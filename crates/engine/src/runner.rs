//! How the worker runs a handler: the [`Runner`] trait, its input and its outcome.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pointsman_core::limit::Target;
use pointsman_core::store::{Claimed, Ended};
use pointsman_core::task::{Level, LogLine};
use pointsman_core::{HandlerDef, NewEvent, Timestamp};
use tokio_util::sync::CancellationToken;

use crate::TimeSource;

/// A handler: its definition as it is registered in the store, and how it is run.
#[derive(Clone, Debug)]
pub struct HandlerSpec {
    pub def: HandlerDef,
    /// An attempt that takes longer fails.
    pub timeout: Duration,
    /// None for a pulled handler, whose tasks are leased by pull workers.
    pub runner: Option<Arc<dyn Runner>>,
}

/// Runs attempts of one handler.
#[async_trait]
pub trait Runner: Send + Sync {
    /// The kind of handler in one word: `in-process`, `http`, `command`.
    fn kind(&self) -> &'static str;

    /// A label of the target, without secrets because everybody who may see the handler sees it: the origin of a URL,
    /// or the name of a program and the number of its arguments. None if there is no target.
    fn target_label(&self) -> Option<String> {
        None
    }

    /// Runs one attempt. The worker enforces the timeout by cancelling `delivery.cancel`, and drops the future a moment
    /// later, so cleanup (of a process group, say) must happen on drop.
    async fn run(&self, delivery: Delivery) -> AttemptOutcome;
}

impl fmt::Debug for dyn Runner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind())
    }
}

/// One attempt, handed to a runner.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub task: Claimed,
    pub log: LogSink,
    /// Cancelled when the attempt's time is up, when the task was cancelled, or when the node stops.
    pub cancel: CancellationToken,
}

/// How an attempt ended, and what commits with its end.
#[derive(Clone, Debug)]
pub struct AttemptOutcome {
    pub ended: Ended,
    /// The health of the target behind the handler, as far as this attempt shows. None: the handler has no target.
    pub target_health: Option<Target>,
    /// Emitted only if the attempt succeeded or snoozed. The worker fills in the cause.
    pub emits: Vec<NewEvent>,
    pub logs: Vec<LogLine>,
}

impl AttemptOutcome {
    pub fn done() -> Self {
        Self { ended: Ended::Succeeded { result: None }, target_health: None, emits: vec![], logs: vec![] }
    }

    /// A failure that is retried.
    pub fn failed(error: impl Into<String>) -> Self {
        Self::failed_with_code(1, error)
    }

    /// A failure that is retried, with the return code of a command or a target.
    pub fn failed_with_code(code: i64, error: impl Into<String>) -> Self {
        let ended = Ended::Failed { error: error.into(), code, after: None, last: false };
        Self { ended, target_health: None, emits: vec![], logs: vec![] }
    }
}

/// Takes log lines while an attempt runs. Lines reach the store in order, in batches.
#[derive(Clone, Debug)]
pub struct LogSink {
    lines: tokio::sync::mpsc::Sender<LogLine>,
    time_source: Arc<TimeSource>,
}

impl LogSink {
    pub fn new(lines: tokio::sync::mpsc::Sender<LogLine>, time: Arc<TimeSource>) -> Self {
        Self { lines, time_source: time }
    }

    /// The time source of the attempt.
    pub fn time_source(&self) -> &Arc<TimeSource> {
        &self.time_source
    }

    pub fn now(&self) -> Timestamp {
        self.time_source.now()
    }

    /// Adds a line, waiting while the store is behind.
    pub async fn write_line(&self, time: Timestamp, level: Level, message: String) {
        // The receiver is dropped only when the attempt has ended; then its log is closed.
        let _ = self.lines.send(LogLine { time, level, message }).await;
    }
}
