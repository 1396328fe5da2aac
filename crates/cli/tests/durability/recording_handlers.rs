//! The handlers: an HTTP server that records all deliveries, and a command that writes them to a file.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::{Path as Segment, State};
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::history::{RecordedDelivery, SentEvent};

/// The HTTP server of the handlers, which records every delivery.
#[derive(Clone)]
pub(crate) struct RecordingHttpTarget {
    pub(crate) address: SocketAddr,
    delivery_log: Arc<DeliveryLog>,
}

#[derive(Default)]
struct DeliveryLog {
    deliveries: Mutex<Vec<RecordedDelivery>>,
    /// The next position in the sequence of starts and ends of deliveries.
    next_free_position: AtomicU64,
}

impl DeliveryLog {
    fn take_next_position(&self) -> u64 {
        self.next_free_position.fetch_add(1, Ordering::SeqCst)
    }
}

impl RecordingHttpTarget {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::<DeliveryLog>::default();
        let router = Router::new().route("/{handler}", post(record_delivery)).with_state(log.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, delivery_log: log }
    }

    pub(crate) fn deliveries(&self) -> Vec<RecordedDelivery> {
        self.delivery_log.deliveries.lock().unwrap().clone()
    }
}

/// The handler that emits an event for each event that it handles.
const ECHO_HANDLER: &str = "mirror";

/// The event that [`ECHO_HANDLER`] emits for an event. It is emitted once, because the task is done once.
pub(crate) fn echo_event(event: u64) -> SentEvent {
    let key = Some(format!("echo:{}", event % 5));
    SentEvent { name: format!("echo of {event}"), event_type: "echo".into(), key }
}

/// Records a delivery, waits briefly and responds with success. If its server is killed meanwhile, the connection breaks
/// and the end is not recorded.
async fn record_delivery(
    State(log): State<Arc<DeliveryLog>>,
    Segment(handler): Segment<String>,
    headers: HeaderMap,
) -> Json<Value> {
    let emits_echo = handler == ECHO_HANDLER;
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let number = |name: &str| text(name).map(|text| text.parse::<u64>().unwrap());
    let event = number("ce-id").unwrap();
    let delivery = |began| RecordedDelivery {
        handler,
        event_id: event,
        prev: number("pointsman-prev"),
        prev_sent: Some(number("pointsman-prev-sent")),
        attempt: number("pointsman-attempt").unwrap() as u32,
        fence: number("pointsman-fence").unwrap(),
        start_position: began,
        end_position: None,
    };
    let index = {
        let mut deliveries = log.deliveries.lock().unwrap();
        deliveries.push(delivery(log.take_next_position()));
        deliveries.len() - 1
    };
    tokio::time::sleep(Duration::from_micros(event % 7 * 500)).await;
    let mut deliveries = log.deliveries.lock().unwrap();
    deliveries[index].end_position = Some(log.take_next_position());
    let SentEvent { name, event_type, key } = echo_event(event);
    Json(if emits_echo {
        json!({"emit": [{"type": event_type, "key": key, "value": name}]})
    } else {
        json!({})
    })
}

/// The command of the handler `note`: one line per delivery, in one write, so that lines do not mix.
pub(crate) const NOTE_COMMAND: &str =
    "echo $POINTSMAN_EVENT_ID ${POINTSMAN_PREV:--} $POINTSMAN_ATTEMPT $POINTSMAN_FENCE >> notes";

/// Reads the deliveries that `note` has written. The command writes one line and no end, so that the end of a delivery
/// is its start.
pub(crate) fn read_noted_deliveries(file: &Path) -> Vec<RecordedDelivery> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let parse = |(index, line): (usize, &str)| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [event, prev, attempt, fence] = fields[..] else { panic!("a garbled note: {line:?}") };
        RecordedDelivery {
            handler: "note".into(),
            event_id: event.parse().unwrap(),
            prev: (prev != "-").then(|| prev.parse().unwrap()),
            prev_sent: None,
            attempt: attempt.parse().unwrap(),
            fence: fence.parse().unwrap(),
            start_position: index as u64,
            end_position: Some(index as u64),
        }
    };
    text.lines().enumerate().map(parse).collect()
}
