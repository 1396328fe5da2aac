//! What handlers log through `tracing` becomes lines of their tasks' logs.
//!
//! ```text
//!  tracing::info!(…) ─▶ TaskLog (a layer) ─▶ the attempt's queue ─▶ pump ─▶ the store, in batches
//! ```
//!
//! The layer never waits, because logging never does; the pump beside the handler waits for the store in its
//! stead.

use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use pointsman_core::task::{Level, LogLine};
use pointsman_engine::TimeSource;
use pointsman_engine::runner::LogSink;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::field::{Field, Visit};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::scope;

/// The most lines that an attempt's queue takes: well above what the engine keeps of one attempt, which puts
/// the mark where it cuts. This one only bounds the memory of a handler that logs without end.
const MAX_LINES: usize = 20_000;

/// A `tracing` layer that sends what is logged inside an attempt to the log of its task. Everything else it
/// leaves alone. Lines are taken up to `INFO` unless [`TaskLog::up_to`] says otherwise; errors show as errors.
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let subscriber = tracing_subscriber::registry().with(pointsman::TaskLog::new());
/// # let _ = subscriber;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TaskLog {
    most: tracing::Level,
}

impl TaskLog {
    pub fn new() -> Self {
        Self { most: tracing::Level::INFO }
    }

    /// Takes lines up to this level.
    pub fn up_to(level: tracing::Level) -> Self {
        Self { most: level }
    }

    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.most
    }
}

impl Default for TaskLog {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Subscriber> Layer<S> for TaskLog {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if !self.wants(event.metadata()) {
            return;
        }
        scope::with_lines(|lines| {
            let mut text = Text::default();
            event.record(&mut text);
            let level =
                if *event.metadata().level() == tracing::Level::ERROR { Level::Error } else { Level::Info };
            lines.add(level, text.into_line());
        });
    }
}

/// The message, then the other fields as `name=value`.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    fn into_line(self) -> String {
        match self.message.is_empty() {
            true => self.fields.trim_start().to_owned(),
            false => self.message + &self.fields,
        }
    }
}

impl Visit for Text {
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

/// Where the lines of one attempt go in.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Mutex<Inlet>>);

struct Inlet {
    /// `None` once the attempt has ended.
    queue: Option<UnboundedSender<LogLine>>,
    taken: usize,
    time: Arc<TimeSource>,
}

/// Where they come out.
pub(crate) struct Queue(UnboundedReceiver<LogLine>);

impl Lines {
    /// `time` stamps the lines.
    pub(crate) fn new(time: Arc<TimeSource>) -> (Self, Queue) {
        let (sender, receiver) = unbounded_channel();
        (Self(Arc::new(Mutex::new(Inlet { queue: Some(sender), taken: 0, time }))), Queue(receiver))
    }

    /// Takes no more, so that the pump comes to an end.
    pub(crate) fn close(&self) {
        self.inlet(|inlet| inlet.queue = None);
    }

    fn add(&self, level: Level, message: String) {
        self.inlet(|inlet| {
            inlet.taken += 1;
            if let Some(queue) = inlet.queue.as_ref().filter(|_| inlet.taken <= MAX_LINES) {
                // The pump is gone only when the attempt was dropped.
                let _ = queue.send(LogLine { time: inlet.time.now(), level, message });
            }
        });
    }

    fn inlet(&self, act: impl FnOnce(&mut Inlet)) {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Queue {
    /// Hands lines on until the queue is closed and empty.
    pub(crate) async fn pump(mut self, sink: LogSink) {
        while let Some(LogLine { time, level, message }) = self.0.recv().await {
            sink.line(time, level, message).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::prelude::*;

    /// Logs inside one attempt and returns what came out.
    async fn logged(layer: TaskLog, work: impl AsyncFn()) -> Vec<(Level, String)> {
        let (lines, mut queue) = Lines::new(Arc::default());
        let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        scope::tests::inside(lines.clone(), work()).await;
        lines.close();
        std::iter::from_fn(|| queue.0.try_recv().ok()).map(|line| (line.level, line.message)).collect()
    }

    #[tokio::test]
    async fn lines_carry_message_and_fields() {
        let lines = logged(TaskLog::new(), async || {
            tracing::info!("plain");
            tracing::warn!(count = 3, who = "me", "with fields");
            tracing::error!(code = 7);
            tracing::debug!("too quiet");
        })
        .await;
        let info = |text: &str| (Level::Info, text.to_owned());
        assert_eq!(
            lines,
            [info("plain"), info("with fields count=3 who=me"), (Level::Error, "code=7".into())]
        );
    }

    #[tokio::test]
    async fn the_level_can_be_chosen() {
        let lines = logged(TaskLog::up_to(tracing::Level::DEBUG), async || tracing::debug!("quiet")).await;
        assert_eq!(lines.len(), 1);
    }

    #[tokio::test]
    async fn outside_an_attempt_nothing_is_kept() {
        let lines = logged(TaskLog::new(), async || ()).await;
        tracing::info!("nobody's");
        assert!(lines.is_empty());
    }

    #[tokio::test]
    async fn a_handler_that_logs_without_end_does_not_fill_the_memory() {
        let lines =
            logged(TaskLog::new(), async || (0..MAX_LINES + 5).for_each(|_| tracing::info!("same"))).await;
        assert_eq!(lines.len(), MAX_LINES);
    }
}
