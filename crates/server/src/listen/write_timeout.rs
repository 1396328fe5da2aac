//! Disconnects clients that do not read, or that read too slowly.
//!
//! A client that reads nothing for `max_write_wait` is disconnected. A client whose connection uses response memory must
//! also read at a minimum average rate:
//!
//! ```text
//!  allowance:  starts at `grace_period`; a write that waits uses it up; bytes written after that add to it, at the
//!              minimum rate and up to `max_write_wait`. At zero the client is disconnected.
//! ```

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::limits::ConnectionMemoryPermits;

/// Limits for clients that read slowly.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlowReaderLimits {
    /// The longest time that a write may wait.
    pub(super) max_write_wait: Duration,
    /// The initial allowance of a client with response memory. The operating system reports progress only when a third
    /// of its send buffer is free, so that a shorter time would disconnect clients that do read.
    pub(super) grace_period: Duration,
    /// The minimum rate after that.
    pub(super) min_bytes_per_second: u32,
}

/// A stream whose writes fail if they make no or too little progress. Without it, a client that stops reading would keep
/// its connection and the data to be sent forever.
pub(super) struct WriteTimeoutStream<S> {
    stream: S,
    reader_limits: SlowReaderLimits,
    connection_memory_permits: ConnectionMemoryPermits,
    /// The timer that runs while a write waits. When it fires, the write fails.
    timer: Pin<Box<Sleep>>,
    waiting_since: Option<Instant>,
    /// The remaining time that writes may wait while the connection uses response memory.
    remaining_wait: Duration,
    /// Whether a write has waited. Then the operating system's buffers are full, and the client reads as much as is
    /// written.
    has_write_waited: bool,
}

impl<S> WriteTimeoutStream<S> {
    pub(super) fn new(
        stream: S,
        reader_limits: SlowReaderLimits,
        connection_memory: ConnectionMemoryPermits,
    ) -> Self {
        Self {
            stream,
            reader_limits,
            connection_memory_permits: connection_memory,
            timer: Box::pin(sleep(reader_limits.max_write_wait)),
            waiting_since: None,
            remaining_wait: reader_limits.grace_period,
            has_write_waited: false,
        }
    }

    /// Passes on the result of a write, or fails the write with a timeout if the client reads too slowly.
    fn apply_slow_reader_limits(
        &mut self,
        written: Poll<io::Result<usize>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let has_memory = self.connection_memory_permits.has_permits();
        if !has_memory {
            (self.remaining_wait, self.has_write_waited) = (self.reader_limits.grace_period, false);
        }
        if let Poll::Ready(result) = written {
            if let Some(since) = self.waiting_since.take() {
                self.remaining_wait = self.remaining_wait.saturating_sub(since.elapsed());
            }
            if let (true, Ok(bytes)) = (self.has_write_waited, &result) {
                let bytes = u32::try_from(*bytes).unwrap_or(u32::MAX);
                let earned = Duration::from_secs(1) * bytes / self.reader_limits.min_bytes_per_second;
                self.remaining_wait = (self.remaining_wait + earned).min(self.reader_limits.max_write_wait);
            }
            return Poll::Ready(result);
        }
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let max_wait = match has_memory {
            true => self.remaining_wait.min(self.reader_limits.max_write_wait),
            false => self.reader_limits.max_write_wait,
        };
        self.has_write_waited = has_memory;
        if self.timer.deadline() != since + max_wait {
            self.timer.as_mut().reset(since + max_wait);
        }
        ready!(self.timer.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client does not read its response, or reads it too slowly",
        )))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.apply_slow_reader_limits(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.apply_slow_reader_limits(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx).map_ok(|()| 0);
        self.apply_slow_reader_limits(flushed, cx).map_ok(|_| ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;
    use crate::limits::ResponseMemoryBudget;
    use crate::limits::testing::{test_caller, test_server_limits};

    const TEST_LIMITS: SlowReaderLimits = SlowReaderLimits {
        max_write_wait: Duration::from_millis(1000),
        grace_period: Duration::from_millis(100),
        min_bytes_per_second: 1000,
    };

    /// Reads a byte every few milliseconds.
    async fn read_slowly(mut stream: DuplexStream, pause: Duration) {
        while stream.read_u8().await.is_ok() {
            tokio::time::sleep(pause).await;
        }
    }

    #[tokio::test]
    async fn writes_to_a_client_that_does_not_read_time_out() {
        let (ours, theirs) = tokio::io::duplex(16);
        let reader_limits = SlowReaderLimits { max_write_wait: Duration::from_millis(20), ..TEST_LIMITS };
        let mut ours = WriteTimeoutStream::new(ours, reader_limits, ConnectionMemoryPermits::default());
        let error = ours.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(theirs);
    }

    #[tokio::test]
    async fn a_client_with_response_memory_must_read_at_the_minimum_rate() {
        let (budget, memory) = (
            ResponseMemoryBudget::new(&test_server_limits(), Arc::default()),
            ConnectionMemoryPermits::default(),
        );
        let permit =
            memory.run_and_count_permits(async { budget.reserve(&test_caller("one"), 1).unwrap() }).await;
        // About 50 bytes a second.
        let (ours, theirs) = tokio::io::duplex(16);
        let reading = tokio::spawn(read_slowly(theirs, Duration::from_millis(20)));
        let mut ours = WriteTimeoutStream::new(ours, TEST_LIMITS, memory.clone());
        let error = ours.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(ours);
        reading.await.unwrap();

        // Without response memory it only has to make progress.
        drop(permit);
        let (ours, theirs) = tokio::io::duplex(16);
        let reading = tokio::spawn(read_slowly(theirs, Duration::from_millis(20)));
        WriteTimeoutStream::new(ours, TEST_LIMITS, memory).write_all(&[0; 64]).await.unwrap();
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn reading_extends_the_time_a_client_has() {
        let (budget, memory) = (
            ResponseMemoryBudget::new(&test_server_limits(), Arc::default()),
            ConnectionMemoryPermits::default(),
        );
        let _permit =
            memory.run_and_count_permits(async { budget.reserve(&test_caller("one"), 1).unwrap() }).await;
        let (ours, mut theirs) = tokio::io::duplex(200);
        let reading = tokio::spawn(async move {
            let mut bytes = [0; 200];
            // 4000 bytes a second, in pieces; all the pauses together are longer than the grace period.
            while theirs.read_exact(&mut bytes).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        WriteTimeoutStream::new(ours, TEST_LIMITS, memory).write_all(&[0; 2000]).await.unwrap();
        reading.await.unwrap();
    }
}
