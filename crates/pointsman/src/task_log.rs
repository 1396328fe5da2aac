//! Writes handlers' `tracing` events to the logs of their tasks.
//!
//! ```text
//!  tracing::info!(…) ─▶ TaskLogLayer ─▶ LogLineSender ─▶ LogLineReceiver ─▶ the store, in batches
//! ```
//!
//! The layer never blocks, because logging must not; the receiver runs concurrently with the handler and waits for the
//! store.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::task::{LogLevel, LogLine};
use pointsman_engine::TimeSource;
use pointsman_engine::runner::LogSink;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::field::{Field, Visit};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::attempt_scope;

/// The maximum number of lines that one attempt sends. The engine stores fewer and marks where it truncated the log;
/// this limit only bounds the memory that a handler uses which logs without end.
const MAX_SENT_LINES_PER_ATTEMPT: usize = 20_000;

/// A `tracing` layer that writes events of an attempt to the log of its task. It ignores events outside attempts. It
/// accepts levels up to `INFO` unless [`TaskLogLayer::with_max_level`] sets another; `ERROR` becomes the log level
/// `error`.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let subscriber = tracing_subscriber::registry().with(pointsman::TaskLogLayer::new());
/// # let _ = subscriber;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TaskLogLayer {
    max_level: tracing::Level,
}

impl TaskLogLayer {
    /// A layer for the attempts of all buses of the program.
    pub fn new() -> Self {
        Self { max_level: tracing::Level::INFO }
    }

    /// Accepts events up to this level.
    pub fn with_max_level(max_level: tracing::Level) -> Self {
        Self { max_level }
    }

    fn accepts_level(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.max_level
    }
}

impl Default for TaskLogLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Subscriber> Layer<S> for TaskLogLayer {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if !self.accepts_level(event.metadata()) {
            return;
        }
        attempt_scope::with_current_log_sender(|log_sender| {
            let mut formatter = LineFormatter::default();
            event.record(&mut formatter);
            let level = if *event.metadata().level() == tracing::Level::ERROR {
                LogLevel::Error
            } else {
                LogLevel::Info
            };
            log_sender.send(level, formatter.into_line());
        });
    }
}

/// Formats an event as its message, then its other fields as `name=value`.
#[derive(Default)]
struct LineFormatter {
    message: String,
    fields: String,
}

impl LineFormatter {
    fn into_line(self) -> String {
        match self.message.is_empty() {
            true => self.fields.trim_start().to_owned(),
            false => self.message + &self.fields,
        }
    }
}

impl Visit for LineFormatter {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// Sends the log lines of one attempt.
#[derive(Clone)]
pub(crate) struct LogLineSender(Arc<Mutex<LogSenderState>>);

struct LogSenderState {
    /// `None` once the attempt has ended.
    line_sender: Option<UnboundedSender<LogLine>>,
    line_count: usize,
    time_source: Arc<TimeSource>,
}

/// Receives the log lines of one attempt.
pub(crate) struct LogLineReceiver(UnboundedReceiver<LogLine>);

impl LogLineSender {
    /// Creates a sender and its receiver; `time_source` provides the times of the lines.
    pub(crate) fn new(time_source: Arc<TimeSource>) -> (Self, LogLineReceiver) {
        let (sender, receiver) = unbounded_channel();
        (
            Self(Arc::new(Mutex::new(LogSenderState {
                line_sender: Some(sender),
                line_count: 0,
                time_source,
            }))),
            LogLineReceiver(receiver),
        )
    }

    /// Accepts no more lines, so that the receiver ends.
    pub(crate) fn close(&self) {
        self.with_state(|state| state.line_sender = None);
    }

    fn send(&self, level: LogLevel, message: String) {
        self.with_state(|state| {
            state.line_count += 1;
            if let Some(line_sender) =
                state.line_sender.as_ref().filter(|_| state.line_count <= MAX_SENT_LINES_PER_ATTEMPT)
            {
                // The receiver is gone only if the attempt was dropped.
                let _ = line_sender.send(LogLine { time: state.time_source.now(), level, message });
            }
        });
    }

    fn with_state(&self, change: impl FnOnce(&mut LogSenderState)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl LogLineReceiver {
    /// Forwards lines to the engine until the sender is closed and all are sent.
    pub(crate) async fn forward_to(mut self, sink: LogSink) {
        while let Some(LogLine { time, level, message }) = self.0.recv().await {
            sink.write_line(time, level, message).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::prelude::*;

    /// Runs `work` in an attempt with this layer, and returns the log lines of the attempt.
    async fn run_and_collect_log_lines(layer: TaskLogLayer, work: impl AsyncFn()) -> Vec<(LogLevel, String)> {
        let (sender, mut receiver) = LogLineSender::new(Arc::default());
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        attempt_scope::tests::run_in_test_attempt(sender.clone(), work()).await;
        sender.close();
        std::iter::from_fn(|| receiver.0.try_recv().ok()).map(|line| (line.level, line.message)).collect()
    }

    #[tokio::test]
    async fn log_lines_contain_message_and_fields() {
        let lines = run_and_collect_log_lines(TaskLogLayer::new(), async || {
            tracing::info!("a line without fields");
            tracing::warn!(count = 3, user = "ann", "a line with fields");
            tracing::error!(code = 7);
            tracing::debug!("a debug line, which is not logged by default");
        })
        .await;
        let info = |text: &str| (LogLevel::Info, text.to_owned());
        assert_eq!(
            lines,
            [
                info("a line without fields"),
                info("a line with fields count=3 user=ann"),
                (LogLevel::Error, "code=7".into())
            ]
        );
    }

    #[tokio::test]
    async fn the_maximum_level_can_be_set() {
        let lines =
            run_and_collect_log_lines(TaskLogLayer::with_max_level(tracing::Level::DEBUG), async || {
                tracing::debug!("a debug line, which is logged at this maximum level")
            })
            .await;
        assert_eq!(lines.len(), 1);
    }

    #[tokio::test]
    async fn tracing_events_outside_an_attempt_are_ignored() {
        let lines = run_and_collect_log_lines(TaskLogLayer::new(), async || {
            // A spawned future does not belong to the attempt.
            let spawned = tokio::spawn(async { tracing::info!("a line outside of the attempt") });
            spawned.await.unwrap();
            tracing::info!("a line of the attempt");
        })
        .await;
        assert_eq!(lines, [(LogLevel::Info, "a line of the attempt".to_owned())]);
    }

    #[tokio::test]
    async fn lines_per_attempt_are_limited() {
        let lines = run_and_collect_log_lines(TaskLogLayer::new(), async || {
            (0..MAX_SENT_LINES_PER_ATTEMPT + 5).for_each(|_| tracing::info!("one of too many lines"))
        })
        .await;
        assert_eq!(lines.len(), MAX_SENT_LINES_PER_ATTEMPT);
    }
}
