//! Histories that are wrong on purpose: the checker must find each fault, and none where there is none.

use super::*;

const OBJECT_KEY: &str = "record:1";

fn sample_event(name: &str) -> SentEvent {
    SentEvent { name: name.into(), event_type: "a.b".into(), key: Some(OBJECT_KEY.into()) }
}

fn sample_delivery(handler: &str, event: u64, prev: Option<u64>, began: u64) -> RecordedDelivery {
    RecordedDelivery {
        handler: handler.into(),
        event_id: event,
        prev,
        prev_sent: Some(prev),
        attempt: 1,
        fence: began,
        start_position: began,
        end_position: Some(began + 1),
    }
}

/// Three events of one object, each for two handlers, read by one reader; the last two in one request.
fn correct_history() -> History {
    let routes = BTreeMap::from([("a.b".to_owned(), vec!["x".to_owned(), "y".to_owned()])]);
    let mut history = History { routes, kill_count: 1, worker_slots: 2, ..History::default() };
    let chain = [(10, None, "one"), (20, Some(10), "two"), (30, Some(20), "three")];
    let mut acknowledged = vec![];
    for (index, (id, prev, name)) in chain.into_iter().enumerate() {
        history.journal_entries.push(FinalJournalEntry { id, prev, event: sample_event(name) });
        let tasks: Vec<String> = ["x", "y"].map(|handler| format!("{handler}-{id}")).into();
        for (offset, handler) in ["x", "y"].into_iter().enumerate() {
            let (task, event, state) = (tasks[offset].clone(), id, "done".into());
            history.tasks.push(FinalTask { id: task, event_id: event, handler: handler.into(), state });
            let began = (index * 4 + offset * 2) as u64;
            history.deliveries.push(sample_delivery(handler, id, prev, began));
        }
        acknowledged.push(AcknowledgedEvent { id, prev, task_ids: tasks });
    }
    let rest = acknowledged.split_off(1);
    history.emit_requests = vec![
        EmitRequest {
            events: vec![sample_event("one")],
            newest_acknowledged_id_before: 0,
            acknowledged_events: Some(acknowledged),
            emitted_by_handler: false,
        },
        EmitRequest {
            events: vec![sample_event("two"), sample_event("three")],
            newest_acknowledged_id_before: 10,
            acknowledged_events: Some(rest),
            emitted_by_handler: false,
        },
    ];
    history.reader_logs =
        vec![ReaderLog { reader_name: "r".into(), event_ids: vec![10, 20, 30], gap_count: 0 }];
    history
}

/// The violations of a correct history after `spoil` has changed it.
fn violations_after(spoil: impl FnOnce(&mut History)) -> Vec<Violation> {
    let mut history = correct_history();
    spoil(&mut history);
    history.find_violations()
}

fn assert_contains_violation(violations: &[Violation], is: impl Fn(&Violation) -> bool) {
    assert!(violations.iter().any(is), "not found among {violations:?}");
}

#[test]
fn a_correct_history_has_no_violations() {
    assert_eq!(correct_history().find_violations(), []);
}

#[test]
fn unacknowledged_events_may_be_missing_or_stored_once() {
    let unsure = |name: &str| EmitRequest {
        events: vec![sample_event(name)],
        newest_acknowledged_id_before: 0,
        acknowledged_events: None,
        emitted_by_handler: false,
    };
    assert_eq!(violations_after(|h| h.emit_requests.push(unsure("never arrived"))), []);
    assert_eq!(violations_after(|h| h.emit_requests[0].acknowledged_events = None), []);
}

#[test]
fn a_missing_acknowledged_event_is_lost() {
    assert_contains_violation(&violations_after(|h| drop(h.journal_entries.remove(0))), |f| {
        *f == Violation::LostEvent { name: "one".into() }
    });
}

#[test]
fn events_emitted_by_a_done_task_must_be_stored() {
    let effect = |name: &str| EmitRequest {
        events: vec![sample_event(name)],
        newest_acknowledged_id_before: 0,
        acknowledged_events: None,
        emitted_by_handler: true,
    };
    assert_eq!(violations_after(|h| h.emit_requests[0] = effect("one")), []);
    assert_contains_violation(&violations_after(|h| h.emit_requests.push(effect("none"))), |f| {
        *f == Violation::LostEvent { name: "none".into() }
    });
}

