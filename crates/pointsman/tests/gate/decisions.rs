//! Each decision rule of a gate.

use pointsman::gate::{GateError, MissingEvent, ObjectPosition};

use super::*;

/// Passes an event to the gate, and handles the events that are ready then.
fn receive_and_handle(gate: &mut Gate<u64, InMemoryPositions>, event: NumberedEvent) -> Vec<u64> {
    let decision = gate.receive(event, now()).unwrap();
    handle_ready_events(gate, decision)
}

#[test]
fn events_without_a_key_are_always_ready() {
    let mut gate = new_gate().start_after(event_id(100));
    let keyless = IncomingEvent { object: None, ..numbered_event("a", 1, 7) };
    for _ in 0..2 {
        assert_eq!(gate.receive(keyless.clone(), now()).unwrap(), GateDecision::Ready(keyless.clone()));
        assert_eq!(gate.mark_done(&keyless).unwrap(), []);
    }
}

#[test]
fn equal_keys_of_two_tenants_are_different_objects() {
    let mut gate = new_gate();
    assert_eq!(receive_and_handle(&mut gate, numbered_event("a", 1, None)), [1]);
    let other_tenant = IncomingEvent {
        object: Some(TenantObjectKey::new("shop", "a").unwrap()),
        ..numbered_event("a", 1, None)
    };
    assert_eq!(receive_and_handle(&mut gate, other_tenant), [1]);
}

#[test]
fn only_an_event_in_progress_can_be_marked_done() {
    let mut gate = new_gate();
    let (first, second) = (numbered_event("a", 1, None), numbered_event("a", 2, 1));
    assert_eq!(gate.mark_done(&first), Err(GateError::NotInProgress { id: event_id(1) }));
    gate.receive(second.clone(), now()).unwrap();
    assert_eq!(
        gate.mark_done(&second),
        Err(GateError::NotInProgress { id: event_id(2) }),
        "the event only waits"
    );
    gate.receive(first.clone(), now()).unwrap();
    assert_eq!(gate.mark_done(&first).unwrap(), [GateDecision::Ready(second.clone())]);
    assert_eq!(
        gate.mark_done(&first),
        Err(GateError::NotInProgress { id: event_id(1) }),
        "the event is done already"
    );
    assert_eq!(gate.release(&first), Err(GateError::NotInProgress { id: event_id(1) }));
    assert_eq!(gate.mark_done(&second).unwrap(), []);
}

#[test]
fn released_event_is_ready_again_and_not_overtaken() {
    let mut gate = new_gate();
    let first = numbered_event("a", 1, None);
    gate.receive(first.clone(), now()).unwrap();
    gate.receive(numbered_event("a", 2, 1), now()).unwrap();
    assert_eq!(gate.receive(first.clone(), now()).unwrap(), GateDecision::Duplicate);
    gate.release(&first).unwrap();
    assert_eq!(gate.receive(numbered_event("a", 3, 2), now()).unwrap(), GateDecision::Wait);
    assert_eq!(
        gate.list_overdue_missing_events(now() + 2 * ample_limits().overdue_after)[0].missing_id,
        event_id(1)
    );
    assert_eq!(receive_and_handle(&mut gate, first), [1, 2, 3]);
    assert!(
        format!("{gate:?}").contains("lanes: {}"),
        "an idle object takes no memory but its position: {gate:?}"
    );
}

#[test]
fn consumer_may_start_in_the_middle_of_the_journal() {
    let mut gate = new_gate().start_after(event_id(100));
    assert_eq!(gate.receive(numbered_event("a", 100, 90), now()).unwrap(), GateDecision::Duplicate);
    assert_eq!(gate.receive(numbered_event("a", 103, 102), now()).unwrap(), GateDecision::Wait);
    assert_eq!(
        receive_and_handle(&mut gate, numbered_event("a", 102, 90)),
        [102, 103],
        "90 counts as handled"
    );
    assert_eq!(receive_and_handle(&mut gate, numbered_event("b", 104, 100)), [104]);
    assert_eq!(receive_and_handle(&mut gate, numbered_event("c", 105, None)), [105]);
    let positions = gate.positions().clone();
    let mut restarted_gate = Gate::new(positions).with_limits(ample_limits()).start_after(event_id(200));
    assert_eq!(
        receive_and_handle(&mut restarted_gate, numbered_event("a", 110, 103)),
        [110],
        "a stored position takes precedence"
    );
    assert_eq!(
        restarted_gate.receive(numbered_event("d", 110, None), now()).unwrap(),
        GateDecision::Duplicate
    );
}

