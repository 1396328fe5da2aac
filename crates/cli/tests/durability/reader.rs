//! Observers that follow the journal over every death of the server, each going on where it was.

use std::sync::Mutex;
use std::time::Duration;

use pointsman_api::EventSeq;
use pointsman_api::client::{Client, ClientError, EventQuery, Frames};
use tokio::sync::watch;

use crate::history::Reading;
use crate::producer::current;

/// One observer and how far it is.
pub(crate) struct Reader {
    server: watch::Receiver<Option<Client>>,
    /// The last id there will be, once it is known.
    end: watch::Receiver<Option<u64>>,
    reading: Mutex<Reading>,
    cursor: Mutex<u64>,
}

/// Whether a reader has to go on.
enum Next {
    Again,
    Over,
}

impl Reader {
    pub(crate) fn new(
        name: &str,
        server: watch::Receiver<Option<Client>>,
        end: watch::Receiver<Option<u64>>,
    ) -> Self {
        let reading = Mutex::new(Reading { reader: name.into(), ids: vec![], torn: 0 });
        Self { server, end, reading, cursor: Mutex::new(0) }
    }

    /// What it has read so far.
    pub(crate) fn reading(&self) -> Reading {
        self.reading.lock().unwrap().clone()
    }

    fn cursor(&self) -> u64 {
        *self.cursor.lock().unwrap()
    }

    fn saw(&self, id: u64) {
        self.reading.lock().unwrap().ids.push(id);
        *self.cursor.lock().unwrap() = id;
    }

    fn torn(&self) -> Next {
        self.reading.lock().unwrap().torn += 1;
        Next::Over
    }

    /// Whether everything there will ever be has been read.
    fn finished(&self) -> bool {
        self.end.borrow().is_some_and(|end| self.cursor() >= end)
    }

    /// Reads the server-sent events until the end.
    pub(crate) async fn follow_stream(&self) {
        while !self.finished() {
            let client = current(&self.server).await;
            let query = EventQuery { after: Some(0), ..EventQuery::default() };
            let Ok(mut frames) = client.stream(&query, Some(self.cursor())).await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            if let Next::Over = self.read_frames(&mut frames).await {
                return;
            }
        }
    }

    /// Reads frames until the connection breaks.
    async fn read_frames(&self, frames: &mut Frames) -> Next {
        let mut end = self.end.clone();
        while !self.finished() {
            let frame = tokio::select! {
                frame = frames.next() => frame,
                // The end may become known when everything has been read already.
                Ok(()) = end.changed() => continue,
            };
            let Ok(Some(frame)) = frame else { return Next::Again };
            // Without an id it tells of a tear or a task; without data it only moves the cursor.
            let Some(id) = frame.id.map(|id| id.parse().unwrap()) else {
                if frame.event == "Torn" {
                    return self.torn();
                }
                continue;
            };
            if frame.data.is_empty() {
                *self.cursor.lock().unwrap() = id;
            } else {
                self.saw(id);
            }
        }
        Next::Over
    }

    /// Reads by long polls, a few events at a time, until the end.
    pub(crate) async fn poll(&self) {
        while !self.finished() {
            let client = current(&self.server).await;
            let query = EventQuery {
                kind: Some("Event".into()),
                after: Some(self.cursor()),
                timeout: Some("1s".into()),
                limit: Some(250),
                ..EventQuery::default()
            };
            if let Next::Over = self.take(client.events(&query).await).await {
                return;
            }
        }
    }

    async fn take(&self, answer: Result<EventSeq, ClientError>) -> Next {
        match answer {
            Ok(EventSeq::NonEmpty { event_snapshots, .. }) => {
                event_snapshots.iter().for_each(|event| self.saw(event.event_id));
            }
            Ok(EventSeq::Empty { last_event_id, .. }) => *self.cursor.lock().unwrap() = last_event_id,
            Ok(EventSeq::Torn { .. }) => return self.torn(),
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        Next::Again
    }
}
