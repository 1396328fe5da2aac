//! Parses server-sent events from bytes that arrive in chunks of any size.

/// One frame of a server-sent event stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseFrame {
    /// The event name of the frame; empty if the server sent none.
    pub event_name: String,
    /// The id of the frame. A client that reconnects sends the last id that it received; a frame without an id does not
    /// change that.
    pub id: Option<String>,
    /// The data of the frame; empty if the frame has only an id.
    pub data: String,
}

/// The longest line that is accepted. No Pointsman server sends longer ones.
const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Parses bytes into frames, and keeps the bytes of an incomplete one.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    incomplete_line: Vec<u8>,
    incomplete_frame: SseFrame,
    /// Whether the incomplete frame has a data line, even an empty one.
    frame_has_data: bool,
    /// Whether the last byte was a CR: an LF right after it belongs to the same line break.
    last_byte_was_cr: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("a line of the stream is longer than {MAX_LINE_BYTES} bytes")]
pub(super) struct SseLineTooLong;

impl SseParser {
    /// Adds bytes and returns the frames that they completed.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<SseFrame>, SseLineTooLong> {
        let mut frames = vec![];
        for &byte in bytes {
            let is_end_of_crlf = byte == b'\n' && self.last_byte_was_cr;
            self.last_byte_was_cr = byte == b'\r';
            match byte {
                b'\n' if is_end_of_crlf => {}
                b'\n' | b'\r' => frames.extend(self.end_line()),
                _ if self.incomplete_line.len() >= MAX_LINE_BYTES => return Err(SseLineTooLong),
                _ => self.incomplete_line.push(byte),
            }
        }
        Ok(frames)
    }

    /// Ends the line read so far; an empty one ends the frame.
    fn end_line(&mut self) -> Option<SseFrame> {
        let line = String::from_utf8_lossy(&self.incomplete_line).into_owned();
        self.incomplete_line.clear();
        if line.is_empty() {
            let frame = std::mem::take(&mut self.incomplete_frame);
            let has_data = std::mem::take(&mut self.frame_has_data);
            return (has_data || frame.id.is_some()).then_some(frame);
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.incomplete_frame.event_name = value.into(),
            "id" => self.incomplete_frame.id = Some(value.into()),
            "data" => {
                if self.frame_has_data {
                    self.incomplete_frame.data.push('\n');
                }
                self.incomplete_frame.data.push_str(value);
                self.frame_has_data = true;
            }
            // Comments only keep the connection alive; `retry` is for browsers.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST_STREAM: &str = ": hello\n\nid: 7\nevent: Event\ndata: {\"a\":1}\n\nevent: Task\r\ndata: x\r\n\
                          data: y\r\n\r\nid: 8\n\ndata:é\n\ndata: unfinished";

    fn expected_frames() -> Vec<SseFrame> {
        let frame = |event: &str, id: Option<&str>, data: &str| SseFrame {
            event_name: event.into(),
            id: id.map(Into::into),
            data: data.into(),
        };
        vec![
            frame("Event", Some("7"), "{\"a\":1}"),
            frame("Task", None, "x\ny"),
            frame("", Some("8"), ""),
            frame("", None, "é"),
        ]
    }

    #[test]
    fn frames_end_at_blank_lines_and_comments_are_not_frames() {
        assert_eq!(SseParser::default().feed(TEST_STREAM.as_bytes()).unwrap(), expected_frames());
    }

    #[test]
    fn frames_do_not_depend_on_chunk_boundaries() {
        for size in 1..TEST_STREAM.len() {
            let mut parser = SseParser::default();
            let chunks = TEST_STREAM.as_bytes().chunks(size);
            let frames: Vec<SseFrame> = chunks.flat_map(|chunk| parser.feed(chunk).unwrap()).collect();
            assert_eq!(frames, expected_frames(), "in chunks of {size}");
        }
    }
}
