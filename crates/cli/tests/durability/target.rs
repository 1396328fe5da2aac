//! The handlers' side: an HTTP server that keeps everything it is sent, and the notes of a command.

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

use crate::history::{Delivery, Sent};

/// Where HTTP handlers are, for as long as the test runs.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    deliveries: Mutex<Vec<Delivery>>,
    /// Counts beginnings and ends, which puts them into one order.
    moment: AtomicU64,
}

impl Seen {
    fn moment(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }
}

impl Target {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Seen>::default();
        let router = Router::new().route("/{handler}", post(handle)).with_state(seen.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { address, seen }
    }

    pub(crate) fn deliveries(&self) -> Vec<Delivery> {
        self.seen.deliveries.lock().unwrap().clone()
    }
}

/// The handler that emits an event for each one that it handles.
const ECHOING: &str = "mirror";

/// What [`ECHOING`] emits when it has handled an event, which must be there as often as the task is done: once.
pub(crate) fn echo(event: u64) -> Sent {
    let key = Some(format!("echo:{}", event % 5));
    Sent { name: format!("echo of {event}"), kind: "echo".into(), key }
}

/// Takes a delivery, works on it for a moment, and answers that all is well. When its server is killed
/// meanwhile, the connection breaks and this is dropped before the end is noted.
async fn handle(
    State(seen): State<Arc<Seen>>,
    Segment(handler): Segment<String>,
    headers: HeaderMap,
) -> Json<Value> {
    let echoes = handler == ECHOING;
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let number = |name: &str| text(name).map(|text| text.parse::<u64>().unwrap());
    let event = number("ce-id").unwrap();
    let delivery = |began| Delivery {
        handler,
        event,
        prev: number("pointsman-prev"),
        prev_sent: Some(number("pointsman-prev-sent")),
        attempt: number("pointsman-attempt").unwrap() as u32,
        fence: number("pointsman-fence").unwrap(),
        began,
        ended: None,
    };
    let index = {
        let mut deliveries = seen.deliveries.lock().unwrap();
        deliveries.push(delivery(seen.moment()));
        deliveries.len() - 1
    };
    tokio::time::sleep(Duration::from_micros(event % 7 * 500)).await;
    let mut deliveries = seen.deliveries.lock().unwrap();
    deliveries[index].ended = Some(seen.moment());
    let Sent { name, kind, key } = echo(event);
    Json(if echoes { json!({"emit": [{"type": kind, "key": key, "value": name}]}) } else { json!({}) })
}

/// What the handler `note` runs: a line for each delivery, in one write, so that lines never mix.
pub(crate) const NOTE: &str =
    "echo $POINTSMAN_EVENT_ID ${POINTSMAN_PREV:--} $POINTSMAN_ATTEMPT $POINTSMAN_FENCE >> notes";

/// The deliveries that `note` has written down. A line is all that is known of one, so it ends where it began.
pub(crate) fn notes(file: &Path) -> Vec<Delivery> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let note = |(index, line): (usize, &str)| {
        let words: Vec<&str> = line.split(' ').collect();
        let [event, prev, attempt, fence] = words[..] else { panic!("a garbled note: {line:?}") };
        Delivery {
            handler: "note".into(),
            event: event.parse().unwrap(),
            prev: (prev != "-").then(|| prev.parse().unwrap()),
            prev_sent: None,
            attempt: attempt.parse().unwrap(),
            fence: fence.parse().unwrap(),
            began: index as u64,
            ended: Some(index as u64),
        }
    };
    text.lines().enumerate().map(note).collect()
}
