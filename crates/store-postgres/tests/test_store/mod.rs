//! A node on a database, with waiting for events emitted in SQL.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pointsman_core::journal::EventFilter;
use pointsman_core::store::{Journal, JournalQuery, Store, StoreListener, StoreSignal};
use pointsman_core::{Event, EventId, Timestamp};
use pointsman_store_postgres::{Postgres, PostgresStore};
use pointsman_testing::shared_postgres;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// A generous timeout; only a test that hangs reaches it.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn now() -> Timestamp {
    Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
}

/// A store opened on a database, as one node.
pub(crate) struct TestStore {
    pub(crate) url: String,
    pub(crate) store: PostgresStore,
    last_event_receiver: watch::Receiver<EventId>,
}

/// Forwards the id of the last event whenever the journal grows.
struct LastEventForwarder(watch::Sender<EventId>);

impl StoreListener for LastEventForwarder {
    fn on_signal(&self, signal: StoreSignal) {
        match signal {
            StoreSignal::JournalGrew(head) => {
                self.0.send_replace(head);
            }
            StoreSignal::TasksReady => {}
        }
    }
}

impl TestStore {
    /// Opens a node on a new database.
    pub(crate) async fn new() -> Self {
        Self::open(&shared_postgres().unwrap().create_database().unwrap()).await
    }

    pub(crate) async fn open(url: &str) -> Self {
        let store = Postgres::open(url, now()).await.unwrap();
        let (sender, last_event) = watch::channel(EventId::ZERO);
        store.add_listener(Arc::new(LastEventForwarder(sender)));
        Self { url: url.into(), store, last_event_receiver: last_event }
    }

    /// Closes the node, and returns the URL of its database.
    pub(crate) async fn close(self) -> String {
        let Self { url, store, .. } = self;
        tokio::task::spawn_blocking(move || store.close()).await.unwrap();
        url
    }

    pub(crate) async fn connect_client(&self) -> Client {
        connect(&self.url).await
    }

    /// Reads all events after an id.
    pub(crate) async fn read_events_after(&self, after: EventId) -> Vec<Arc<Event>> {
        let (mut after, mut events) = (after, vec![]);
        loop {
            let query = JournalQuery {
                after_event_id: after,
                up_to_event_id: None,
                filter: EventFilter::default(),
                limit: 1000,
                backwards: false,
            };
            let page = self.store.read_events(query).await.unwrap();
            events.extend(page.events);
            if page.last_scanned_event_id == after {
                return events;
            }
            after = page.last_scanned_event_id;
        }
    }

    /// Waits until the journal has this many events, and returns them; panics if it has more.
    pub(crate) async fn wait_for_events(&self, count: usize) -> Vec<Arc<Event>> {
        let mut last_event = self.last_event_receiver.clone();
        let wait = async {
            loop {
                last_event.borrow_and_update();
                let events = self.read_events_after(EventId::ZERO).await;
                if events.len() >= count {
                    return events;
                }
                last_event.changed().await.unwrap();
            }
        };
        let events =
            timeout(TEST_TIMEOUT, wait).await.unwrap_or_else(|_| panic!("there are not {count} events"));
        assert_eq!(events.len(), count);
        events
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Evaluates a call of `emit`, such as `emit('a')`, and returns the receipt.
pub(crate) async fn emit_in_sql(client: &Client, call: &str) -> Uuid {
    client.query_one(&format!("SELECT pointsman.{call}"), &[]).await.unwrap().get(0)
}

/// Returns the event of a receipt; none if it has none yet.
pub(crate) async fn find_event_of_receipt(client: &Client, receipt: Uuid) -> Option<EventId> {
    let row = client.query_one("SELECT pointsman.event_of($1)", &[&receipt]).await.unwrap();
    row.get::<_, Option<i64>>(0).map(EventId::from_i64)
}
