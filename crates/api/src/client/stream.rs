//! Streams: the journal as it grows, and a running task's log.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::RequestBuilder;

use super::sse::{Frame, Parser};
use super::{Client, ClientError, EventQuery, LogQuery, Result};

/// How long a stream may bring nothing. The server gives a sign of life far more often.
const SILENCE: Duration = Duration::from_secs(90);

impl Client {
    /// The journal from the query's place on, and task changes as they happen. To go on where another stream
    /// ended, give the id of the last frame that had one.
    pub async fn stream(&self, query: &EventQuery, last_event_id: Option<u64>) -> Result<Frames> {
        let mut request = self.ask(&["api", "v1", "stream"], &query.pairs())?;
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        self.frames(request).await
    }

    /// A task's log from its first line on, until the task has ended.
    pub async fn follow_logs(&self, id: &str, query: &LogQuery) -> Result<Frames> {
        let mut pairs = query.pairs();
        pairs.add("follow", &Some(true));
        self.frames(self.ask(&["api", "v1", "tasks", id, "logs"], &pairs)?).await
    }

    async fn frames(&self, request: RequestBuilder) -> Result<Frames> {
        let response = self.send(request.header("accept", "text/event-stream")).await?;
        let bytes = response.bytes_stream().boxed();
        Ok(Frames { client: self.clone(), bytes, parser: Parser::default(), ready: VecDeque::new() })
    }
}

/// The frames of a stream as they arrive.
pub struct Frames {
    client: Client,
    bytes: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    parser: Parser,
    ready: VecDeque<Frame>,
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Frames {
    /// The next frame; none when the server has ended the stream.
    pub async fn next(&mut self) -> Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            let url = || self.client.url().to_owned();
            let bytes = match tokio::time::timeout(SILENCE, self.bytes.next()).await {
                Err(_) => return Err(ClientError::Silent { url: url() }),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(self.client.unreachable(error)),
                Ok(Some(Ok(bytes))) => bytes,
            };
            let frames = self.parser.feed(&bytes);
            let frames = frames.map_err(|e| ClientError::Unreadable { url: url(), why: e.to_string() })?;
            self.ready.extend(frames);
        }
    }
}
