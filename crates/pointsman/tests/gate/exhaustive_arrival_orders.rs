//! Every arrival order of every subset of small histories, compared with a model that uses sets of events and no
//! positions.

use std::collections::BTreeSet;

use super::*;

/// When events in progress are marked done.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CompletionTiming {
    Immediately,
    /// The oldest event in progress is marked done after the next arrival.
    AfterNextArrival,
    AfterAllArrivals,
}

/// The expected state of a consumer: sets of handled, running and waiting events.
#[derive(Debug, Default)]
struct GateModel {
    handled: Vec<NumberedEvent>,
    in_progress: Vec<NumberedEvent>,
    waiting: Vec<NumberedEvent>,
    skipped: BTreeSet<EventId>,
}

impl GateModel {
    fn is_handled_or_skipped(&self, id: EventId) -> bool {
        self.skipped.contains(&id) || self.handled.iter().any(|event| event.id == id)
    }

    fn expected_decision(&self, event: &NumberedEvent, limits: GateLimits) -> GateDecision<u64> {
        let contains = |events: &[NumberedEvent]| events.iter().any(|other| other.id == event.id);
        let waiting_of_object = self.waiting.iter().filter(|waiting| waiting.object == event.object).count();
        if self.is_handled_or_skipped(event.id) || contains(&self.in_progress) || contains(&self.waiting) {
            GateDecision::Duplicate
        } else if event.prev.is_none_or(|prev| self.is_handled_or_skipped(prev)) {
            GateDecision::Ready(event.clone())
        } else if self.waiting.len() >= limits.max_waiting
            || waiting_of_object >= limits.max_waiting_per_object
        {
            returned_decision(event.clone(), ReturnReason::BufferFull)
        } else {
            GateDecision::Wait
        }
    }
}

/// A gate and its model, which receive the same events.
struct ModelCheck {
    gate: Gate<u64, InMemoryPositions>,
    limits: GateLimits,
    model: GateModel,
    /// Events that were returned because the gate was full.
    returned_events: Vec<NumberedEvent>,
}

impl ModelCheck {
    fn new(limits: GateLimits) -> Self {
        let gate = Gate::new(InMemoryPositions::default()).with_limits(limits);
        Self { gate, limits, model: GateModel::default(), returned_events: vec![] }
    }

    fn receive(&mut self, event: &NumberedEvent) {
        let expected = self.model.expected_decision(event, self.limits);
        let decision = self.gate.receive(event.clone(), now()).unwrap();
        assert_eq!(decision, expected, "{event:?} after {:?}", self.model);
        match decision {
            GateDecision::Ready(event) => self.model.in_progress.push(event),
            GateDecision::Wait => self.model.waiting.push(event.clone()),
            GateDecision::Returned(returned) => self.returned_events.push(returned.event),
            GateDecision::Duplicate => {}
        }
        self.check_waiting_count();
    }

    fn check_waiting_count(&self) {
        assert_eq!(self.gate.waiting_count(), self.model.waiting.len());
        assert!(self.gate.waiting_count() <= self.limits.max_waiting);
    }

    /// Marks the event done that has been in progress longest.
    fn mark_oldest_done(&mut self) {
        let event = self.model.in_progress.remove(0);
        self.model.handled.push(event.clone());
        let waits_for_event =
            |waiting: &NumberedEvent| waiting.object == event.object && waiting.prev == Some(event.id);
        let expected: Vec<NumberedEvent> =
            self.model.waiting.extract_if(.., |waiting| waits_for_event(waiting)).collect();
        let decisions = self.gate.mark_done(&event).unwrap();
        assert_eq!(decisions, expected.iter().cloned().map(GateDecision::Ready).collect::<Vec<_>>());
        self.model.in_progress.extend(expected);
        self.check_waiting_count();
    }

    fn mark_all_done(&mut self) {
        while !self.model.in_progress.is_empty() {
            self.mark_oldest_done();
        }
    }

    /// Passes returned events again, and skips every missing event, the oldest first.
    fn skip_all_missing_events(&mut self, history: &[NumberedEvent]) {
        loop {
            for event in std::mem::take(&mut self.returned_events) {
                self.receive(&event);
            }
            self.mark_all_done();
            let oldest_stuck =
                self.model.waiting.iter().chain(&self.returned_events).min_by_key(|event| event.id);
            let Some(first) = oldest_stuck.cloned() else { break };
            if let GateDecision::Ready(_) = self.model.expected_decision(&first, self.limits) {
                continue;
            }
            self.skip_to(&first, history);
        }
    }