#[test]
fn event_that_contradicts_the_position_is_a_fork() {
    let mut gate = new_gate();
    for (number, prev) in [(10, None), (20, Some(10))] {
        receive_and_handle(&mut gate, numbered_event("a", number, prev));
    }
    for fork in [
        numbered_event("a", 30, 10),
        numbered_event("a", 30, 15),
        numbered_event("a", 30, None),
        numbered_event("a", 30, 30),
    ] {
        assert_eq!(gate.receive(fork.clone(), now()).unwrap(), returned_decision(fork, ReturnReason::Fork));
    }
    assert_eq!(
        gate.receive(numbered_event("a", 15, 10), now()).unwrap(),
        GateDecision::Duplicate,
        "older than the last"
    );
    let returned_event = numbered_event("a", 30, 10);
    assert_eq!(gate.skip_to(&object_key("a"), event_id(30)).unwrap(), [], "the consumer has the event");
    assert_eq!(receive_and_handle(&mut gate, returned_event), [30], "and passes it again");
    assert_eq!(receive_and_handle(&mut gate, numbered_event("a", 40, 30)), [40]);
}

#[test]
fn second_successor_of_the_same_event_is_a_fork() {
    let mut gate = new_gate();
    let (one, other) = (numbered_event("a", 20, 10), numbered_event("a", 30, 10));
    receive_and_handle(&mut gate, numbered_event("a", 10, None));
    assert_eq!(gate.receive(one.clone(), now()).unwrap(), GateDecision::Ready(one));
    assert_eq!(gate.receive(other.clone(), now()).unwrap(), returned_decision(other, ReturnReason::Fork));
}

#[test]
fn waiting_forks_are_returned_as_soon_as_they_are_detected() {
    let mut gate = new_gate();
    let (first, early, next, fork) = (
        numbered_event("a", 10, None),
        numbered_event("a", 15, 12),
        numbered_event("a", 20, 10),
        numbered_event("a", 30, 10),
    );
    for waiting_event in [&early, &fork, &next] {
        assert_eq!(gate.receive(waiting_event.clone(), now()).unwrap(), GateDecision::Wait);
    }
    gate.receive(first.clone(), now()).unwrap();
    assert_eq!(gate.mark_done(&first).unwrap(), [GateDecision::Ready(next.clone())]);
    assert_eq!(
        gate.mark_done(&next).unwrap(),
        [returned_decision(fork, ReturnReason::Fork), returned_decision(early, ReturnReason::Fork)]
    );
    assert_eq!(gate.waiting_count(), 0);
}

#[test]
fn a_full_gate_buffers_no_more_events_but_still_makes_the_next_one_ready() {
    let mut gate =
        new_gate().with_limits(GateLimits { max_waiting: 3, max_waiting_per_object: 2, ..ample_limits() });
    for waiting_event in [numbered_event("a", 2, 1), numbered_event("a", 3, 2)] {
        assert_eq!(gate.receive(waiting_event, now()).unwrap(), GateDecision::Wait);
    }
    let event_over_the_limit = numbered_event("a", 4, 3);
    assert_eq!(
        gate.receive(event_over_the_limit.clone(), now()).unwrap(),
        returned_decision(event_over_the_limit.clone(), ReturnReason::BufferFull),
        "the buffer of the object is full"
    );
    assert_eq!(gate.receive(numbered_event("b", 6, 5), now()).unwrap(), GateDecision::Wait);
    let other = numbered_event("c", 8, 7);
    assert_eq!(
        gate.receive(other.clone(), now()).unwrap(),
        returned_decision(other.clone(), ReturnReason::BufferFull),
        "the buffer of the gate is full"
    );
    assert_eq!(
        gate.receive(numbered_event("b", 6, 5), now()).unwrap(),
        GateDecision::Duplicate,
        "a waiting event is a duplicate even if the gate is full"
    );
    assert_eq!(gate.waiting_count(), 3);
    assert_eq!(receive_and_handle(&mut gate, numbered_event("a", 1, None)), [1, 2, 3]);
    assert_eq!(gate.waiting_count(), 1);
    assert_eq!(receive_and_handle(&mut gate, event_over_the_limit), [4]);
    assert_eq!(gate.receive(other, now()).unwrap(), GateDecision::Wait, "there is space again");
}

