//! Producers: each sends one request after the other and records the responses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_api::client::Client;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::history::{AcknowledgedEvent, EmitRequest, SentEvent};
use pointsman_testing::Rng;

/// The event types with handlers. Few events are `record.noted`: each of them starts a process.
const WEIGHTED_ROUTED_EVENT_TYPES: [&str; 9] = [
    "record.published",
    "record.moved",
    "record.published",
    "record.moved",
    "record.published",
    "record.moved",
    "record.published",
    "record.moved",
    "record.noted",
];
/// An event type without a handler. Its events cost little, and the journal must keep them as well.
const UNROUTED_EVENT_TYPE: &str = "ledger.entry";
/// Few objects, so that their lanes are always busy.
const OBJECT_COUNT: usize = 6;

/// The state shared by all producers.
pub(crate) struct Producers {
    /// The running server, if any.
    pub(crate) client_of_running_server: watch::Receiver<Option<Client>>,
    pub(crate) emit_requests: Mutex<Vec<EmitRequest>>,
    /// The number of acknowledged requests.
    pub(crate) acknowledged_request_count: watch::Sender<usize>,
    /// The highest acknowledged event id.
    newest_acknowledged_id: AtomicU64,
    is_stopped: AtomicBool,
}

impl Producers {
    pub(crate) fn new(server: watch::Receiver<Option<Client>>) -> Arc<Self> {
        Arc::new(Self {
            client_of_running_server: server,
            emit_requests: Mutex::default(),
            acknowledged_request_count: watch::Sender::new(0),
            newest_acknowledged_id: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
        })
    }

    /// Stops every producer after its current request.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
    }

    /// Emits events of one producer until the producers are stopped.
    pub(crate) async fn run_producer(self: Arc<Self>, producer: usize, mut rng: Rng) {
        let mut number = 0;
        while !self.is_stopped.load(Ordering::SeqCst) {
            number += 1;
            let events = generate_events(&format!("{producer}-{number}"), &mut rng);
            let key = rng.one_in(2).then(|| format!("producer {producer}, request {number}"));
            let newest_id_before = self.newest_acknowledged_id.load(Ordering::SeqCst);
            let acknowledged = self.send_emit_request(&events, key.as_deref()).await;
            self.emit_requests.lock().unwrap().push(EmitRequest {
                events,
                newest_acknowledged_id_before: newest_id_before,
                acknowledged_events: acknowledged,
                emitted_by_handler: false,
            });
            tokio::time::sleep(Duration::from_micros(rng.next_below(6000) as u64)).await;
        }
    }

    /// Sends one request. With an idempotency key it is repeated until acknowledged; without one, the outcome may stay
    /// unknown.
    async fn send_emit_request(
        &self,
        events: &[SentEvent],
        key: Option<&str>,
    ) -> Option<Vec<AcknowledgedEvent>> {
        let body = request_body(events);
        loop {
            let client = wait_for_server_client(&self.client_of_running_server).await;
            match client.emit(&body, key).await {
                Ok(emitted) => {
                    self.newest_acknowledged_id.fetch_max(emitted.last_event_id, Ordering::SeqCst);
                    self.acknowledged_request_count.send_modify(|count| *count += 1);
                    let events = emitted.events.into_iter();
                    return Some(
                        events
                            .map(|e| AcknowledgedEvent { id: e.event_id, prev: e.prev, task_ids: e.tasks })
                            .collect(),
                    );
                }
                // An error response, even a 503, means that nothing was stored.
                Err(error) if error.http_status().is_some_and(|status| status != 503) => panic!("{error}"),
                Err(error) if error.http_status().is_none() && key.is_none() => return None,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

/// Returns a client of the running server, after waiting until one runs.
pub(crate) async fn wait_for_server_client(server: &watch::Receiver<Option<Client>>) -> Client {
    let mut server = server.clone();
    let client = server.wait_for(Option::is_some).await.expect("the test still runs");
    client.clone().unwrap()
}

/// The events of one request: mostly one, sometimes several, now and then very many.
fn generate_events(name: &str, rng: &mut Rng) -> Vec<SentEvent> {
    let (count, unrouted) = match rng.next_below(30) {
        0 | 1 => (100 + rng.next_below(400), true),
        2..=6 => (2 + rng.next_below(9), false),
        _ => (1, false),
    };
    let event = |index| SentEvent {
        name: format!("{name}-{index}"),
        event_type: if unrouted { UNROUTED_EVENT_TYPE } else { *rng.choose(&WEIGHTED_ROUTED_EVENT_TYPES) }
            .to_owned(),
        key: Some(rng.next_below(OBJECT_COUNT + 1))
            .filter(|n| *n < OBJECT_COUNT)
            .map(|n| format!("record:{n}")),
    };
    (0..count).map(event).collect()
}

fn request_body(events: &[SentEvent]) -> Value {
    let to_json =
        |event: &SentEvent| json!({"type": event.event_type, "key": event.key, "value": event.name});
    match events {
        [only] => to_json(only),
        _ => events.iter().map(to_json).collect(),
    }
}
