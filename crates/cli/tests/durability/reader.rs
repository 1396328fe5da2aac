//! Readers that follow the journal across all kills of the server.

use std::sync::Mutex;
use std::time::Duration;

use pointsman_api::EventSeq;
use pointsman_api::client::{Client, ClientError, EventQuery, SseFrameStream};
use tokio::sync::watch;

use crate::history::ReaderLog;
use crate::producer::wait_for_server_client;

/// A reader that follows the journal and reconnects after each kill of the server, with its position.
pub(crate) struct ReconnectingJournalReader {
    client_of_running_server: watch::Receiver<Option<Client>>,
    /// The id of the journal's last event; none until the producers have stopped.
    last_journal_id: watch::Receiver<Option<u64>>,
    log: Mutex<ReaderLog>,
    cursor: Mutex<u64>,
}

/// Whether a reader must continue to read.
enum ReadStatus {
    Continue,
    Done,
}

impl ReconnectingJournalReader {
    pub(crate) fn new(
        name: &str,
        server: watch::Receiver<Option<Client>>,
        last_journal_id: watch::Receiver<Option<u64>>,
    ) -> Self {
        let log = Mutex::new(ReaderLog { reader_name: name.into(), event_ids: vec![], gap_count: 0 });
        Self { client_of_running_server: server, last_journal_id, log, cursor: Mutex::new(0) }
    }

    /// Returns a copy of the ids that the reader has received so far, and how many gaps the server reported.
    pub(crate) fn log(&self) -> ReaderLog {
        self.log.lock().unwrap().clone()
    }

    fn cursor(&self) -> u64 {
        *self.cursor.lock().unwrap()
    }

    fn record_event(&self, id: u64) {
        self.log.lock().unwrap().event_ids.push(id);
        *self.cursor.lock().unwrap() = id;
    }

    fn record_gap(&self) -> ReadStatus {
        self.log.lock().unwrap().gap_count += 1;
        ReadStatus::Done
    }

    /// Whether the whole journal has been read.
    fn is_finished(&self) -> bool {
        self.last_journal_id.borrow().is_some_and(|end| self.cursor() >= end)
    }

    /// Reads the server-sent events until the end.
    pub(crate) async fn follow_stream(&self) {
        while !self.is_finished() {
            let client = wait_for_server_client(&self.client_of_running_server).await;
            let query = EventQuery { after: Some(0), ..EventQuery::default() };
            let Ok(mut frames) = client.stream_events(&query, Some(self.cursor())).await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            if let ReadStatus::Done = self.read_frames(&mut frames).await {
                return;
            }
        }
    }

    /// Reads frames until the connection breaks.
    async fn read_frames(&self, frames: &mut SseFrameStream) -> ReadStatus {
        let mut end = self.last_journal_id.clone();
        while !self.is_finished() {
            let frame = tokio::select! {
                frame = frames.next() => frame,
                // The end may become known after everything has been read.
                Ok(()) = end.changed() => continue,
            };
            let Ok(Some(frame)) = frame else { return ReadStatus::Continue };
            // A frame without an id is a gap or a task change; one without data only moves the cursor.
            let Some(id) = frame.id.map(|id| id.parse().unwrap()) else {
                if frame.event_name == "Torn" {
                    return self.record_gap();
                }
                continue;
            };
            if frame.data.is_empty() {
                *self.cursor.lock().unwrap() = id;
            } else {
                self.record_event(id);
            }
        }
        ReadStatus::Done
    }

    /// Reads by long polls, a few events at a time, until the end.
    pub(crate) async fn poll_until_end(&self) {
        while !self.is_finished() {
            let client = wait_for_server_client(&self.client_of_running_server).await;
            let query = EventQuery {
                event_type: Some("Event".into()),
                after: Some(self.cursor()),
                timeout: Some("1s".into()),
                limit: Some(250),
                ..EventQuery::default()
            };
            if let ReadStatus::Done = self.record_response(client.list_events(&query).await).await {
                return;
            }
        }
    }

    async fn record_response(&self, response: Result<EventSeq, ClientError>) -> ReadStatus {
        match response {
            Ok(EventSeq::NonEmpty { event_snapshots, .. }) => {
                event_snapshots.iter().for_each(|event| self.record_event(event.event_id));
            }
            Ok(EventSeq::Empty { last_event_id, .. }) => *self.cursor.lock().unwrap() = last_event_id,
            Ok(EventSeq::Torn { .. }) => return self.record_gap(),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        ReadStatus::Continue
    }
}
