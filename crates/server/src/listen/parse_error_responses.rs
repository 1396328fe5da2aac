//! Problem bodies for requests that cannot be parsed.
//!
//! The HTTP library responds to such requests itself, with a status and an empty body. [`ParseErrorResponseStream`]
//! recognises these responses as they are written and writes the same status with a problem document. Errors of the
//! server itself always have a body, so that they are not mistaken for them.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::problem::Problem;

/// Maximum bytes that are read and discarded after the response: closing a connection with unread data would reset it
/// before the client has read the response.
const MAX_DRAINED_BYTES: usize = 1 << 20;
/// Maximum time for reading and discarding what the client sends after the response.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream that adds a body to the responses to requests that cannot be parsed.
pub(super) struct ParseErrorResponseStream<S> {
    stream: S,
    /// The response to a request that could not be parsed, once there is one.
    response: Option<ErrorResponse>,
}

struct ErrorResponse {
    text: Vec<u8>,
    written_bytes: usize,
    /// Bytes of the client that were read after the response.
    drained_bytes: usize,
    drain_deadline: Pin<Box<Sleep>>,
}

impl<S> ParseErrorResponseStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, response: None }
    }

    /// If `head` is the library's response without a body to a request that cannot be parsed, replaces it with a
    /// response that has a problem body. Returns whether it was replaced; the replacement is written with the next
    /// flush.
    fn replace_bodyless_response(&mut self, head: &[u8]) -> bool {
        let Some(problem) = problem_for_library_response(head) else { return false };
        let text = problem.into_raw_response().into_bytes();
        self.response = Some(ErrorResponse {
            text,
            written_bytes: 0,
            drained_bytes: 0,
            drain_deadline: Box::pin(sleep(DRAIN_TIMEOUT)),
        });
        true
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ParseErrorResponseStream<S> {
    fn poll_write_response(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(response) = &mut self.response else { return Poll::Ready(Ok(())) };
        while response.written_bytes < response.text.len() {
            let rest = &response.text[response.written_bytes..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => response.written_bytes += written,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads until the client has closed its side, within bounds.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(response) = &mut self.response else { return Poll::Ready(()) };
        let mut scratch = [0; 4096];
        while response.drained_bytes < MAX_DRAINED_BYTES {
            if response.drain_deadline.as_mut().poll(cx).is_ready() {
                break;
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
            match (read, buffer.filled().len()) {
                (Err(_), _) | (Ok(()), 0) => break,
                (Ok(()), bytes) => response.drained_bytes += bytes,
            }
        }
        Poll::Ready(())
    }
}

/// The problem for a response that the HTTP library wrote itself.
fn problem_for_library_response(head: &[u8]) -> Option<Problem> {
    let head = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?;
    let problem = match head.get(..3)? {
        b"400" => Problem::malformed(
            "the head of the request cannot be parsed; check the request line, the header lines, Content-Length \
             and Transfer-Encoding",
        ),
        b"414" => Problem::uri_too_long("the request line is too long"),
        b"431" => Problem::head_too_large(format!(
            "a request has at most {} header lines and {} bytes before its body",
            super::MAX_HEADERS,
            super::MAX_HEAD_BYTES
        )),
        _ => return None,
    };
    let is_whole = head.ends_with(b"\r\n\r\n");
    let text = std::str::from_utf8(head).ok()?;
    (is_whole && text.to_ascii_lowercase().contains("\r\ncontent-length: 0\r\n")).then_some(problem)
}

impl<S: AsyncRead + Unpin> AsyncRead for ParseErrorResponseStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ParseErrorResponseStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_response(cx))?;
        match self.replace_bodyless_response(bytes) {
            true => Poll::Ready(Ok(bytes.len())),
            false => Pin::new(&mut self.stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_response(cx))?;
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        match (filled.next(), filled.next()) {
            (Some(only), None) if self.replace_bodyless_response(only) => Poll::Ready(Ok(only.len())),
            _ => Pin::new(&mut self.stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_response(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_response(cx))?;
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        ready!(self.poll_drain(cx));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_error_responses_without_a_body_are_replaced() {
        let is_replaced = |text: &str| problem_for_library_response(text.as_bytes()).is_some();
        assert!(is_replaced(
            "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n"
        ));
        assert!(is_replaced("HTTP/1.0 431 Too Large\r\ncontent-length: 0\r\n\r\n"));
        for other in [
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 10\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 40",
            "",
        ] {
            assert!(!is_replaced(other), "{other:?}");
        }
    }
}
