//! Problem bodies for requests that cannot be parsed.
//!
//! The HTTP implementation answers such requests by itself, with a status and an empty body. [`ParseErrors`] recognises
//! these answers on their way out and writes the same status with a problem document. No answer of the server's own
//! looks like them: each of its errors has a body.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::problem::Problem;

/// How much of what the client still sends is read after the answer, and for how long: closing with something unread
/// would reset the connection under the answer.
const LINGER_BYTES: usize = 1 << 20;
const LINGER: Duration = Duration::from_secs(1);

/// A connection whose parse errors have a body.
pub(super) struct ParseErrors<S> {
    stream: S,
    /// The answer to a request that could not be parsed, once there is one.
    answer: Option<Answer>,
}

struct Answer {
    text: Vec<u8>,
    written: usize,
    /// How much of what the client sent was read since.
    drained: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> ParseErrors<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, answer: None }
    }

    /// Takes over an answer without a body. True: it is written with the next flush.
    fn replace(&mut self, head: &[u8]) -> bool {
        let Some(problem) = problem_of(head) else { return false };
        let text = problem.into_raw_response().into_bytes();
        self.answer = Some(Answer { text, written: 0, drained: 0, deadline: Box::pin(sleep(LINGER)) });
        true
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ParseErrors<S> {
    fn poll_write_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(Ok(())) };
        while answer.written < answer.text.len() {
            let rest = &answer.text[answer.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => answer.written += written,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads until the client has closed its side, within bounds.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(()) };
        let mut scratch = [0; 4096];
        while answer.drained < LINGER_BYTES {
            if answer.deadline.as_mut().poll(cx).is_ready() {
                break;
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
            match (read, buffer.filled().len()) {
                (Err(_), _) | (Ok(()), 0) => break,
                (Ok(()), bytes) => answer.drained += bytes,
            }
        }
        Poll::Ready(())
    }
}

/// The problem for an answer that the HTTP implementation gave by itself.
fn problem_of(head: &[u8]) -> Option<Problem> {
    let head = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "))?;
    let problem = match head.get(..3)? {
        b"400" => Problem::malformed(
            "the head of the request cannot be parsed; check the request line, the header lines, Content-Length \
             and Transfer-Encoding",
        ),
        b"414" => Problem::address_too_long("the request line is too long"),
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

impl<S: AsyncRead + Unpin> AsyncRead for ParseErrors<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ParseErrors<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_answer(cx))?;
        match self.replace(bytes) {
            true => Poll::Ready(Ok(bytes.len())),
            false => Pin::new(&mut self.stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_write_answer(cx))?;
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        match (filled.next(), filled.next()) {
            (Some(only), None) if self.replace(only) => Poll::Ready(Ok(only.len())),
            _ => Pin::new(&mut self.stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_answer(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_answer(cx))?;
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        ready!(self.poll_drain(cx));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answers_without_a_body_are_replaced() {
        let replaced = |text: &str| problem_of(text.as_bytes()).is_some();
        assert!(replaced(
            "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n"
        ));
        assert!(replaced("HTTP/1.0 431 Too Large\r\ncontent-length: 0\r\n\r\n"));
        for other in [
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 10\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 40",
            "",
        ] {
            assert!(!replaced(other), "{other:?}");
        }
    }
}
