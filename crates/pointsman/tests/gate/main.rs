//! Tests of the consumer's gate: decisions, all arrival orders against a model, restarts, and behind a bus.

#![allow(clippy::unwrap_used)]

mod decisions;
mod exhaustive_arrival_orders;
mod restarts;
mod with_bus;

use std::time::{Duration, Instant};

use pointsman::EventId;
use pointsman::gate::{
    Gate, GateDecision, GateLimits, InMemoryPositions, IncomingEvent, PositionStore, ReturnReason,
    ReturnedEvent, TenantObjectKey,
};

/// An event whose payload is its own id.
type NumberedEvent = IncomingEvent<u64>;

fn event_id(number: u64) -> EventId {
    EventId::new(number).unwrap()
}

fn object_key(key: &str) -> TenantObjectKey {
    TenantObjectKey::new("default", key).unwrap()
}

fn numbered_event(key: &str, number: u64, prev: impl Into<Option<u64>>) -> NumberedEvent {
    IncomingEvent {
        object: Some(object_key(key)),
        id: event_id(number),
        prev: prev.into().map(event_id),
        payload: number,
    }
}

/// One event for each key, with the ids 10, 20, …; each names the preceding event of its object.
fn build_history(keys: &[&str]) -> Vec<NumberedEvent> {
    let numbered = || keys.iter().zip(1..).map(|(key, n)| (*key, n * 10));
    let before = |key: &str, n: u64| numbered().filter(|(other, m)| *other == key && *m < n).last();
    numbered().map(|(key, n)| numbered_event(key, n, before(key, n).map(|(_, m)| m))).collect()
}

/// Every assignment of one of two objects to `count` events; the first is always `a`.
fn key_assignments(count: usize) -> Vec<Vec<&'static str>> {
    let key = |bits: usize, n: usize| if bits >> n & 1 == 1 { "b" } else { "a" };
    (0..1 << count).step_by(2).map(|bits| (0..count).map(|n| key(bits, n)).collect()).collect()
}

/// Every ordering of every subset of the events.
fn ordered_subsets(events: &[NumberedEvent]) -> Vec<Vec<NumberedEvent>> {
    let mut all = vec![vec![]];
    for (index, first) in events.iter().enumerate() {
        let mut rest = events.to_vec();
        rest.remove(index);
        for mut tail in ordered_subsets(&rest) {
            tail.insert(0, first.clone());
            all.push(tail);
        }
    }
    all
}

/// The arrivals themselves, and every variant with one of them repeated at any index.
fn with_one_duplicated(arrivals: &[NumberedEvent]) -> Vec<Vec<NumberedEvent>> {
    let mut all = vec![arrivals.to_vec()];
    for event in arrivals {
        for index in 0..=arrivals.len() {
            let mut with_duplicate = arrivals.to_vec();
            with_duplicate.insert(index, event.clone());
            all.push(with_duplicate);
        }
    }
    all
}

/// Handles the event if it is ready, and those that become ready after it. Returns their payloads, in order.
fn handle_ready_events<P: PositionStore>(gate: &mut Gate<u64, P>, decision: GateDecision<u64>) -> Vec<u64> {
    let (mut handled, mut decisions) = (vec![], vec![decision]);
    while let Some(decision) = decisions.pop() {
        if let GateDecision::Ready(event) = decision {
            handled.push(event.payload);
            decisions.extend(gate.mark_done(&event).unwrap());
        }
    }
    handled
}

fn returned_decision(event: NumberedEvent, reason: ReturnReason) -> GateDecision<u64> {
    GateDecision::Returned(ReturnedEvent { event, reason })
}

fn ample_limits() -> GateLimits {
    GateLimits { max_waiting: 100, max_waiting_per_object: 100, overdue_after: Duration::from_secs(10) }
}

fn new_gate() -> Gate<u64, InMemoryPositions> {
    Gate::new(InMemoryPositions::default()).with_limits(ample_limits())
}

fn now() -> Instant {
    Instant::now()
}
