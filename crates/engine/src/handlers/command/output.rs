//! A command's output as log lines, while it runs.

use pointsman_core::task::Level;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

use super::super::text::{floor_char_boundary, to_clean_text};
use crate::log_writer::MAX_LINE_BYTES as MAX_LINE;
use crate::runner::LogSink;

/// The maximum that is read from a stream after its writers should have ended: the capacity of a pipe, and some more.
const MAX_BYTES_AFTER_EXIT: usize = 1 << 20;

/// Logs the lines of a stream until it ends, or until `over` is cancelled because the command has ended and the pipe is
/// empty. Returns the last line that was not blank.
pub(super) async fn forward_output(
    mut stream: impl AsyncRead + Unpin,
    level: Level,
    log: &LogSink,
    over: &CancellationToken,
) -> Vec<u8> {
    let mut lines = LineSplitter::default();
    let mut last = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    let mut rest = MAX_BYTES_AFTER_EXIT;
    while rest > 0 {
        // Reading comes first, so that output from before the end is never lost.
        let read = tokio::select! {
            biased;
            read = stream.read(&mut chunk) => read,
            () = over.cancelled() => break,
        };
        let Ok(size @ 1..) = read else { break };
        if over.is_cancelled() {
            rest = rest.saturating_sub(size);
        }
        lines.push(&chunk[..size]);
        while let Some(line) = lines.next_line() {
            log_output_line(line, level, log, &mut last).await;
        }
    }
    if let Some(line) = lines.finish() {
        log_output_line(line, level, log, &mut last).await;
    }
    last
}

async fn log_output_line(line: Vec<u8>, level: Level, log: &LogSink, last: &mut Vec<u8>) {
    log.write_line(log.now(), level, to_clean_text(&line)).await;
    if !line.trim_ascii().is_empty() {
        *last = line;
    }
}

/// Splits bytes into lines.
#[derive(Default)]
struct LineSplitter {
    bytes: Vec<u8>,
    /// Where the next line begins.
    line_start: usize,
    /// Bytes up to here contain no line end.
    searched_until: usize,
}

impl LineSplitter {
    fn push(&mut self, chunk: &[u8]) {
        self.bytes.drain(..self.line_start);
        self.searched_until -= self.line_start;
        self.line_start = 0;
        self.bytes.extend_from_slice(chunk);
    }

    /// The next whole line, or a part of a line that is longer than the limit; its rest follows as the next line.
    fn next_line(&mut self) -> Option<Vec<u8>> {
        let found = self.bytes[self.searched_until..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map(|at| self.searched_until + at);
        let end = found.unwrap_or(self.bytes.len());
        if end - self.line_start > MAX_LINE {
            let end = self.line_start + floor_char_boundary(&self.bytes[self.line_start..], MAX_LINE);
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

    /// A last line without a line end.
    fn finish(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.len();
        (self.line_start < end).then(|| self.take_line(end, end))
    }

    fn take_line(&mut self, end: usize, next: usize) -> Vec<u8> {
        let line = self.bytes[self.line_start..end].to_vec();
        self.line_start = next;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_lines(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut lines = LineSplitter::default();
        let mut out = Vec::new();
        for chunk in chunks {
            lines.push(chunk);
            while let Some(line) = lines.next_line() {
                out.push(line);
            }
        }
        out.extend(lines.finish());
        out
    }

    #[test]
    fn lines_are_whole_however_the_stream_is_chunked() {
        let want: Vec<&[u8]> = vec![b"one", b"", b"two", b"three"];
        assert_eq!(split_lines(&[b"one\n\ntwo\nthree"]), want);
        assert_eq!(split_lines(&[b"on", b"e", b"\n", b"\ntw", b"o\nthree"]), want);
        let bytes: Vec<&[u8]> = b"one\n\ntwo\nthree".chunks(1).collect();
        assert_eq!(split_lines(&bytes), want);
        assert!(split_lines(&[b""]).is_empty());
    }

    #[test]
    fn long_lines_are_split_between_characters() {
        let text = format!("x{}\ny\n", "é".repeat(MAX_LINE));
        let pieces = split_lines(&text.as_bytes().chunks(7000).collect::<Vec<_>>());
        let sizes: Vec<_> = pieces.iter().map(Vec::len).collect();
        assert_eq!(sizes, [MAX_LINE - 1, MAX_LINE, 2, 1]);
        assert!(pieces.iter().all(|piece| std::str::from_utf8(piece).is_ok()));
        let exact = split_lines(&[&[b'a'; MAX_LINE], b"\nb"]);
        assert_eq!(exact.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_LINE, 1]);
    }
}