#[test]
fn an_event_stored_twice_is_a_duplicate() {
    let twice = |h: &mut History| {
        h.journal_entries.push(FinalJournalEntry { id: 40, prev: Some(30), event: sample_event("one") })
    };
    assert_contains_violation(&violations_after(twice), |f| {
        *f == Violation::DuplicateEvent { name: "one".into(), ids: vec![10, 40] }
    });
}

#[test]
fn a_partially_stored_request_is_found_even_if_unacknowledged() {
    let half = |h: &mut History| {
        h.emit_requests[1].acknowledged_events = None;
        h.journal_entries.pop();
    };
    assert_contains_violation(
        &violations_after(half),
        |f| matches!(f, Violation::PartialRequest { ids, .. } if *ids == [20]),
    );
}

#[test]
fn events_that_were_not_sent_or_were_changed_are_unexpected() {
    assert_contains_violation(&violations_after(|h| h.journal_entries[2].event.name = "else".into()), |f| {
        *f == Violation::UnexpectedEvent { id: 30 }
    });
    assert_contains_violation(
        &violations_after(|h| h.journal_entries[2].event.event_type = "a.c".into()),
        |f| *f == Violation::UnexpectedEvent { id: 30 },
    );
}

#[test]
fn an_acknowledgement_that_differs_from_the_journal_is_found() {
    let altered_prev =
        |h: &mut History| h.emit_requests[0].acknowledged_events.as_mut().unwrap()[0].prev = Some(3);
    assert_contains_violation(&violations_after(altered_prev), |f| {
        matches!(f, Violation::DiffersFromAcknowledgement { id: 10, .. })
    });
    let task = |h: &mut History| {
        h.emit_requests[0].acknowledged_events.as_mut().unwrap()[0].task_ids[0] = "y-20".into()
    };
    assert_contains_violation(&violations_after(task), |f| {
        matches!(f, Violation::DiffersFromAcknowledgement { id: 10, .. })
    });
}

#[test]
fn ids_that_do_not_ascend_are_found() {
    assert_contains_violation(&violations_after(|h| h.journal_entries.swap(0, 1)), |f| {
        matches!(f, Violation::IdNotAscending { id: 10, after: 20, .. })
    });
    let below = |h: &mut History| h.emit_requests[1].newest_acknowledged_id_before = 25;
    assert_contains_violation(&violations_after(below), |f| {
        matches!(f, Violation::IdNotAscending { id: 20, after: 25, .. })
    });
}

#[test]
fn a_wrong_id_of_the_previous_event_is_found() {
    assert_contains_violation(&violations_after(|h| h.journal_entries[2].prev = Some(10)), |f| {
        matches!(f, Violation::WrongPrev { id: 30, actual: Some(10), expected: Some(20), .. })
    });
}

#[test]
fn readers_must_see_engine_events_too() {
    assert_eq!(
        violations_after(|h| h.engine_event_ids = vec![15]),
        [Violation::WrongReaderLog { reader: "r".into(), id: 15 }]
    );
    let read =
        |h: &mut History| (h.engine_event_ids, h.reader_logs[0].event_ids) = (vec![15], vec![10, 15, 20, 30]);
    assert_eq!(violations_after(read), []);
}

#[test]
fn readers_that_missed_repeated_or_invented_an_event_are_found() {
    for (ids, at) in [
        (vec![10, 30], 20),
        (vec![10, 20], 30),
        (vec![10, 20, 20, 30], 20),
        (vec![20, 10, 30], 10),
        (vec![10, 15, 20, 30], 15),
        (vec![10, 20, 30, 40], 40),
    ] {
        let found = violations_after(|h| h.reader_logs[0].event_ids = ids.clone());
        assert_eq!(found, [Violation::WrongReaderLog { reader: "r".into(), id: at }], "{ids:?}");
    }
    assert_eq!(
        violations_after(|h| h.reader_logs[0].gap_count = 1),
        [Violation::GapReported { reader: "r".into() }]
    );
}

