//! The log writer: writes log lines of running attempts to the store.
//!
//! ```text
//!   attempt ──lines──▶ forward ─┐
//!   attempt ──lines──▶ forward ─┼─▶ the node's one writer ──a batch──▶ store
//!   attempt ──lines──▶ forward ─┘
//! ```
//!
//! Every channel is bounded: if the store is slow, handlers that log wait. The lines of an attempt are flushed before
//! its end is sent, because the store refuses its fence after the end.

use std::sync::Arc;

use pointsman_core::store::{AttemptLogLine, StoreError, TaskQueue};
use pointsman_core::task::{LogLevel, LogLine};
use pointsman_core::{ErrorChain, TaskSeq, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::supervisor::Service;
use crate::time::StoreBackoff;

/// The maximum number of stored lines of one attempt.
pub(crate) const MAX_LOG_LINES_PER_ATTEMPT: usize = 10_000;
/// The maximum total size of the stored lines of one attempt.
pub(crate) const MAX_LOG_BYTES_PER_ATTEMPT: usize = 16 << 20;
/// The maximum size of one stored line.
pub(crate) const MAX_LOG_LINE_BYTES: usize = 64 * 1024;
/// The capacity of the channel between one attempt and its forwarder.
pub(crate) const ATTEMPT_LOG_CHANNEL_CAPACITY: usize = 64;
/// The capacity of the channel between all forwarders and the writer.
const NODE_LOG_CHANNEL_CAPACITY: usize = 256;

enum LogWriteRequest {
    Line(AttemptLogLine),
    Flush(oneshot::Sender<()>),
}

/// Hands lines of attempts to the log writer.
#[derive(Clone)]
pub(crate) struct LogWriterHandle {
    request_sender: mpsc::Sender<LogWriteRequest>,
    /// Changes whenever lines have been stored, for followers of a log.
    write_count: watch::Sender<u64>,
}

impl LogWriterHandle {
    /// Creates a handle, and the service that writes the lines it receives.
    pub(crate) fn new(task_queue: Arc<dyn TaskQueue>, metrics: Arc<Metrics>) -> (Self, LogWriter) {
        let (sender, receiver) = mpsc::channel(NODE_LOG_CHANNEL_CAPACITY);
        let write_count = watch::Sender::new(0);
        (
            Self { request_sender: sender, write_count: write_count.clone() },
            LogWriter {
                task_queue,
                metrics,
                request_receiver: receiver,
                write_count,
                unwritten_batch: LogBatch::default(),
            },
        )
    }

    /// Subscribes to a counter that changes whenever this node has stored lines.
    pub(crate) fn subscribe_writes(&self) -> watch::Receiver<u64> {
        self.write_count.subscribe()
    }

    /// Notifies followers of lines that were stored without the writer: with an attempt's end, or by a pull worker.
    pub(crate) fn notify_lines_stored(&self) {
        increment_write_count(&self.write_count);
    }

    /// Forwards one attempt's lines until the handler has ended, and then those in the channel. Once
    /// all lines are in the store, returns the attempt's quota with these lines counted.
    pub(crate) async fn forward_lines(
        &self,
        task: TaskSeq,
        fence: i64,
        mut lines: mpsc::Receiver<LogLine>,
        handler_ended: CancellationToken,
    ) -> LogQuota {
        let mut quota = LogQuota::default();
        let mut has_lines = false;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                // A spawned future that outlives the handler may still have the sink.
                () = handler_ended.cancelled(), if !lines.is_closed() => {
                    lines.close();
                    continue;
                }
            };
            let Some(line) = line else { break };
            if let Some(line) = quota.admit_line(line) {
                has_lines = true;
                // The writer is gone only when the node has stopped.
                let _ = self
                    .request_sender
                    .send(LogWriteRequest::Line(AttemptLogLine { task_seq: task, fence, line }))
                    .await;
            }
        }
        if has_lines {
            let (flushed_sender, flushed_receiver) = oneshot::channel();
            let _ = self.request_sender.send(LogWriteRequest::Flush(flushed_sender)).await;
            let _ = flushed_receiver.await;
        }
        quota
    }
}

