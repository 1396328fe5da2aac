//! Each rule by itself.

use pointsman::gate::{GateError, Mark, Missing};

use super::*;

/// Lets an event arrive, and handles what is ready then.
fn feed(gate: &mut Gate<u64, InMemory>, event: Event) -> Vec<u64> {
    let verdict = gate.arrive(event, now()).unwrap();
    handle(gate, verdict)
}

#[test]
fn events_without_a_key_are_always_ready() {
    let mut gate = gate().after(id(100));
    let free = Arrival { object: None, ..event("a", 1, 7) };
    for _ in 0..2 {
        assert_eq!(gate.arrive(free.clone(), now()).unwrap(), Verdict::Ready(free.clone()));
        assert_eq!(gate.done(&free).unwrap(), []);
    }
}

#[test]
fn tenants_have_objects_of_their_own() {
    let mut gate = gate();
    assert_eq!(feed(&mut gate, event("a", 1, None)), [1]);
    let elsewhere = Arrival { object: Some(Object::new("shop", "a").unwrap()), ..event("a", 1, None) };
    assert_eq!(feed(&mut gate, elsewhere), [1]);
}

#[test]
fn what_is_done_was_in_hand() {
    let mut gate = gate();
    let (first, second) = (event("a", 1, None), event("a", 2, 1));
    assert_eq!(gate.done(&first), Err(GateError::NotInHand { id: id(1) }));
    gate.arrive(second.clone(), now()).unwrap();
    assert_eq!(gate.done(&second), Err(GateError::NotInHand { id: id(2) }), "it only waits");
    gate.arrive(first.clone(), now()).unwrap();
    assert_eq!(gate.done(&first).unwrap(), [Verdict::Ready(second.clone())]);
    assert_eq!(gate.done(&first), Err(GateError::NotInHand { id: id(1) }), "it is done already");
    assert_eq!(gate.release(&first), Err(GateError::NotInHand { id: id(1) }));
    assert_eq!(gate.done(&second).unwrap(), []);
}

#[test]
fn what_could_not_be_handled_is_ready_again_and_nothing_overtakes_it() {
    let mut gate = gate();
    let first = event("a", 1, None);
    gate.arrive(first.clone(), now()).unwrap();
    gate.arrive(event("a", 2, 1), now()).unwrap();
    assert_eq!(gate.arrive(first.clone(), now()).unwrap(), Verdict::Duplicate);
    gate.release(&first).unwrap();
    assert_eq!(gate.arrive(event("a", 3, 2), now()).unwrap(), Verdict::Wait);
    assert_eq!(gate.overdue(now() + 2 * roomy().patience)[0].prev, id(1));
    assert_eq!(feed(&mut gate, first), [1, 2, 3]);
    assert!(format!("{gate:?}").contains("lanes: {}"), "an object at rest costs its mark alone: {gate:?}");
}

#[test]
fn a_consumer_may_start_in_the_middle() {
    let mut gate = gate().after(id(100));
    assert_eq!(gate.arrive(event("a", 100, 90), now()).unwrap(), Verdict::Duplicate);
    assert_eq!(gate.arrive(event("a", 103, 102), now()).unwrap(), Verdict::Wait);
    assert_eq!(feed(&mut gate, event("a", 102, 90)), [102, 103], "90 counts as handled");
    assert_eq!(feed(&mut gate, event("b", 104, 100)), [104]);
    assert_eq!(feed(&mut gate, event("c", 105, None)), [105]);
    let marks = gate.marks().clone();
    let mut later = Gate::new(marks).limits(roomy()).after(id(200));
    assert_eq!(feed(&mut later, event("a", 110, 103)), [110], "what is remembered goes before");
    assert_eq!(later.arrive(event("d", 110, None), now()).unwrap(), Verdict::Duplicate);
}

#[test]
fn what_contradicts_what_is_remembered_is_a_fork() {
    let mut gate = gate();
    for (number, prev) in [(10, None), (20, Some(10))] {
        feed(&mut gate, event("a", number, prev));
    }
    for fork in [event("a", 30, 10), event("a", 30, 15), event("a", 30, None), event("a", 30, 30)] {
        assert_eq!(gate.arrive(fork.clone(), now()).unwrap(), hole(fork, Why::Fork));
    }
    assert_eq!(gate.arrive(event("a", 15, 10), now()).unwrap(), Verdict::Duplicate, "older than the last");
    let taken = event("a", 30, 10);
    assert_eq!(gate.skip(&object("a"), id(30)).unwrap(), [], "the consumer has it");
    assert_eq!(feed(&mut gate, taken), [30], "and lets it arrive again");
    assert_eq!(feed(&mut gate, event("a", 40, 30)), [40]);
}

#[test]
fn two_that_follow_on_the_same_event_are_not_handled_side_by_side() {
    let mut gate = gate();
    let (one, other) = (event("a", 20, 10), event("a", 30, 10));
    feed(&mut gate, event("a", 10, None));
    assert_eq!(gate.arrive(one.clone(), now()).unwrap(), Verdict::Ready(one));
    assert_eq!(gate.arrive(other.clone(), now()).unwrap(), hole(other, Why::Fork));
}