    fn skip_to(&mut self, target: &NumberedEvent, history: &[NumberedEvent]) {
        let object = target.object.as_ref().unwrap();
        let waiting_count = self.model.waiting.extract_if(.., |event| event.id == target.id).count();
        let overdue = self.gate.list_overdue_missing_events(now() + self.limits.overdue_after * 2);
        let reported = overdue
            .iter()
            .filter(|missing| Some(missing.missing_id) == target.prev && missing.waiting_ids[0] == target.id)
            .count();
        assert_eq!(reported, waiting_count, "{target:?} in {overdue:?}");
        let decisions = self.gate.skip_to(object, target.id).unwrap();
        let older = history.iter().filter(|event| event.object == target.object && event.id < target.id);
        self.model.skipped.extend(older.map(|event| event.id));
        match waiting_count {
            0 => {
                assert_eq!(decisions, []);
                self.receive(target);
            }
            _ => {
                assert_eq!(decisions, [GateDecision::Ready(target.clone())]);
                self.model.in_progress.push(target.clone());
            }
        }
        self.mark_all_done();
    }
}

/// Passes the arrivals to a gate, then checks which events were handled.
fn check_arrivals(
    history: &[NumberedEvent],
    arrivals: &[NumberedEvent],
    timing: CompletionTiming,
    limits: GateLimits,
) {
    let mut model_check = ModelCheck::new(limits);
    for event in arrivals {
        model_check.receive(event);
        match timing {
            CompletionTiming::Immediately => model_check.mark_all_done(),
            CompletionTiming::AfterNextArrival if model_check.model.in_progress.len() > 1 => {
                model_check.mark_oldest_done()
            }
            CompletionTiming::AfterNextArrival | CompletionTiming::AfterAllArrivals => {}
        }
    }
    model_check.mark_all_done();
    let arrived: BTreeSet<EventId> = arrivals.iter().map(|event| event.id).collect();
    if limits == ample_limits() {
        let reachable = history.iter().filter(|event| {
            let older = |other: &&NumberedEvent| other.object == event.object && other.id <= event.id;
            history.iter().filter(older).all(|other| arrived.contains(&other.id))
        });
        assert_eq!(unique_ids(&model_check.model.handled), reachable.map(|event| event.id).collect());
    }
    model_check.skip_all_missing_events(history);
    assert_eq!(model_check.gate.waiting_count(), 0);
    for key in ["a", "b"] {
        let is_of_key = |event: &&NumberedEvent| event.object.as_ref() == Some(&object_key(key));
        let order: Vec<EventId> =
            model_check.model.handled.iter().filter(is_of_key).map(|event| event.id).collect();
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?} from {arrivals:?}");
    }
    assert_eq!(
        unique_ids(&model_check.model.handled),
        arrived,
        "every arrived event is handled once: {arrivals:?}"
    );
    for event in history {
        model_check.receive(event);
    }
}

fn unique_ids(events: &[NumberedEvent]) -> BTreeSet<EventId> {
    let ids: BTreeSet<EventId> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), events.len(), "each once");
    ids
}

fn check_all_arrivals(count: usize, timing: CompletionTiming, limits: GateLimits) {
    let mut checked = 0;
    for keys in key_assignments(count) {
        let history = build_history(&keys);
        for subset in ordered_subsets(&history) {
            for arrivals in with_one_duplicated(&subset) {
                check_arrivals(&history, &arrivals, timing, limits);
                checked += 1;
            }
        }
    }
    assert!(checked > 1 << count, "{checked} arrivals");
}

#[test]
fn all_arrival_orders_of_five_events_match_the_model_when_done_immediately() {
    check_all_arrivals(5, CompletionTiming::Immediately, ample_limits());
}

#[test]
fn all_arrival_orders_of_five_events_match_the_model_when_done_one_arrival_later() {
    check_all_arrivals(5, CompletionTiming::AfterNextArrival, ample_limits());
}

#[test]
fn all_arrival_orders_of_five_events_match_the_model_when_done_after_all_arrivals() {
    check_all_arrivals(5, CompletionTiming::AfterAllArrivals, ample_limits());
}

#[test]
fn all_arrival_orders_match_the_model_under_tight_limits() {
    for (waiting, waiting_per_object) in [(0, 100), (1, 100), (2, 100), (100, 1), (2, 1)] {
        for timing in [
            CompletionTiming::Immediately,
            CompletionTiming::AfterNextArrival,
            CompletionTiming::AfterAllArrivals,
        ] {
            check_all_arrivals(
                4,
                timing,
                GateLimits {
                    max_waiting: waiting,
                    max_waiting_per_object: waiting_per_object,
                    ..ample_limits()
                },
            );
        }
    }
}