/// The service that writes the lines of all attempts, in batches of all that wait.
pub(crate) struct LogWriter {
    task_queue: Arc<dyn TaskQueue>,
    metrics: Arc<Metrics>,
    request_receiver: mpsc::Receiver<LogWriteRequest>,
    write_count: watch::Sender<u64>,
    unwritten_batch: LogBatch,
}

/// Lines that were received and are not stored yet, and the attempts that wait until they are.
#[derive(Default)]
struct LogBatch {
    lines: Vec<AttemptLogLine>,
    flush_waiters: Vec<oneshot::Sender<()>>,
}

impl LogBatch {
    fn add_request(&mut self, request: LogWriteRequest) {
        match request {
            LogWriteRequest::Line(line) => self.lines.push(line),
            LogWriteRequest::Flush(flushed_sender) => self.flush_waiters.push(flushed_sender),
        }
    }
}

fn increment_write_count(write_count: &watch::Sender<u64>) {
    write_count.send_modify(|count| *count = count.wrapping_add(1));
}

impl Service for LogWriter {
    /// Writes until stopped. Lines that arrive later are dropped with the attempts that log them.
    async fn run(&mut self, stop: CancellationToken) {
        let mut received = Vec::new();
        loop {
            // After a restart, the lines of the failed run come first.
            stop.run_until_cancelled(self.write_until_stored()).await;
            if stop.is_cancelled() {
                return;
            }
            tokio::select! {
                received_count = self.request_receiver.recv_many(&mut received, NODE_LOG_CHANNEL_CAPACITY) => {
                    if received_count == 0 {
                        return;
                    }
                }
                () = stop.cancelled() => return,
            }
            received.drain(..).for_each(|request| self.unwritten_batch.add_request(request));
        }
    }
}

impl LogWriter {
    /// Retries the write until the store has accepted all lines, then notifies the attempts that wait for it.
    async fn write_until_stored(&mut self) {
        let mut backoff = StoreBackoff::new();
        while !self.unwritten_batch.lines.is_empty() {
            match self.task_queue.append_log_lines(self.unwritten_batch.lines.clone()).await {
                Ok(_) => {
                    self.unwritten_batch.lines.clear();
                    increment_write_count(&self.write_count);
                }
                Err(StoreError::Closed) => self.unwritten_batch.lines.clear(),
                Err(error) => {
                    self.metrics.store_errors.inc();
                    tracing::debug!(
                        error = %ErrorChain(&error), line_count = self.unwritten_batch.lines.len(),
                        "could not store log lines; retrying, and handlers that log wait meanwhile"
                    );
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        }
        for waiter in self.unwritten_batch.flush_waiters.drain(..) {
            let _ = waiter.send(());
        }
    }
}

/// The lines and bytes that an attempt has logged, counted against its limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogQuota {
    used_lines: usize,
    used_bytes: usize,
    /// Whether the truncation mark was written; then later lines are dropped.
    is_truncated: bool,
}

impl LogQuota {
    /// Counts a line and returns it as it is stored: truncated if it is too long. The first line over a limit is
    /// replaced by the truncation mark; lines after that are dropped (`None`).
    pub(crate) fn admit_line(&mut self, line: LogLine) -> Option<LogLine> {
        if self.is_truncated {
            return None;
        }
        let line = LogLine { message: truncate_line(line.message), ..line };
        let limit = if self.used_lines >= MAX_LOG_LINES_PER_ATTEMPT {
            Some(format!("{MAX_LOG_LINES_PER_ATTEMPT} lines"))
        } else if self.used_bytes + line.message.len() > MAX_LOG_BYTES_PER_ATTEMPT {
            Some(format!("{} MiB", MAX_LOG_BYTES_PER_ATTEMPT >> 20))
        } else {
            None
        };
        self.is_truncated = limit.is_some();
        let line = limit.map(|limit| truncation_mark_line(line.time, &limit)).unwrap_or(line);
        self.count_line(&line);
        Some(line)
    }

    /// Counts a line that was admitted earlier and is in the store.
    pub(crate) fn count_stored_line(&mut self, line: &LogLine) {
        self.count_line(line);
        self.is_truncated |=
            self.used_lines > MAX_LOG_LINES_PER_ATTEMPT || line.message.starts_with(TRUNCATION_MARK_PREFIX);
    }

