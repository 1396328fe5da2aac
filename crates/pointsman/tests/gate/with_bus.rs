//! A gate behind a real bus: it receives the events of a handler, and those of the journal.

use pointsman::prelude::*;
use pointsman::{EventFilter, EventId};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::*;

#[derive(Event, Serialize, Deserialize)]
#[event(type = "record.changed", key = "record:{id}")]
struct RecordChanged {
    id: u64,
}

/// An event between the others that is routed to no handler: `prev` names it, `prev_sent` does not.
#[derive(Event, Serialize, Deserialize)]
#[event(type = "note", key = "record:{id}")]
struct UnroutedNote {
    id: u64,
}

async fn send_to_test(ctx: Ctx, State(sent_events): State<UnboundedSender<IncomingEvent<RawEvent>>>) {
    let _ = sent_events.send(IncomingEvent::from_attempt(&ctx).unwrap());
}

/// Repeats every arrival, in an order far from the original: backwards in steps of seven.
fn shuffle_and_repeat(arrivals: &[IncomingEvent<RawEvent>]) -> Vec<IncomingEvent<RawEvent>> {
    let count = arrivals.len() * 2;
    assert!(!count.is_multiple_of(7), "otherwise the steps would omit some");
    (0..count).rev().map(|n| arrivals[n * 7 % count / 2].clone()).collect()
}

/// Passes arrivals to a gate, and returns the handled events, in order.
fn handle_through_gate(arrivals: Vec<IncomingEvent<RawEvent>>) -> Vec<(Option<TenantObjectKey>, EventId)> {
    let mut gate = Gate::new(InMemoryPositions::default()).with_limits(ample_limits());
    let mut handled = vec![];
    for event in arrivals {
        let mut decisions = vec![gate.receive(event, now()).unwrap()];
        while let Some(decision) = decisions.pop() {
            match decision {
                GateDecision::Ready(event) => {
                    handled.push((event.object.clone(), event.id));
                    decisions.extend(gate.mark_done(&event).unwrap());
                }
                GateDecision::Wait | GateDecision::Duplicate => {}
                GateDecision::Returned(returned) => panic!("{returned:?}"),
            }
        }
    }
    assert_eq!(gate.waiting_count(), 0, "nothing is missing");
    handled
}

/// Checks that each event is handled once, and those of an object in order.
fn check_handled_once_and_in_order(arrivals: &[IncomingEvent<RawEvent>]) {
    let shuffled_arrivals = shuffle_and_repeat(arrivals);
    assert!(!shuffled_arrivals.is_sorted_by_key(|event| event.id));
    let mut handled = handle_through_gate(shuffled_arrivals);
    handled.sort_by(|a, b| a.0.cmp(&b.0));
    let mut expected: Vec<_> = arrivals.iter().map(|event| (event.object.clone(), event.id)).collect();
    expected.sort();
    assert_eq!(handled, expected);
}

#[tokio::test]
async fn shuffled_and_repeated_events_of_a_bus_are_handled_once_and_in_order() {
    let (sender, mut sent_events) = unbounded_channel::<IncomingEvent<RawEvent>>();
    let bus = Bus::builder("sqlite::memory:")
        .state(sender)
        .handler("collect", send_to_test)
        .on::<RecordChanged>("collect")
        .start()
        .await
        .unwrap();
    for round in 0..10 {
        for id in 0..3 {
            bus.emit(RecordChanged { id }).await.unwrap();
            if round % 2 == id % 2 {
                bus.emit(UnroutedNote { id }).await.unwrap();
            }
        }
    }
    let mut sent_to_handler: Vec<IncomingEvent<RawEvent>> = vec![];
    let mut journaled = vec![];
    let mut watch = bus.watch_after(EventId::ZERO, EventFilter::default());
    tokio::time::timeout(Duration::from_secs(60), async {
        while sent_to_handler.len() < 30 {
            sent_to_handler.push(sent_events.recv().await.unwrap());
        }
        while journaled.len() < 45 {
            let event = watch.next().await.unwrap();
            if event.is::<RecordChanged>() || event.is::<UnroutedNote>() {
                journaled.push(IncomingEvent::from_journal(event));
            }
        }
    })
    .await
    .unwrap();
    let differing_count = sent_to_handler.iter().filter(|event| event.prev != event.payload.prev).count();
    assert!(differing_count > 0, "`prev_sent` skips events that the handler was not sent");
    check_handled_once_and_in_order(&sent_to_handler);
    check_handled_once_and_in_order(&journaled);
    bus.stop().await;
}
