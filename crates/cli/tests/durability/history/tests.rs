//! Histories that are wrong on purpose: the checker must find each fault, and none where there is none.

use super::*;

const OBJECT: &str = "record:1";

fn sent(name: &str) -> Sent {
    Sent { name: name.into(), kind: "a.b".into(), key: Some(OBJECT.into()) }
}

fn delivery(handler: &str, event: u64, prev: Option<u64>, began: u64) -> Delivery {
    Delivery {
        handler: handler.into(),
        event,
        prev,
        prev_sent: Some(prev),
        attempt: 1,
        fence: began,
        began,
        ended: Some(began + 1),
    }
}

/// Three events of one object, each for two handlers, read by one reader; the last two in one request.
fn good() -> History {
    let routes = BTreeMap::from([("a.b".to_owned(), vec!["x".to_owned(), "y".to_owned()])]);
    let mut history = History { routes, kills: 1, slots: 2, ..History::default() };
    let chain = [(10, None, "one"), (20, Some(10), "two"), (30, Some(20), "three")];
    let mut acknowledged = vec![];
    for (index, (id, prev, name)) in chain.into_iter().enumerate() {
        history.journal.push(Entry { id, prev, event: sent(name) });
        let tasks: Vec<String> = ["x", "y"].map(|handler| format!("{handler}-{id}")).into();
        for (offset, handler) in ["x", "y"].into_iter().enumerate() {
            let (task, event, state) = (tasks[offset].clone(), id, "done".into());
            history.tasks.push(TaskEnd { id: task, event, handler: handler.into(), state });
            let began = (index * 4 + offset * 2) as u64;
            history.deliveries.push(delivery(handler, id, prev, began));
        }
        acknowledged.push(Acknowledged { id, prev, tasks });
    }
    let rest = acknowledged.split_off(1);
    history.emits = vec![
        Emit { events: vec![sent("one")], floor: 0, acknowledged: Some(acknowledged), effect: false },
        Emit { events: vec![sent("two"), sent("three")], floor: 10, acknowledged: Some(rest), effect: false },
    ];
    history.readings = vec![Reading { reader: "r".into(), ids: vec![10, 20, 30], torn: 0 }];
    history
}

/// The faults of a good history after something was done to it.
fn faults(spoil: impl FnOnce(&mut History)) -> Vec<Fault> {
    let mut history = good();
    spoil(&mut history);
    history.faults()
}

fn has(faults: &[Fault], is: impl Fn(&Fault) -> bool) {
    assert!(faults.iter().any(is), "not found among {faults:?}");
}

#[test]
fn a_good_history_has_no_faults() {
    assert_eq!(good().faults(), []);
}

#[test]
fn what_was_not_acknowledged_may_be_missing_or_there_once() {
    let unsure = |name: &str| Emit { events: vec![sent(name)], floor: 0, acknowledged: None, effect: false };
    assert_eq!(faults(|h| h.emits.push(unsure("never arrived"))), []);
    assert_eq!(faults(|h| h.emits[0].acknowledged = None), []);
}

#[test]
fn an_acknowledged_event_that_is_gone_is_lost() {
    has(&faults(|h| drop(h.journal.remove(0))), |f| *f == Fault::Lost { name: "one".into() });
}

#[test]
fn what_a_done_task_emitted_is_there() {
    let effect = |name: &str| Emit { events: vec![sent(name)], floor: 0, acknowledged: None, effect: true };
    assert_eq!(faults(|h| h.emits[0] = effect("one")), []);
    has(&faults(|h| h.emits.push(effect("none"))), |f| *f == Fault::Lost { name: "none".into() });
}

#[test]
fn an_event_that_is_there_twice_is_doubled() {
    let twice = |h: &mut History| h.journal.push(Entry { id: 40, prev: Some(30), event: sent("one") });
    has(&faults(twice), |f| *f == Fault::Doubled { name: "one".into(), ids: vec![10, 40] });
}

#[test]
fn half_a_request_is_found_even_if_nobody_was_told_of_it() {
    let half = |h: &mut History| {
        h.emits[1].acknowledged = None;
        h.journal.pop();
    };
    has(&faults(half), |f| matches!(f, Fault::TornApart { ids, .. } if *ids == [20]));
}

#[test]
fn events_that_nobody_sent_or_that_changed_are_foreign() {
    has(&faults(|h| h.journal[2].event.name = "else".into()), |f| *f == Fault::Foreign { id: 30 });
    has(&faults(|h| h.journal[2].event.kind = "a.c".into()), |f| *f == Fault::Foreign { id: 30 });
}

#[test]
fn an_answer_that_the_journal_does_not_bear_out_is_found() {
    let told = |h: &mut History| h.emits[0].acknowledged.as_mut().unwrap()[0].prev = Some(3);
    has(&faults(told), |f| matches!(f, Fault::Altered { id: 10, .. }));
    let task = |h: &mut History| h.emits[0].acknowledged.as_mut().unwrap()[0].tasks[0] = "y-20".into();
    has(&faults(task), |f| matches!(f, Fault::Altered { id: 10, .. }));
}

#[test]
fn ids_that_do_not_ascend_are_found() {
    has(&faults(|h| h.journal.swap(0, 1)), |f| matches!(f, Fault::NotAscending { id: 10, after: 20, .. }));
    let below = |h: &mut History| h.emits[1].floor = 25;
    has(&faults(below), |f| matches!(f, Fault::NotAscending { id: 20, after: 25, .. }));
}

