//! Log lines of running attempts, on their way to the store.
//!
//! ```text
//!   attempt ──lines──▶ forward ─┐
//!   attempt ──lines──▶ forward ─┼─▶ the node's one writer ──a batch──▶ store
//!   attempt ──lines──▶ forward ─┘
//! ```
//!
//! Every channel is bounded: where the store is behind, whoever writes lines waits. Before an attempt's end is
//! sent, its lines are flushed, because behind the end its fence no longer opens anything.

use std::sync::Arc;

use pointsman_core::store::{NewLogLine, Store, StoreError};
use pointsman_core::task::{Level, LogLine};
use pointsman_core::{TaskSeq, Timestamp};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::time::StoreBackoff;

/// The most lines of one attempt that are kept.
pub(crate) const MAX_ATTEMPT_LINES: usize = 10_000;
/// The most bytes of one attempt's lines that are kept, all together.
pub(crate) const MAX_ATTEMPT_BYTES: usize = 16 << 20;
/// The most bytes of one line that are kept.
pub(crate) const MAX_LINE_BYTES: usize = 64 * 1024;
/// How many lines of one attempt wait for their turn.
pub(crate) const ATTEMPT_BUFFER_LINES: usize = 64;
/// How many lines of all attempts wait for the writer.
const NODE_BUFFER_LINES: usize = 256;

enum LogWriteRequest {
    Line(NewLogLine),
    Flush(oneshot::Sender<()>),
}

/// Where attempts leave their lines.
#[derive(Clone)]
pub(crate) struct LogWriterHandle {
    requests: mpsc::Sender<LogWriteRequest>,
    /// Changes whenever lines have been stored, for those who follow a log.
    write_count: watch::Sender<u64>,
}

impl LogWriterHandle {
    /// A logbook, and the writer that must run for it.
    pub(crate) fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>) -> (Self, LogWriter) {
        let (entries, waiting) = mpsc::channel(NODE_BUFFER_LINES);
        let stored = watch::Sender::new(0);
        (
            Self { requests: entries, write_count: stored.clone() },
            LogWriter { store, metrics, requests: waiting, write_count: stored },
        )
    }

    /// Changes after lines were stored by this node.
    pub(crate) fn subscribe_writes(&self) -> watch::Receiver<u64> {
        self.write_count.subscribe()
    }

    /// Lines were stored past the writer: with an attempt's end, or for a worker elsewhere.
    pub(crate) fn notify_stored(&self) {
        increment_write_count(&self.write_count);
    }

    /// Forwards one attempt's lines until `over`, and then those that still wait. Answers what is left of the
    /// attempt's allowance once all of them are in the store.
    pub(crate) async fn forward_lines(
        &self,
        task: TaskSeq,
        fence: i64,
        mut lines: mpsc::Receiver<LogLine>,
        over: CancellationToken,
    ) -> LogQuota {
        let mut allowance = LogQuota::default();
        let mut any = false;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                // A handler may have left its sink with something that outlives it.
                () = over.cancelled(), if !lines.is_closed() => {
                    lines.close();
                    continue;
                }
            };
            let Some(line) = line else { break };
            if let Some(line) = allowance.admit_line(line) {
                any = true;
                // The writer is gone only when the node has stopped.
                let _ = self.requests.send(LogWriteRequest::Line(NewLogLine { task, fence, line })).await;
            }
        }
        if any {
            let (flushed, done) = oneshot::channel();
            let _ = self.requests.send(LogWriteRequest::Flush(flushed)).await;
            let _ = done.await;
        }
        allowance
    }
}

/// Writes the lines of all attempts, as many at once as are waiting.
pub(crate) struct LogWriter {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    requests: mpsc::Receiver<LogWriteRequest>,
    write_count: watch::Sender<u64>,
}

fn increment_write_count(stored: &watch::Sender<u64>) {
    stored.send_modify(|times| *times = times.wrapping_add(1));
}

impl LogWriter {
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                taken = self.requests.recv_many(&mut batch, NODE_BUFFER_LINES) => if taken == 0 { return },
                () = stop.cancelled() => return,
            }
            let mut lines = Vec::new();
            let mut flushed = Vec::new();
            for entry in batch.drain(..) {
                match entry {
                    LogWriteRequest::Line(line) => lines.push(line),
                    LogWriteRequest::Flush(done) => flushed.push(done),
                }
            }
            tokio::select! {
                () = self.write_until_stored(lines) => {}
                () = stop.cancelled() => return,
            }
            for done in flushed {
                let _ = done.send(());
            }
        }
    }

    /// Writes until the store has taken it.
    async fn write_until_stored(&self, lines: Vec<NewLogLine>) {
        let mut patience = StoreBackoff::new();
        while !lines.is_empty() {
            match self.store.log(lines.clone()).await {
                Ok(_) => return increment_write_count(&self.write_count),
                Err(StoreError::Closed) => return,
                Err(error) => {
                    self.metrics.store_errors.inc();
                    tracing::debug!(%error, lines = lines.len(), "log lines wait for the store");
                    tokio::time::sleep(patience.next_delay()).await;
                }
            }
        }
    }
}