#[test]
fn forks_among_those_that_wait_are_told_as_soon_as_they_show() {
    let mut gate = gate();
    let (first, early, next, fork) =
        (event("a", 10, None), event("a", 15, 12), event("a", 20, 10), event("a", 30, 10));
    for waits in [&early, &fork, &next] {
        assert_eq!(gate.arrive(waits.clone(), now()).unwrap(), Verdict::Wait);
    }
    gate.arrive(first.clone(), now()).unwrap();
    assert_eq!(gate.done(&first).unwrap(), [Verdict::Ready(next.clone())]);
    assert_eq!(gate.done(&next).unwrap(), [hole(fork, Why::Fork), hole(early, Why::Fork)]);
    assert_eq!(gate.waiting(), 0);
}

#[test]
fn a_full_gate_keeps_no_more_but_lets_through_what_is_next() {
    let mut gate = gate().limits(Limits { waiting: 3, waiting_per_object: 2, ..roomy() });
    for waits in [event("a", 2, 1), event("a", 3, 2)] {
        assert_eq!(gate.arrive(waits, now()).unwrap(), Verdict::Wait);
    }
    let over = event("a", 4, 3);
    assert_eq!(gate.arrive(over.clone(), now()).unwrap(), hole(over.clone(), Why::Full), "of the object");
    assert_eq!(gate.arrive(event("b", 6, 5), now()).unwrap(), Verdict::Wait);
    let other = event("c", 8, 7);
    assert_eq!(gate.arrive(other.clone(), now()).unwrap(), hole(other.clone(), Why::Full), "of the gate");
    assert_eq!(gate.arrive(event("b", 6, 5), now()).unwrap(), Verdict::Duplicate, "full or not");
    assert_eq!(gate.waiting(), 3);
    assert_eq!(feed(&mut gate, event("a", 1, None)), [1, 2, 3]);
    assert_eq!(gate.waiting(), 1);
    assert_eq!(feed(&mut gate, over), [4]);
    assert_eq!(gate.arrive(other, now()).unwrap(), Verdict::Wait, "there is room again");
}

#[test]
fn what_is_missing_for_too_long_is_overdue() {
    let mut gate = gate();
    let begun = now();
    let after = |seconds| begun + Duration::from_secs(seconds);
    for (arrival, seconds) in
        [(event("a", 3, 2), 0), (event("a", 4, 3), 1), (event("a", 7, 6), 5), (event("b", 9, 8), 0)]
    {
        assert_eq!(gate.arrive(arrival, after(seconds)).unwrap(), Verdict::Wait);
    }
    let gap = |key, prev, waiting: &[u64], seconds| Missing {
        object: object(key),
        prev: id(prev),
        waiting: waiting.iter().copied().map(id).collect(),
        since: after(seconds),
    };
    assert_eq!(gate.overdue(after(10)), [], "exactly as long as it may");
    assert_eq!(gate.overdue(after(11)), [gap("a", 2, &[3, 4], 0), gap("b", 8, &[9], 0)]);
    let all = [gap("a", 2, &[3, 4], 0), gap("b", 8, &[9], 0), gap("a", 6, &[7], 5)];
    assert_eq!(gate.overdue(after(60)), all);
    assert_eq!(gate.overdue(after(60)), all, "asking changes nothing");
    let first = event("a", 1, None);
    gate.arrive(first, begun).unwrap();
    assert_eq!(feed(&mut gate, event("b", 8, None)), [8, 9]);
    assert_eq!(gate.overdue(after(60)).len(), 2, "what is in hand is not what they wait for");
}

#[test]
fn what_waits_for_one_in_hand_is_not_overdue() {
    let mut gate = gate();
    let begun = now();
    for arrival in [event("a", 1, None), event("a", 2, 1), event("a", 3, 2)] {
        gate.arrive(arrival, begun).unwrap();
    }
    assert_eq!(gate.overdue(begun + 2 * roomy().patience), []);
}

#[test]
fn a_skip_goes_on_behind_the_hole() {
    let mut gate = gate();
    let (third, fourth, seventh) = (event("a", 3, 2), event("a", 4, 3), event("a", 7, 6));
    assert_eq!(feed(&mut gate, event("a", 1, None)), [1]);
    for waits in [&third, &fourth, &seventh] {
        gate.arrive(waits.clone(), now()).unwrap();
    }
    let refused = gate.skip(&object("a"), id(7));
    assert_eq!(refused, Err(GateError::WaitsBefore { id: id(7), first: id(3) }));
    assert_eq!(gate.skip(&object("a"), id(3)).unwrap(), [Verdict::Ready(third.clone())]);
    assert_eq!(gate.marks().mark(&object("a")).unwrap(), Some(Mark::UpTo(id(2))));
    assert_eq!(gate.arrive(event("a", 2, 1), now()).unwrap(), Verdict::Duplicate);
    assert_eq!(gate.skip(&object("a"), id(7)), Err(GateError::InHand { id: id(3) }));
    assert_eq!(gate.done(&third).unwrap(), [Verdict::Ready(fourth.clone())]);
    assert_eq!(gate.done(&fourth).unwrap(), []);
    assert_eq!(gate.skip(&object("a"), id(4)).unwrap(), [], "it is handled already");
    assert_eq!(gate.marks().mark(&object("a")).unwrap(), Some(Mark::Handled(id(4))));
    let verdicts = gate.skip(&object("a"), id(7)).unwrap();
    assert_eq!(verdicts, [Verdict::Ready(seventh.clone())]);
    assert_eq!(gate.done(&seventh).unwrap(), []);
    assert_eq!(gate.arrive(event("a", 6, 4), now()).unwrap(), Verdict::Duplicate);
}
