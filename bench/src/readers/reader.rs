//! A reader that follows the journal over its own connection, and checks the events that it receives.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;

use super::bench_server::{EVENT_TYPE, object_key};
use super::reader_group::DeliveryTracker;

/// The protocol by which a reader follows the journal.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadProtocol {
    LongPoll,
    ServerSentEvents,
}

pub(super) struct JournalReader {
    pub(super) protocol: ReadProtocol,
    /// The object that the reader follows; None for all objects.
    pub(super) followed_object: Option<usize>,
    /// The object of the first number in `next_event_numbers`.
    pub(super) first_followed_object: usize,
    /// The number that the next event of each followed object must have.
    pub(super) next_event_numbers: Vec<u64>,
    /// The id of the last event that the reader has received.
    pub(super) last_event_id: u64,
    pub(super) delivery_tracker: Arc<DeliveryTracker>,
}

/// The members of an event that a reader checks. The engine's own events have no value.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceivedEvent {
    event_id: u64,
    value: Option<EventPayload>,
}

/// The payload that producers write into their events.
#[derive(Debug, Deserialize)]
struct EventPayload {
    #[serde(rename = "object")]
    object_number: usize,
    /// The number of the event among those of its object, from 0 on.
    #[serde(rename = "n")]
    event_number: u64,
    #[serde(rename = "at")]
    emitted_at: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventSeqResponse {
    #[serde(rename = "TYPE")]
    seq_type: String,
    #[serde(default)]
    event_snapshots: Vec<ReceivedEvent>,
    last_event_id: Option<u64>,
}

impl JournalReader {
    /// Reads until an error occurs.
    pub(super) async fn read_until_error(mut self, server: SocketAddr, token: String) -> anyhow::Result<()> {
        let stream = TcpStream::connect(server).await.context("cannot connect to the server")?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut server = HttpConnection { sender, token };
        // The connection and its requests are one async task, so that they end together.
        tokio::select! {
            ended = connection => {
                ended?;
                bail!("the server has closed the connection");
            }
            failed = self.follow_journal(&mut server) => failed,
        }
    }

    async fn follow_journal(&mut self, server: &mut HttpConnection) -> anyhow::Result<()> {
        match self.protocol {
            ReadProtocol::LongPoll => loop {
                self.poll_once(server).await?;
            },
            ReadProtocol::ServerSentEvents => self.read_stream(server).await,
        }
    }

    async fn poll_once(&mut self, server: &mut HttpConnection) -> anyhow::Result<()> {
        let response = server.get(&format!("/api/v1/events?timeout=30s&{}", self.query_string())).await?;
        let body = response.into_body().collect().await?.to_bytes();
        let seq: EventSeqResponse = serde_json::from_slice(&body)?;
        for event in &seq.event_snapshots {
            self.check_next_event(event)?;
        }
        match (seq.seq_type.as_str(), seq.last_event_id) {
            ("NonEmpty", _) => {}
            ("Empty", Some(last)) => self.last_event_id = last,
            (other, _) => {
                bail!("the server responded with {other} to a poll after event {}", self.last_event_id)
            }
        }
        Ok(())
    }

    async fn read_stream(&mut self, server: &mut HttpConnection) -> anyhow::Result<()> {
        let response = server.get(&format!("/api/v1/stream?{}", self.query_string())).await?;
        let mut body = response.into_body();
        let mut parser = SseParser::default();
        while let Some(chunk) = body.frame().await {
            let Ok(chunk) = chunk?.into_data() else { continue };
            parser.push_bytes(&chunk);
            while let Some((event, data)) = parser.next_frame() {
                match event.as_str() {
                    EVENT_TYPE => self.check_next_event(&serde_json::from_str(&data)?)?,
                    "Torn" => bail!("the server sent Torn after event {}", self.last_event_id),
                    // The engine's own events, and changes of tasks.
                    _ => {}
                }
            }
        }
        bail!("the server has ended the stream")
    }

    fn query_string(&self) -> String {
        let filter =
            self.followed_object.map(|object| format!("&return={EVENT_TYPE}&key={}", object_key(object)));
        format!("after={}{}", self.last_event_id, filter.unwrap_or_default())
    }