#[test]
fn event_missing_for_too_long_is_overdue() {
    let mut gate = new_gate();
    let start = now();
    let after = |seconds| start + Duration::from_secs(seconds);
    for (arrival, seconds) in [
        (numbered_event("a", 3, 2), 0),
        (numbered_event("a", 4, 3), 1),
        (numbered_event("a", 7, 6), 5),
        (numbered_event("b", 9, 8), 0),
    ] {
        assert_eq!(gate.receive(arrival, after(seconds)).unwrap(), GateDecision::Wait);
    }
    let missing_event = |key, prev, waiting: &[u64], seconds| MissingEvent {
        object: object_key(key),
        missing_id: event_id(prev),
        waiting_ids: waiting.iter().copied().map(event_id).collect(),
        waiting_since: after(seconds),
    };
    assert_eq!(gate.list_overdue_missing_events(after(10)), [], "exactly at the limit");
    assert_eq!(
        gate.list_overdue_missing_events(after(11)),
        [missing_event("a", 2, &[3, 4], 0), missing_event("b", 8, &[9], 0)]
    );
    let all =
        [missing_event("a", 2, &[3, 4], 0), missing_event("b", 8, &[9], 0), missing_event("a", 6, &[7], 5)];
    assert_eq!(gate.list_overdue_missing_events(after(60)), all);
    assert_eq!(gate.list_overdue_missing_events(after(60)), all, "listing changes nothing");
    let first = numbered_event("a", 1, None);
    gate.receive(first, start).unwrap();
    assert_eq!(receive_and_handle(&mut gate, numbered_event("b", 8, None)), [8, 9]);
    assert_eq!(
        gate.list_overdue_missing_events(after(60)).len(),
        2,
        "the event in progress is not the one they wait for"
    );
}

#[test]
fn events_waiting_for_one_in_progress_are_not_overdue() {
    let mut gate = new_gate();
    let start = now();
    for arrival in [numbered_event("a", 1, None), numbered_event("a", 2, 1), numbered_event("a", 3, 2)] {
        gate.receive(arrival, start).unwrap();
    }
    assert_eq!(gate.list_overdue_missing_events(start + 2 * ample_limits().overdue_after), []);
}

#[test]
fn skip_continues_after_the_missing_events() {
    let mut gate = new_gate();
    let (third, fourth, seventh) =
        (numbered_event("a", 3, 2), numbered_event("a", 4, 3), numbered_event("a", 7, 6));
    assert_eq!(receive_and_handle(&mut gate, numbered_event("a", 1, None)), [1]);
    for waiting_event in [&third, &fourth, &seventh] {
        gate.receive(waiting_event.clone(), now()).unwrap();
    }
    let refused = gate.skip_to(&object_key("a"), event_id(7));
    assert_eq!(refused, Err(GateError::OlderEventWaits { id: event_id(7), older_id: event_id(3) }));
    assert_eq!(gate.skip_to(&object_key("a"), event_id(3)).unwrap(), [GateDecision::Ready(third.clone())]);
    assert_eq!(
        gate.positions().read_position(&object_key("a")).unwrap(),
        Some(ObjectPosition::HandledUpTo(event_id(2)))
    );
    assert_eq!(gate.receive(numbered_event("a", 2, 1), now()).unwrap(), GateDecision::Duplicate);
    assert_eq!(gate.skip_to(&object_key("a"), event_id(7)), Err(GateError::InProgress { id: event_id(3) }));
    assert_eq!(gate.mark_done(&third).unwrap(), [GateDecision::Ready(fourth.clone())]);
    assert_eq!(gate.mark_done(&fourth).unwrap(), []);
    assert_eq!(gate.skip_to(&object_key("a"), event_id(4)).unwrap(), [], "the event is handled already");
    assert_eq!(
        gate.positions().read_position(&object_key("a")).unwrap(),
        Some(ObjectPosition::LastHandled(event_id(4)))
    );
    let decisions = gate.skip_to(&object_key("a"), event_id(7)).unwrap();
    assert_eq!(decisions, [GateDecision::Ready(seventh.clone())]);
    assert_eq!(gate.mark_done(&seventh).unwrap(), []);
    assert_eq!(gate.receive(numbered_event("a", 6, 4), now()).unwrap(), GateDecision::Duplicate);
}