#[test]
fn a_broken_chain_is_found() {
    has(&faults(|h| h.journal[2].prev = Some(10)), |f| {
        matches!(f, Fault::WrongPrev { id: 30, told: Some(10), really: Some(20), .. })
    });
}

#[test]
fn what_the_server_tells_of_itself_is_read_like_all_else() {
    assert_eq!(faults(|h| h.told = vec![15]), [Fault::Misread { reader: "r".into(), id: 15 }]);
    let read = |h: &mut History| (h.told, h.readings[0].ids) = (vec![15], vec![10, 15, 20, 30]);
    assert_eq!(faults(read), []);
}

#[test]
fn readers_that_missed_doubled_or_imagined_something_are_found() {
    for (ids, at) in [
        (vec![10, 30], 20),
        (vec![10, 20], 30),
        (vec![10, 20, 20, 30], 20),
        (vec![20, 10, 30], 10),
        (vec![10, 15, 20, 30], 15),
        (vec![10, 20, 30, 40], 40),
    ] {
        let found = faults(|h| h.readings[0].ids = ids.clone());
        assert_eq!(found, [Fault::Misread { reader: "r".into(), id: at }], "{ids:?}");
    }
    assert_eq!(faults(|h| h.readings[0].torn = 1), [Fault::Torn { reader: "r".into() }]);
}

#[test]
fn tasks_that_are_missing_double_or_not_done_are_found() {
    has(&faults(|h| drop(h.tasks.remove(0))), |f| matches!(f, Fault::WrongTasks { event: 10, .. }));
    let double = |h: &mut History| h.tasks.push(TaskEnd { id: "again".into(), ..h.tasks[0].clone() });
    has(&faults(double), |f| matches!(f, Fault::WrongTasks { event: 10, .. }));
    let orphan = |h: &mut History| h.tasks.push(TaskEnd { event: 11, ..h.tasks[0].clone() });
    has(&faults(orphan), |f| matches!(f, Fault::WrongTasks { event: 11, .. }));
    has(&faults(|h| h.tasks[0].state = "error".into()), |f| matches!(f, Fault::NotDone { .. }));
}

#[test]
fn deliveries_that_are_missing_or_strayed_are_found() {
    let gone = |h: &mut History| h.deliveries.retain(|d| (d.handler.as_str(), d.event) != ("x", 20));
    has(&faults(gone), |f| *f == Fault::NotDelivered { handler: "x".into(), event: 20 });
    has(&faults(|h| h.deliveries[0].ended = None), |f| matches!(f, Fault::NotDelivered { event: 10, .. }));
    let stray = |h: &mut History| h.deliveries.push(delivery("z", 10, None, 99));
    has(&faults(stray), |f| *f == Fault::Misdelivered { handler: "z".into(), event: 10 });
}

#[test]
fn a_lane_that_ran_out_of_order_or_two_at_a_time_is_found() {
    let swapped = |h: &mut History| {
        let (first, second) = (h.deliveries[0].clone(), h.deliveries[2].clone());
        h.deliveries[0].began = second.began;
        h.deliveries[0].ended = second.ended;
        h.deliveries[2].began = first.began;
        h.deliveries[2].ended = first.ended;
    };
    let wanted = Fault::OutOfOrder { handler: "x".into(), first: 10, second: 20 };
    has(&faults(swapped), |f| *f == wanted);
    let together = |h: &mut History| h.deliveries[0].ended = Some(h.deliveries[2].began + 1);
    has(&faults(together), |f| *f == wanted);
}

#[test]
fn a_straggler_of_a_dead_server_is_no_disorder() {
    // The event was sent again with a new fence and ended; the first sending arrives after the next event.
    let late = |h: &mut History| {
        h.deliveries[0].attempt = 2;
        h.deliveries[0].fence = 50;
        let straggler = Delivery { fence: 49, ended: None, ..delivery("x", 10, None, 20) };
        h.deliveries.push(straggler);
    };
    assert_eq!(faults(late), []);
}

#[test]
fn repeats_are_bounded_told_alike_and_told_apart() {
    let again = |h: &mut History, count: u64| {
        for n in 0..count {
            let repeat = delivery("x", 30, Some(20), 30 + n * 2);
            h.deliveries.push(Delivery { attempt: 2 + n as u32, ..repeat });
        }
    };
    assert_eq!(faults(|h| again(h, 2)), []);
    assert_eq!(faults(|h| again(h, 3)), [Fault::Repeated { repeats: 3, most: 2 }]);
    let other = |h: &mut History| {
        again(h, 1);
        h.deliveries.last_mut().unwrap().prev = Some(10);
    };
    has(&faults(other), |f| matches!(f, Fault::WrongPrev { id: 30, told: Some(10), .. }));
    let same = |h: &mut History| h.deliveries.push(Delivery { fence: 90, ..h.deliveries[5].clone() });
    has(&faults(same), |f| matches!(f, Fault::SameAttempt { event: 30, attempt: 1, .. }));
    let unsent = |h: &mut History| h.deliveries[4].prev_sent = Some(Some(10));
    has(&faults(unsent), |f| matches!(f, Fault::WrongPrev { id: 30, told: Some(10), .. }));
}