    /// Checks that a received event is the next one of its object.
    fn check_next_event(&mut self, event: &ReceivedEvent) -> anyhow::Result<()> {
        let id = event.event_id;
        ensure!(id > self.last_event_id, "received event {id} after event {}", self.last_event_id);
        self.last_event_id = id;
        let Some(EventPayload { object_number: object, event_number: number, emitted_at }) = event.value
        else {
            return Ok(());
        };
        let next_number = object
            .checked_sub(self.first_followed_object)
            .and_then(|index| self.next_event_numbers.get_mut(index));
        let next_number = next_number.with_context(|| {
            format!("received an event of object {object}, which this reader does not follow")
        })?;
        ensure!(
            number == *next_number,
            "object {object}: received event number {number} instead of number {next_number}"
        );
        *next_number += 1;
        self.delivery_tracker.record_delivery(id, emitted_at);
        Ok(())
    }
}

/// An HTTP connection to the server.
struct HttpConnection {
    sender: SendRequest<Empty<Bytes>>,
    token: String,
}

impl HttpConnection {
    async fn get(&mut self, path: &str) -> anyhow::Result<Response<Incoming>> {
        let request = Request::get(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {}", self.token))
            .body(Empty::new())?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        ensure!(
            response.status() == StatusCode::OK,
            "the response to {path} has the status {}",
            response.status()
        );
        Ok(response)
    }
}

/// Parses server-sent events.
#[derive(Debug, Default)]
struct SseParser {
    buffer: Vec<u8>,
    /// The number of bytes that have been parsed.
    parsed_byte_count: usize,
    event_type: String,
    data: String,
}

impl SseParser {
    fn push_bytes(&mut self, chunk: &[u8]) {
        self.buffer.drain(..std::mem::take(&mut self.parsed_byte_count));
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the type and the data of the next complete frame.
    fn next_frame(&mut self) -> Option<(String, String)> {
        loop {
            let rest = &self.buffer[self.parsed_byte_count..];
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let line = String::from_utf8_lossy(&rest[..end]);
            if let Some(event) = line.strip_prefix("event: ") {
                event.clone_into(&mut self.event_type);
            } else if let Some(data) = line.strip_prefix("data: ") {
                self.data.push_str(data);
            }
            let is_over = line.is_empty();
            self.parsed_byte_count += end + 1;
            if is_over {
                let frame = (std::mem::take(&mut self.event_type), std::mem::take(&mut self.data));
                // A keep-alive comment has neither a type nor data.
                if !frame.0.is_empty() {
                    return Some(frame);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sse_frames_are_parsed_from_chunks_of_any_size() {
        let buffer =
            ": keep-alive\nid: 3\n\nid: 4\nevent: a.b\ndata: {\"x\":\ndata: 1}\n\nevent: Torn\ndata: {}\n\n";
        for size in [1, 2, 7, buffer.len()] {
            let mut parser = SseParser::default();
            let mut frames = Vec::new();
            for chunk in buffer.as_bytes().chunks(size) {
                parser.push_bytes(chunk);
                frames.extend(std::iter::from_fn(|| parser.next_frame()));
            }
            let expected = [("a.b", "{\"x\":1}"), ("Torn", "{}")];
            assert_eq!(frames, expected.map(|(event, data)| (event.to_owned(), data.to_owned())));
        }
    }

    #[test]
    fn missing_repeated_and_misordered_events_are_errors() {
        let event = |event_id, number| ReceivedEvent {
            event_id,
            value: Some(EventPayload { object_number: 7, event_number: number, emitted_at: None }),
        };
        let reader = || JournalReader {
            protocol: ReadProtocol::ServerSentEvents,
            followed_object: Some(7),
            first_followed_object: 7,
            next_event_numbers: vec![5],
            last_event_id: 10,
            delivery_tracker: Arc::new(DeliveryTracker::new(1)),
        };
        let check_all = |events: &[ReceivedEvent]| {
            let mut reader = reader();
            events.iter().try_for_each(|event| reader.check_next_event(event))
        };
        assert!(check_all(&[event(11, 5), event(12, 6)]).is_ok());
        assert!(check_all(&[event(11, 6)]).is_err(), "an event is missing");
        assert!(check_all(&[event(11, 5), event(11, 5)]).is_err(), "an event was received twice");
        assert!(check_all(&[event(11, 5), event(12, 5)]).is_err(), "an event was journaled twice");
        assert!(check_all(&[event(12, 5), event(11, 6)]).is_err(), "the ids go backwards");
        let foreign = ReceivedEvent {
            event_id: 11,
            value: Some(EventPayload { object_number: 8, event_number: 5, emitted_at: None }),
        };
        assert!(check_all(&[foreign]).is_err(), "an event of another object");
    }
}