    fn count_line(&mut self, line: &LogLine) {
        self.used_lines = self.used_lines.saturating_add(1);
        self.used_bytes = self.used_bytes.saturating_add(line.message.len());
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.is_truncated
    }

    /// Gives back the quota of lines that were admitted but never reached the store.
    pub(crate) fn refund_lines(&mut self, lines: usize, bytes: usize) {
        self.used_lines = self.used_lines.saturating_sub(lines);
        self.used_bytes = self.used_bytes.saturating_sub(bytes);
        self.is_truncated &= lines == 0;
    }
}

/// The start of the truncation mark.
const TRUNCATION_MARK_PREFIX: &str = "… output is cut here: the limit of ";

fn truncation_mark_line(time: Timestamp, limit: &str) -> LogLine {
    LogLine { time, level: LogLevel::Error, message: format!("{TRUNCATION_MARK_PREFIX}{limit} is reached") }
}

/// Truncates a text to [`MAX_LOG_LINE_BYTES`], with an ellipsis at the end if it was longer.
pub(crate) fn truncate_line(mut text: String) -> String {
    const ELLIPSIS: char = '…';
    if text.len() > MAX_LOG_LINE_BYTES {
        let limit = MAX_LOG_LINE_BYTES - ELLIPSIS.len_utf8();
        // A character has four bytes at most, so one of these is a boundary.
        let at = (limit - 3..=limit).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(at.unwrap_or(0));
        text.push(ELLIPSIS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_line(message: &str) -> LogLine {
        LogLine { time: Timestamp::MIN, level: LogLevel::Info, message: message.into() }
    }

    #[test]
    fn lines_beyond_the_line_limit_are_replaced_by_one_mark() {
        let mut quota = LogQuota::default();
        let kept: Vec<_> = (0..MAX_LOG_LINES_PER_ATTEMPT + 50)
            .filter_map(|_| quota.admit_line(log_line("a log line")))
            .collect();
        assert_eq!(kept.len(), MAX_LOG_LINES_PER_ATTEMPT + 1);
        assert!(kept[..MAX_LOG_LINES_PER_ATTEMPT].iter().all(|l| l.message == "a log line"));
        assert!(kept[MAX_LOG_LINES_PER_ATTEMPT].message.contains("limit of 10000 lines"));
    }

    #[test]
    fn lines_beyond_the_byte_limit_are_replaced_by_one_mark() {
        let mut quota = LogQuota::default();
        let long = "x".repeat(MAX_LOG_LINE_BYTES);
        let kept: Vec<_> = (0..1000).filter_map(|_| quota.admit_line(log_line(&long))).collect();
        assert_eq!(kept.len(), MAX_LOG_BYTES_PER_ATTEMPT / MAX_LOG_LINE_BYTES + 1);
        assert!(kept.last().unwrap().message.contains("limit of 16 MiB"));
        assert!(quota.admit_line(log_line("a short one")).is_none(), "no line follows the mark");
    }

    #[test]
    fn refunded_lines_do_not_count_against_the_quota() {
        let mut quota = LogQuota::default();
        (0..MAX_LOG_LINES_PER_ATTEMPT - 1).for_each(|_| drop(quota.admit_line(log_line("a log line"))));
        let refunded: Vec<_> = (0..3).filter_map(|_| quota.admit_line(log_line("a refunded line"))).collect();
        assert_eq!(refunded.len(), 2);
        quota.refund_lines(refunded.len(), refunded.iter().map(|line| line.message.len()).sum());
        let kept: Vec<_> = (0..3).filter_map(|_| quota.admit_line(log_line("a stored line"))).collect();
        assert_eq!((kept.len(), kept[0].message.as_str()), (2, "a stored line"));
        assert!(kept[1].message.starts_with(TRUNCATION_MARK_PREFIX));
    }

    #[test]
    fn long_lines_are_truncated_between_characters() {
        for long in ["x".repeat(MAX_LOG_LINE_BYTES + 1), "é".repeat(MAX_LOG_LINE_BYTES)] {
            let kept = truncate_line(long);
            assert!(kept.len() <= MAX_LOG_LINE_BYTES && kept.len() > MAX_LOG_LINE_BYTES - 8);
            assert!(kept.ends_with('…'));
        }
        assert_eq!(truncate_line("short".into()), "short");
    }
}
