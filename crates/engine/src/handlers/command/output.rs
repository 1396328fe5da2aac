//! A command's output as log lines, while it runs.

use pointsman_core::task::LogLevel;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

use super::super::clean_text::{floor_char_boundary, to_clean_text};
use crate::log_writer::MAX_LOG_LINE_BYTES;
use crate::runner::LogSink;

/// The maximum number of bytes that are read from a stream after the command has ended: the capacity of a pipe, and
/// some more.
const MAX_BYTES_AFTER_EXIT: usize = 1 << 20;

/// Logs the lines of a stream until it ends, or until `command_ended` is cancelled and the pipe is empty. Returns the
/// last line that was not blank.
pub(super) async fn forward_output_to_log(
    mut stream: impl AsyncRead + Unpin,
    level: LogLevel,
    log: &LogSink,
    command_ended: &CancellationToken,
) -> Vec<u8> {
    let mut lines = LineSplitter::default();
    let mut last_line = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    let mut remaining_after_exit = MAX_BYTES_AFTER_EXIT;
    while remaining_after_exit > 0 {
        // The branch that reads comes first, so that output from before the end of the command is never lost.
        let read = tokio::select! {
            biased;
            read = stream.read(&mut chunk) => read,
            () = command_ended.cancelled() => break,
        };
        let Ok(size @ 1..) = read else { break };
        if command_ended.is_cancelled() {
            remaining_after_exit = remaining_after_exit.saturating_sub(size);
        }
        lines.push_chunk(&chunk[..size]);
        while let Some(line) = lines.next_line() {
            log_output_line(line, level, log, &mut last_line).await;
        }
    }
    if let Some(line) = lines.take_unterminated_line() {
        log_output_line(line, level, log, &mut last_line).await;
    }
    last_line
}

async fn log_output_line(line: Vec<u8>, level: LogLevel, log: &LogSink, last_line: &mut Vec<u8>) {
    log.write_line(log.now(), level, to_clean_text(&line)).await;
    if !line.trim_ascii().is_empty() {
        *last_line = line;
    }
}

/// Splits a stream of bytes into lines.
#[derive(Default)]
struct LineSplitter {
    buffered_bytes: Vec<u8>,
    /// The position in the buffer at which the next line begins.
    line_start: usize,
    /// The position in the buffer up to which no line end was found.
    searched_until: usize,
}

impl LineSplitter {
    fn push_chunk(&mut self, chunk: &[u8]) {
        self.buffered_bytes.drain(..self.line_start);
        self.searched_until -= self.line_start;
        self.line_start = 0;
        self.buffered_bytes.extend_from_slice(chunk);
    }

    /// The next whole line, or a part of a line that is longer than the limit; its rest follows as the next line.
    fn next_line(&mut self) -> Option<Vec<u8>> {
        let found = self.buffered_bytes[self.searched_until..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|at| self.searched_until + at);
        let end = found.unwrap_or(self.buffered_bytes.len());
        if end - self.line_start > MAX_LOG_LINE_BYTES {
            let end = self.line_start
                + floor_char_boundary(&self.buffered_bytes[self.line_start..], MAX_LOG_LINE_BYTES);
            self.searched_until = end;
            return Some(self.take_line(end, end));
        }
        match found {
            Some(end) => {
                self.searched_until = end + 1;
                Some(self.take_line(end, end + 1))
            }
            None => {
                self.searched_until = end;
                None
            }
        }
    }

    /// Takes the last line of the stream if it has no line end.
    fn take_unterminated_line(&mut self) -> Option<Vec<u8>> {
        let end = self.buffered_bytes.len();
        (self.line_start < end).then(|| self.take_line(end, end))
    }

    fn take_line(&mut self, end: usize, next: usize) -> Vec<u8> {
        let line = self.buffered_bytes[self.line_start..end].to_vec();
        self.line_start = next;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_lines(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = LineSplitter::default();
        let mut all_lines = Vec::new();
        for chunk in chunks {
            lines.push_chunk(chunk);
            while let Some(line) = lines.next_line() {
                all_lines.push(line);
            }
        }
        all_lines.extend(lines.take_unterminated_line());
        all_lines
    }

    #[test]
    fn lines_are_whole_however_the_stream_is_chunked() {
        let expected: Vec<&[u8]> = vec![b"one", b"", b"two", b"three"];
        assert_eq!(split_lines(&[b"one\n\ntwo\nthree"]), expected);
        assert_eq!(split_lines(&[b"on", b"e", b"\n", b"\ntw", b"o\nthree"]), expected);
        let bytes: Vec<&[u8]> = b"one\n\ntwo\nthree".chunks(1).collect();
        assert_eq!(split_lines(&bytes), expected);
        assert!(split_lines(&[b""]).is_empty());
    }

    #[test]
    fn long_lines_are_split_between_characters() {
        let text = format!("x{}\ny\n", "é".repeat(MAX_LOG_LINE_BYTES));
        let pieces = split_lines(&text.as_bytes().chunks(7000).collect::<Vec<_>>());
        let sizes: Vec<_> = pieces.iter().map(Vec::len).collect();
        assert_eq!(sizes, [MAX_LOG_LINE_BYTES - 1, MAX_LOG_LINE_BYTES, 2, 1]);
        assert!(pieces.iter().all(|piece| std::str::from_utf8(piece).is_ok()));
        let exact = split_lines(&[&[b'a'; MAX_LOG_LINE_BYTES], b"\nb"]);
        assert_eq!(exact.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_LOG_LINE_BYTES, 1]);
    }
}