/// How much an attempt may still log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogQuota {
    lines: usize,
    bytes: usize,
    /// The mark has been set, and nothing comes after it.
    is_cut: bool,
}

impl LogQuota {
    /// The line as it is kept; the mark in place of the first one too many; nothing after that.
    pub(crate) fn admit_line(&mut self, line: LogLine) -> Option<LogLine> {
        if self.is_cut {
            return None;
        }
        let line = LogLine { message: truncate_line(line.message), ..line };
        let limit = if self.lines >= MAX_ATTEMPT_LINES {
            Some(format!("{MAX_ATTEMPT_LINES} lines"))
        } else if self.bytes + line.message.len() > MAX_ATTEMPT_BYTES {
            Some(format!("{} MiB", MAX_ATTEMPT_BYTES >> 20))
        } else {
            None
        };
        self.is_cut = limit.is_some();
        let line = limit.map(|limit| truncation_mark(line.time, &limit)).unwrap_or(line);
        self.count_line(&line);
        Some(line)
    }

    /// A line that the store has, of one who kept to the same limits.
    pub(crate) fn count_stored_line(&mut self, line: &LogLine) {
        self.count_line(line);
        self.is_cut |= self.lines > MAX_ATTEMPT_LINES || line.message.starts_with(TRUNCATION_MARK_PREFIX);
    }

    fn count_line(&mut self, line: &LogLine) {
        self.lines = self.lines.saturating_add(1);
        self.bytes = self.bytes.saturating_add(line.message.len());
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.is_cut
    }

    /// So many lines of so many bytes were admitted, and never reached the store.
    pub(crate) fn refund(&mut self, lines: usize, bytes: usize) {
        self.lines = self.lines.saturating_sub(lines);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.is_cut &= lines == 0;
    }
}

/// What the mark begins with.
const TRUNCATION_MARK_PREFIX: &str = "… output is cut here: the limit of ";

fn truncation_mark(time: Timestamp, limit: &str) -> LogLine {
    LogLine { time, level: Level::Error, message: format!("{TRUNCATION_MARK_PREFIX}{limit} is reached") }
}

/// A text of at most [`MAX_LINE_BYTES`], with a visible mark where it was cut.
pub(crate) fn truncate_line(mut text: String) -> String {
    const ELLIPSIS: char = '…';
    if text.len() > MAX_LINE_BYTES {
        let most = MAX_LINE_BYTES - ELLIPSIS.len_utf8();
        // A character has four bytes at most, so one of these is a boundary.
        let at = (most - 3..=most).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(at.unwrap_or(0));
        text.push(ELLIPSIS);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &str) -> LogLine {
        LogLine { time: Timestamp::MIN, level: Level::Info, message: message.into() }
    }

    #[test]
    fn lines_beyond_the_line_limit_are_replaced_by_one_mark() {
        let mut allowance = LogQuota::default();
        let kept: Vec<_> =
            (0..MAX_ATTEMPT_LINES + 50).filter_map(|_| allowance.admit_line(line("same"))).collect();
        assert_eq!(kept.len(), MAX_ATTEMPT_LINES + 1);
        assert!(kept[..MAX_ATTEMPT_LINES].iter().all(|l| l.message == "same"));
        assert!(kept[MAX_ATTEMPT_LINES].message.contains("limit of 10000 lines"));
    }

    #[test]
    fn lines_beyond_the_byte_limit_are_replaced_by_one_mark() {
        let mut allowance = LogQuota::default();
        let long = "x".repeat(MAX_LINE_BYTES);
        let kept: Vec<_> = (0..1000).filter_map(|_| allowance.admit_line(line(&long))).collect();
        assert_eq!(kept.len(), MAX_ATTEMPT_BYTES / MAX_LINE_BYTES + 1);
        assert!(kept.last().unwrap().message.contains("limit of 16 MiB"));
        assert!(allowance.admit_line(line("a short one")).is_none(), "nothing comes after the mark");
    }

    #[test]
    fn refunded_lines_do_not_count_against_the_quota() {
        let mut allowance = LogQuota::default();
        (0..MAX_ATTEMPT_LINES - 1).for_each(|_| drop(allowance.admit_line(line("same"))));
        let lost: Vec<_> = (0..3).filter_map(|_| allowance.admit_line(line("lost"))).collect();
        assert_eq!(lost.len(), 2);
        allowance.refund(lost.len(), lost.iter().map(|line| line.message.len()).sum());
        let kept: Vec<_> = (0..3).filter_map(|_| allowance.admit_line(line("kept"))).collect();
        assert_eq!((kept.len(), kept[0].message.as_str()), (2, "kept"));
        assert!(kept[1].message.starts_with(TRUNCATION_MARK_PREFIX));
    }

    #[test]
    fn long_lines_are_truncated_between_characters() {
        for long in ["x".repeat(MAX_LINE_BYTES + 1), "é".repeat(MAX_LINE_BYTES)] {
            let kept = truncate_line(long);
            assert!(kept.len() <= MAX_LINE_BYTES && kept.len() > MAX_LINE_BYTES - 8);
            assert!(kept.ends_with('…'));
        }
        assert_eq!(truncate_line("short".into()), "short");
    }
}
