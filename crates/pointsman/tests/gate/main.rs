//! The consumer's gate, against a model and across restarts.

#![allow(clippy::unwrap_used)]

mod bus;
mod histories;
mod restarts;
mod rules;

use std::time::{Duration, Instant};

use pointsman::EventId;
use pointsman::gate::{Arrival, Gate, Hole, InMemory, Limits, Marks, Object, Verdict, Why};

/// An event whose payload is its own id.
type Event = Arrival<u64>;

fn id(number: u64) -> EventId {
    EventId::new(number).unwrap()
}

fn object(key: &str) -> Object {
    Object::new("default", key).unwrap()
}

fn event(key: &str, number: u64, prev: impl Into<Option<u64>>) -> Event {
    Arrival { object: Some(object(key)), id: id(number), prev: prev.into().map(id), payload: number }
}

/// As many events as there are keys, with the ids 10, 20, …: each names the one before it of its object.
fn history(keys: &[&str]) -> Vec<Event> {
    let numbered = || keys.iter().zip(1..).map(|(key, n)| (*key, n * 10));
    let before = |key: &str, n: u64| numbered().filter(|(other, m)| *other == key && *m < n).last();
    numbered().map(|(key, n)| event(key, n, before(key, n).map(|(_, m)| m))).collect()
}

/// Every way to give each of `count` events one of two objects; the first is always of `a`.
fn keyings(count: usize) -> Vec<Vec<&'static str>> {
    let key = |bits: usize, n: usize| if bits >> n & 1 == 1 { "b" } else { "a" };
    (0..1 << count).step_by(2).map(|bits| (0..count).map(|n| key(bits, n)).collect()).collect()
}

/// Every order of every subset.
fn arrangements(events: &[Event]) -> Vec<Vec<Event>> {
    let mut all = vec![vec![]];
    for (index, first) in events.iter().enumerate() {
        let mut rest = events.to_vec();
        rest.remove(index);
        for mut tail in arrangements(&rest) {
            tail.insert(0, first.clone());
            all.push(tail);
        }
    }
    all
}

/// The same arrivals, and all with one of them doubled at any place.
fn doublings(arrivals: &[Event]) -> Vec<Vec<Event>> {
    let mut all = vec![arrivals.to_vec()];
    for event in arrivals {
        for place in 0..=arrivals.len() {
            let mut doubled = arrivals.to_vec();
            doubled.insert(place, event.clone());
            all.push(doubled);
        }
    }
    all
}

/// Handles what is ready and all that follows on it. Answers with the payloads, in order.
fn handle<M: Marks>(gate: &mut Gate<u64, M>, verdict: Verdict<u64>) -> Vec<u64> {
    let (mut handled, mut next) = (vec![], vec![verdict]);
    while let Some(verdict) = next.pop() {
        if let Verdict::Ready(event) = verdict {
            handled.push(event.payload);
            next.extend(gate.done(&event).unwrap());
        }
    }
    handled
}

fn hole(event: Event, why: Why) -> Verdict<u64> {
    Verdict::Hole(Hole { event, why })
}

fn roomy() -> Limits {
    Limits { waiting: 100, waiting_per_object: 100, patience: Duration::from_secs(10) }
}

fn gate() -> Gate<u64, InMemory> {
    Gate::new(InMemory::default()).limits(roomy())
}

fn now() -> Instant {
    Instant::now()
}
