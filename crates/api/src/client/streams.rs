//! Streams of server-sent events: the journal as it grows, and a running task's log.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::RequestBuilder;

use super::sse_parser::{SseFrame, SseParser};
use super::{Client, ClientError, ClientResult, EventQuery, LogQuery};

/// A stream that delivers nothing for this long is dead. The server sends keep-alive comments far more often.
const STREAM_SILENCE_TIMEOUT: Duration = Duration::from_secs(90);

impl Client {
    /// Streams the events that match the query, and task changes as they happen. To continue where another stream
    /// ended, pass the id of the last frame that had one.
    pub async fn stream_events(
        &self,
        query: &EventQuery,
        last_event_id: Option<u64>,
    ) -> ClientResult<SseFrameStream> {
        let mut request =
            self.build_get_request_with_parameters(&["api", "v1", "stream"], &query.to_parameters())?;
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        self.open_stream(request).await
    }

    /// Streams a task's log from its first line, until the task has ended.
    pub async fn follow_task_logs(&self, id: &str, query: &LogQuery) -> ClientResult<SseFrameStream> {
        let mut parameters = query.to_parameters();
        parameters.add("follow", &Some(true));
        self.open_stream(
            self.build_get_request_with_parameters(&["api", "v1", "tasks", id, "logs"], &parameters)?,
        )
        .await
    }

    async fn open_stream(&self, request: RequestBuilder) -> ClientResult<SseFrameStream> {
        let response = self.send(request.header("accept", "text/event-stream")).await?;
        let byte_chunks = response.bytes_stream().boxed();
        Ok(SseFrameStream {
            client: self.clone(),
            byte_chunks,
            parser: SseParser::default(),
            unreturned_frames: VecDeque::new(),
        })
    }
}

/// The frames of a stream as they arrive.
pub struct SseFrameStream {
    client: Client,
    byte_chunks: Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>,
    parser: SseParser,
    /// Frames that were parsed and not yet returned.
    unreturned_frames: VecDeque<SseFrame>,
}

impl fmt::Debug for SseFrameStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseFrameStream").field("client", &self.client).finish_non_exhaustive()
    }
}

impl SseFrameStream {
    /// Waits for the next frame; `None` when the server has ended the stream.
    pub async fn next(&mut self) -> ClientResult<Option<SseFrame>> {
        loop {
            if let Some(frame) = self.unreturned_frames.pop_front() {
                return Ok(Some(frame));
            }
            let url = || self.client.url().to_owned();
            let bytes = match tokio::time::timeout(STREAM_SILENCE_TIMEOUT, self.byte_chunks.next()).await {
                Err(_) => return Err(ClientError::StreamTimeout { url: url() }),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(self.client.convert_reqwest_error(error)),
                Ok(Some(Ok(bytes))) => bytes,
            };
            let frames = self.parser.feed(&bytes);
            let frames = frames.map_err(|e| ClientError::InvalidResponse { url: url(), source: e.into() })?;
            self.unreturned_frames.extend(frames);
        }
    }
}