#[test]
fn missing_duplicate_and_unfinished_tasks_are_found() {
    assert_contains_violation(&violations_after(|h| drop(h.tasks.remove(0))), |f| {
        matches!(f, Violation::WrongTasks { event: 10, .. })
    });
    let double = |h: &mut History| h.tasks.push(FinalTask { id: "again".into(), ..h.tasks[0].clone() });
    assert_contains_violation(&violations_after(double), |f| {
        matches!(f, Violation::WrongTasks { event: 10, .. })
    });
    let orphan = |h: &mut History| h.tasks.push(FinalTask { event_id: 11, ..h.tasks[0].clone() });
    assert_contains_violation(&violations_after(orphan), |f| {
        matches!(f, Violation::WrongTasks { event: 11, .. })
    });
    assert_contains_violation(&violations_after(|h| h.tasks[0].state = "error".into()), |f| {
        matches!(f, Violation::TaskNotDone { .. })
    });
}

#[test]
fn missing_and_misrouted_deliveries_are_found() {
    let gone = |h: &mut History| h.deliveries.retain(|d| (d.handler.as_str(), d.event_id) != ("x", 20));
    assert_contains_violation(&violations_after(gone), |f| {
        *f == Violation::NotDelivered { handler: "x".into(), event: 20 }
    });
    assert_contains_violation(&violations_after(|h| h.deliveries[0].end_position = None), |f| {
        matches!(f, Violation::NotDelivered { event: 10, .. })
    });
    let stray = |h: &mut History| h.deliveries.push(sample_delivery("z", 10, None, 99));
    assert_contains_violation(&violations_after(stray), |f| {
        *f == Violation::Misdelivered { handler: "z".into(), event: 10 }
    });
}

#[test]
fn lanes_out_of_order_or_in_parallel_are_found() {
    let swapped = |h: &mut History| {
        let (first, second) = (h.deliveries[0].clone(), h.deliveries[2].clone());
        h.deliveries[0].start_position = second.start_position;
        h.deliveries[0].end_position = second.end_position;
        h.deliveries[2].start_position = first.start_position;
        h.deliveries[2].end_position = first.end_position;
    };
    let wanted = Violation::OutOfOrder { handler: "x".into(), first: 10, second: 20 };
    assert_contains_violation(&violations_after(swapped), |f| *f == wanted);
    let together = |h: &mut History| h.deliveries[0].end_position = Some(h.deliveries[2].start_position + 1);
    assert_contains_violation(&violations_after(together), |f| *f == wanted);
}

#[test]
fn a_delayed_request_of_a_killed_server_is_not_out_of_order() {
    // The event was sent again with a new fence and ended; the first sending arrives after the next event.
    let late = |h: &mut History| {
        h.deliveries[0].attempt = 2;
        h.deliveries[0].fence = 50;
        let straggler =
            RecordedDelivery { fence: 49, end_position: None, ..sample_delivery("x", 10, None, 20) };
        h.deliveries.push(straggler);
    };
    assert_eq!(violations_after(late), []);
}

#[test]
fn repeated_deliveries_are_limited_consistent_and_distinct() {
    let again = |h: &mut History, count: u64| {
        for n in 0..count {
            let repeat = sample_delivery("x", 30, Some(20), 30 + n * 2);
            h.deliveries.push(RecordedDelivery { attempt: 2 + n as u32, ..repeat });
        }
    };
    assert_eq!(violations_after(|h| again(h, 2)), []);
    assert_eq!(
        violations_after(|h| again(h, 3)),
        [Violation::TooManyRedeliveries { repeats: 3, max_repeats: 2 }]
    );
    let other = |h: &mut History| {
        again(h, 1);
        h.deliveries.last_mut().unwrap().prev = Some(10);
    };
    assert_contains_violation(&violations_after(other), |f| {
        matches!(f, Violation::WrongPrev { id: 30, actual: Some(10), .. })
    });
    let same = |h: &mut History| h.deliveries.push(RecordedDelivery { fence: 90, ..h.deliveries[5].clone() });
    assert_contains_violation(&violations_after(same), |f| {
        matches!(f, Violation::RepeatedAttempt { event: 30, attempt: 1, .. })
    });
    let unsent = |h: &mut History| h.deliveries[4].prev_sent = Some(Some(10));
    assert_contains_violation(&violations_after(unsent), |f| {
        matches!(f, Violation::WrongPrev { id: 30, actual: Some(10), .. })
    });
}
