//! A gate behind a real bus: fed with what a handler was sent, and with the journal.

use pointsman::prelude::*;
use pointsman::{EventId, Filter};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::*;

#[derive(Event, Serialize, Deserialize)]
#[event(type = "record.changed", key = "record:{id}")]
struct Changed {
    id: u64,
}

/// Stands between the others, and goes to no handler: `prev` names it, `prev_sent` does not.
#[derive(Event, Serialize, Deserialize)]
#[event(type = "note", key = "record:{id}")]
struct Note {
    id: u64,
}

async fn collect(ctx: Ctx, State(sent): State<UnboundedSender<Arrival<Raw>>>) {
    let _ = sent.send(Arrival::sent(&ctx).unwrap());
}

/// All arrivals twice, from the last to the first in steps of seven, round and round.
fn shuffled(arrivals: &[Arrival<Raw>]) -> Vec<Arrival<Raw>> {
    let count = arrivals.len() * 2;
    assert!(!count.is_multiple_of(7), "or some would be left out");
    (0..count).rev().map(|n| arrivals[n * 7 % count / 2].clone()).collect()
}

/// Runs arrivals through a gate, and answers what was handled, in order.
fn through_a_gate(arrivals: Vec<Arrival<Raw>>) -> Vec<(Option<Object>, EventId)> {
    let mut gate = Gate::new(InMemory::default()).limits(roomy());
    let mut handled = vec![];
    for event in arrivals {
        let mut next = vec![gate.arrive(event, now()).unwrap()];
        while let Some(verdict) = next.pop() {
            match verdict {
                Verdict::Ready(event) => {
                    handled.push((event.object.clone(), event.id));
                    next.extend(gate.done(&event).unwrap());
                }
                Verdict::Wait | Verdict::Duplicate => {}
                Verdict::Hole(hole) => panic!("{hole:?}"),
            }
        }
    }
    assert_eq!(gate.waiting(), 0, "nothing is missing");
    handled
}

/// Each once, and those of an object in order.
fn check(arrivals: &[Arrival<Raw>]) {
    let mixed = shuffled(arrivals);
    assert!(!mixed.is_sorted_by_key(|event| event.id));
    let mut handled = through_a_gate(mixed);
    handled.sort_by(|a, b| a.0.cmp(&b.0));
    let mut expected: Vec<_> = arrivals.iter().map(|event| (event.object.clone(), event.id)).collect();
    expected.sort();
    assert_eq!(handled, expected);
}

#[tokio::test]
async fn what_a_bus_sends_goes_through_a_gate_however_it_is_mixed() {
    let (sender, mut sent) = unbounded_channel::<Arrival<Raw>>();
    let bus = Bus::builder("sqlite::memory:")
        .state(sender)
        .handler("collect", collect)
        .on::<Changed>("collect")
        .start()
        .await
        .unwrap();
    for round in 0..10 {
        for id in 0..3 {
            bus.emit(Changed { id }).await.unwrap();
            if round % 2 == id % 2 {
                bus.emit(Note { id }).await.unwrap();
            }
        }
    }
    let mut to_handler: Vec<Arrival<Raw>> = vec![];
    let mut journaled = vec![];
    let mut watch = bus.watch_after(EventId::ZERO, Filter::default());
    tokio::time::timeout(Duration::from_secs(60), async {
        while to_handler.len() < 30 {
            to_handler.push(sent.recv().await.unwrap());
        }
        while journaled.len() < 45 {
            let event = watch.next().await.unwrap();
            if event.is::<Changed>() || event.is::<Note>() {
                journaled.push(Arrival::journaled(event));
            }
        }
    })
    .await
    .unwrap();
    let differ = to_handler.iter().filter(|event| event.prev != event.payload.prev).count();
    assert!(differ > 0, "the handler is told of what it was sent alone");
    check(&to_handler);
    check(&journaled);
    bus.stop().await;
}
