//! Every order of every part of small histories, against a model that knows sets of events and nothing of marks.

use std::collections::BTreeSet;

use super::*;

/// When what is in hand is done.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    AtOnce,
    /// One of them, after the next arrival.
    OneLater,
    AtTheEnd,
}

/// What a consumer would write down who trusts nobody.
#[derive(Debug, Default)]
struct Model {
    handled: Vec<Event>,
    in_hand: Vec<Event>,
    waiting: Vec<Event>,
    skipped: BTreeSet<EventId>,
}

impl Model {
    fn settled(&self, id: EventId) -> bool {
        self.skipped.contains(&id) || self.handled.iter().any(|event| event.id == id)
    }

    fn expect(&self, event: &Event, limits: Limits) -> Verdict<u64> {
        let held = |events: &[Event]| events.iter().any(|held| held.id == event.id);
        let here = self.waiting.iter().filter(|waiting| waiting.object == event.object).count();
        if self.settled(event.id) || held(&self.in_hand) || held(&self.waiting) {
            Verdict::Duplicate
        } else if event.prev.is_none_or(|prev| self.settled(prev)) {
            Verdict::Ready(event.clone())
        } else if self.waiting.len() >= limits.waiting || here >= limits.waiting_per_object {
            hole(event.clone(), Why::Full)
        } else {
            Verdict::Wait
        }
    }
}

/// A gate beside its model.
struct Run {
    gate: Gate<u64, InMemory>,
    limits: Limits,
    model: Model,
    /// What was given back because there was no room.
    refused: Vec<Event>,
}

impl Run {
    fn new(limits: Limits) -> Self {
        let gate = Gate::new(InMemory::default()).limits(limits);
        Self { gate, limits, model: Model::default(), refused: vec![] }
    }

    fn arrive(&mut self, event: &Event) {
        let expected = self.model.expect(event, self.limits);
        let verdict = self.gate.arrive(event.clone(), now()).unwrap();
        assert_eq!(verdict, expected, "{event:?} after {:?}", self.model);
        match verdict {
            Verdict::Ready(event) => self.model.in_hand.push(event),
            Verdict::Wait => self.model.waiting.push(event.clone()),
            Verdict::Hole(hole) => self.refused.push(hole.event),
            Verdict::Duplicate => {}
        }
        self.check_room();
    }

    fn check_room(&self) {
        assert_eq!(self.gate.waiting(), self.model.waiting.len());
        assert!(self.gate.waiting() <= self.limits.waiting);
    }

    /// Ends the handling of the one that has been in hand longest.
    fn done(&mut self) {
        let event = self.model.in_hand.remove(0);
        self.model.handled.push(event.clone());
        let follows = |waiting: &Event| waiting.object == event.object && waiting.prev == Some(event.id);
        let expected: Vec<Event> = self.model.waiting.extract_if(.., |waiting| follows(waiting)).collect();
        let verdicts = self.gate.done(&event).unwrap();
        assert_eq!(verdicts, expected.iter().cloned().map(Verdict::Ready).collect::<Vec<_>>());
        self.model.in_hand.extend(expected);
        self.check_room();
    }

    fn finish(&mut self) {
        while !self.model.in_hand.is_empty() {
            self.done();
        }
    }

    /// Lets what was refused come again, and goes on behind every hole, the oldest first.
    fn skip_all(&mut self, history: &[Event]) {
        loop {
            for event in std::mem::take(&mut self.refused) {
                self.arrive(&event);
            }
            self.finish();
            let stuck = self.model.waiting.iter().chain(&self.refused).min_by_key(|event| event.id);
            let Some(first) = stuck.cloned() else { break };
            if let Verdict::Ready(_) = self.model.expect(&first, self.limits) {
                continue;
            }
            self.skip(&first, history);
        }
    }

    fn skip(&mut self, to: &Event, history: &[Event]) {
        let object = to.object.as_ref().unwrap();
        let waited = self.model.waiting.extract_if(.., |event| event.id == to.id).count();
        let late = self.gate.overdue(now() + self.limits.patience * 2);
        let told = late.iter().filter(|gap| Some(gap.prev) == to.prev && gap.waiting[0] == to.id).count();
        assert_eq!(told, waited, "{to:?} in {late:?}");
        let verdicts = self.gate.skip(object, to.id).unwrap();
        let older = history.iter().filter(|event| event.object == to.object && event.id < to.id);
        self.model.skipped.extend(older.map(|event| event.id));
        match waited {
            0 => {
                assert_eq!(verdicts, []);
                self.arrive(to);
            }
            _ => {
                assert_eq!(verdicts, [Verdict::Ready(to.clone())]);
                self.model.in_hand.push(to.clone());
            }
        }
        self.finish();
    }
}

/// Runs arrivals, then checks what became of them.
fn run(history: &[Event], arrivals: &[Event], pace: Pace, limits: Limits) {
    let mut run = Run::new(limits);
    for event in arrivals {
        run.arrive(event);
        match pace {
            Pace::AtOnce => run.finish(),
            Pace::OneLater if run.model.in_hand.len() > 1 => run.done(),
            Pace::OneLater | Pace::AtTheEnd => {}
        }
    }
    run.finish();
    let here: BTreeSet<EventId> = arrivals.iter().map(|event| event.id).collect();
    if limits == roomy() {
        let reachable = history.iter().filter(|event| {
            let older = |other: &&Event| other.object == event.object && other.id <= event.id;
            history.iter().filter(older).all(|other| here.contains(&other.id))
        });
        assert_eq!(ids(&run.model.handled), reachable.map(|event| event.id).collect());
    }
    run.skip_all(history);
    assert_eq!(run.gate.waiting(), 0);
    for key in ["a", "b"] {
        let of_key = |event: &&Event| event.object.as_ref() == Some(&object(key));
        let order: Vec<EventId> = run.model.handled.iter().filter(of_key).map(|event| event.id).collect();
        assert!(order.is_sorted_by(|a, b| a < b), "{order:?} from {arrivals:?}");
    }
    assert_eq!(ids(&run.model.handled), here, "whatever came is handled, once: {arrivals:?}");
    for event in history {
        run.arrive(event);
    }
}

fn ids(events: &[Event]) -> BTreeSet<EventId> {
    let ids: BTreeSet<EventId> = events.iter().map(|event| event.id).collect();
    assert_eq!(ids.len(), events.len(), "each once");
    ids
}

fn run_all(count: usize, pace: Pace, limits: Limits) {
    let mut runs = 0;
    for keys in keyings(count) {
        let history = history(&keys);
        for arrangement in arrangements(&history) {
            for arrivals in doublings(&arrangement) {
                run(&history, &arrivals, pace, limits);
                runs += 1;
            }
        }
    }
    assert!(runs > 1 << count, "{runs} runs");
}

#[test]
fn every_arrival_of_five_events_that_are_done_at_once() {
    run_all(5, Pace::AtOnce, roomy());
}

#[test]
fn every_arrival_of_five_events_that_are_done_one_by_one() {
    run_all(5, Pace::OneLater, roomy());
}

#[test]
fn every_arrival_of_five_events_that_are_done_at_the_end() {
    run_all(5, Pace::AtTheEnd, roomy());
}

#[test]
fn every_arrival_where_little_may_wait() {
    for (waiting, waiting_per_object) in [(0, 100), (1, 100), (2, 100), (100, 1), (2, 1)] {
        for pace in [Pace::AtOnce, Pace::OneLater, Pace::AtTheEnd] {
            run_all(4, pace, Limits { waiting, waiting_per_object, ..roomy() });
        }
    }
}
