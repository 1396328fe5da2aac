//! Producers: each sends one request after the other, and remembers what it was told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pointsman_api::client::Client;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::history::{Acknowledged, Emit, Sent};
use pointsman_testing::Chance;

/// The types that are emitted. Few are `noted`: each of those starts a process.
const KINDS: [&str; 9] = [
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
/// A type that nobody handles: many of those cost little, and the journal must keep them all the same.
const UNROUTED: &str = "ledger.entry";
/// So few objects that their lanes are always busy.
const OBJECTS: usize = 6;

/// What all producers share.
pub(crate) struct Producers {
    /// The server, while there is one.
    pub(crate) server: watch::Receiver<Option<Client>>,
    pub(crate) emits: Mutex<Vec<Emit>>,
    /// How many requests were acknowledged, and the highest id that anybody was told.
    pub(crate) acknowledged: watch::Sender<usize>,
    newest: AtomicU64,
    stop: AtomicBool,
}

impl Producers {
    pub(crate) fn new(server: watch::Receiver<Option<Client>>) -> Arc<Self> {
        Arc::new(Self {
            server,
            emits: Mutex::default(),
            acknowledged: watch::Sender::new(0),
            newest: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        })
    }

    /// Lets every producer end after its present request.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Emits until told to stop.
    pub(crate) async fn run(self: Arc<Self>, producer: usize, mut chance: Chance) {
        let mut number = 0;
        while !self.stop.load(Ordering::SeqCst) {
            number += 1;
            let events = invent(&format!("{producer}-{number}"), &mut chance);
            let key = chance.one_in(2).then(|| format!("producer {producer}, request {number}"));
            let floor = self.newest.load(Ordering::SeqCst);
            let acknowledged = self.send(&events, key.as_deref()).await;
            self.emits.lock().unwrap().push(Emit { events, floor, acknowledged, effect: false });
            tokio::time::sleep(Duration::from_micros(chance.below(6000) as u64)).await;
        }
    }

    /// Sends one request. With an idempotency key it is sent again until it is acknowledged; without one,
    /// nobody may know what became of it.
    async fn send(&self, events: &[Sent], key: Option<&str>) -> Option<Vec<Acknowledged>> {
        let body = body(events);
        loop {
            let client = current(&self.server).await;
            match client.emit(&body, key).await {
                Ok(emitted) => {
                    self.newest.fetch_max(emitted.event_id, Ordering::SeqCst);
                    self.acknowledged.send_modify(|count| *count += 1);
                    let told = emitted.events.into_iter();
                    return Some(
                        told.map(|e| Acknowledged { id: e.event_id, prev: e.prev, tasks: e.tasks }).collect(),
                    );
                }
                // An answer, even one that says `not now`, means that nothing was stored.
                Err(error) if error.status().is_some_and(|status| status != 503) => panic!("{error}"),
                Err(error) if error.status().is_none() && key.is_none() => return None,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

/// The server that is there, waiting for one if need be.
pub(crate) async fn current(server: &watch::Receiver<Option<Client>>) -> Client {
    let mut server = server.clone();
    let there = server.wait_for(Option::is_some).await.expect("the test goes on");
    there.clone().unwrap()
}

/// The events of one request: mostly one, sometimes several, now and then very many.
fn invent(name: &str, chance: &mut Chance) -> Vec<Sent> {
    let (count, unrouted) = match chance.below(30) {
        0 | 1 => (100 + chance.below(400), true),
        2..=6 => (2 + chance.below(9), false),
        _ => (1, false),
    };
    let event = |index| Sent {
        name: format!("{name}-{index}"),
        kind: if unrouted { UNROUTED } else { *chance.of(&KINDS) }.to_owned(),
        key: Some(chance.below(OBJECTS + 1)).filter(|n| *n < OBJECTS).map(|n| format!("record:{n}")),
    };
    (0..count).map(event).collect()
}

fn body(events: &[Sent]) -> Value {
    let one = |event: &Sent| json!({"type": event.kind, "key": event.key, "value": event.name});
    match events {
        [only] => one(only),
        _ => events.iter().map(one).collect(),
    }
}
