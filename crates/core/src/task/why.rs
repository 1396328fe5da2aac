//! Why a task is not running: the gates it has to pass, in order, each with its verdict and what holds it.
//!
//! A store gathers the [`Facts`]; what they mean, and in which words, is decided here, so that every store says
//! the same.

use serde::{Deserialize, Serialize};

use super::{State, Status, TaskId};
use crate::limit::{Limits, Opening, Pace};
use crate::{HandlerName, Rule, Timestamp};

/// Something a task has to pass before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    pub gate: GateKind,
    pub open: bool,
    /// In words: what was looked at and what holds it.
    pub detail: String,
    /// When it opens by itself, if that is known.
    pub until: Option<Timestamp>,
    /// The tasks that hold it.
    pub tasks: Vec<TaskId>,
    /// The rule that holds it.
    pub rule: Option<Rule>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// Its handler is defined.
    Handler,
    /// The event's synchronous handlers have had their turn.
    Sync,
    /// It is the first of its lane.
    Lane,
    /// Its order goes on: it is not suspended, and neither its chain nor its node is stopped.
    Order,
    /// Its time has come.
    Due,
    /// No rule holds it.
    Rule,
    /// Not too many of its object's tasks run.
    ConcurrencyPerKey,
    /// Not too many of its handler's tasks run.
    Concurrency,
    /// Its handler has not begun too many of late.
    Rate,
    /// Its target is not left alone.
    Target,
    /// Somebody lives who can run it.
    Worker,
    /// Its turn has come.
    Turn,
}

/// What a store knows of a task that waits.
#[derive(Clone, Debug)]
pub struct Facts {
    pub state: State,
    pub handler: HandlerName,
    pub defined: bool,
    pub pull: bool,
    /// The synchronous task of the same event that it waits for.
    pub sync: Option<(TaskId, Status)>,
    /// The task before it in its lane that it waits for.
    pub lane: Option<(TaskId, Status)>,
    /// What keeps the order back whose step it is, in words.
    pub order: Option<String>,
    pub rules: Vec<Rule>,
    pub limits: Limits,
    pub pace: Pace,
    /// How many of the handler's tasks run, and some of them.
    pub running: u32,
    pub runners: Vec<TaskId>,
    /// Those of the same object that take all the places it may have.
    pub crowd: Vec<TaskId>,
    /// Nodes that live and can run it, by name.
    pub nodes: Vec<String>,
    /// When a worker last asked for tasks of this handler.
    pub asked: Option<Timestamp>,
    /// How many tasks of its queue come before it, counted up to [`MOST_AHEAD`].
    pub ahead: u64,
}

/// Tasks ahead are counted no further than this.
pub const MOST_AHEAD: u64 = 1000;

/// A worker that asked within this many seconds is taken to be there.
const LATELY: u64 = 60;

/// The gates in the order in which they are passed.
pub fn explain(facts: &Facts, now: Timestamp) -> Vec<Gate> {
    match facts.state {
        State::Locked(_) | State::Done => return vec![],
        State::Error { halts: false, .. } => return vec![],
        State::New { .. } | State::Scheduled | State::Missing { .. } | State::Error { .. } => {}
    }
    let mut gates = vec![handler(facts), sync(facts), lane(facts)];
    gates.extend(facts.order.iter().map(|why| Gate::closed(GateKind::Order, why)));
    gates.push(due(facts, now));
    gates.extend(rules(facts));
    gates.extend(limits(facts, now));
    gates.push(worker(facts, now));
    gates.push(turn(facts, gates.iter().all(|gate| gate.open)));
    gates
}

impl Gate {
    fn open(gate: GateKind, detail: impl Into<String>) -> Self {
        Self { gate, open: true, detail: detail.into(), until: None, tasks: vec![], rule: None }
    }

    fn closed(gate: GateKind, detail: impl Into<String>) -> Self {
        Self { open: false, ..Self::open(gate, detail) }
    }
}

fn handler(facts: &Facts) -> Gate {
    let name = &facts.handler;
    match (facts.state, facts.defined) {
        (State::Error { .. }, _) => Gate::closed(
            GateKind::Handler,
            "it failed for good and holds its lane; retry it, or cancel it to let the lane go on",
        ),
        (State::Missing { .. }, true) => Gate::closed(
            GateKind::Handler,
            format!("{name} was gone for a while and is defined again; adopt its missing tasks"),
        ),
        (_, true) => Gate::open(GateKind::Handler, format!("{name} is defined")),
        (_, false) => Gate::closed(GateKind::Handler, format!("{name} is not defined")),
    }
}

fn sync(facts: &Facts) -> Gate {
    match &facts.sync {
        None => Gate::open(GateKind::Sync, "no synchronous handler comes before it"),
        Some((task, status)) => Gate {
            tasks: vec![task.clone()],
            ..Gate::closed(
                GateKind::Sync,
                format!(
                    "waits for the first attempt of the synchronous task {task}, which stands in `{}`",
                    status.as_str()
                ),
            )
        },
    }
}

fn lane(facts: &Facts) -> Gate {
    match &facts.lane {
        None => Gate::open(GateKind::Lane, "no task of the same object comes before it"),
        Some((task, status)) => Gate {
            tasks: vec![task.clone()],
            ..Gate::closed(
                GateKind::Lane,
                format!("waits for {task} of the same object, which stands in `{}`", status.as_str()),
            )
        },
    }
}

fn due(facts: &Facts, now: Timestamp) -> Gate {
    match facts.state {
        State::New { due } | State::Missing { due } if due > now => {
            Gate { until: Some(due), ..Gate::closed(GateKind::Due, format!("due at {due}")) }
        }
        _ => Gate::open(GateKind::Due, "its time has come"),
    }
}

fn rules(facts: &Facts) -> Vec<Gate> {
    if facts.rules.is_empty() {
        return vec![Gate::open(GateKind::Rule, "no rule holds it")];
    }
    let gates = facts.rules.iter().map(|rule| {
        let why = if rule.reason.is_empty() { String::new() } else { format!(": {}", rule.reason) };
        let detail = format!("a {} by {} since {}{why}", rule.kind.as_str(), rule.by, rule.since);
        Gate { rule: Some(rule.clone()), ..Gate::closed(GateKind::Rule, detail) }
    });
    gates.collect()
}

fn limits(facts: &Facts, now: Timestamp) -> Vec<Gate> {
    let Facts { limits, pace, running, .. } = facts;
    let mut gates = Vec::new();
    if let Some(most) = limits.concurrency_per_key {
        gates.push(match facts.crowd.is_empty() {
            true => Gate::open(GateKind::ConcurrencyPerKey, format!("fewer than {most} of its object's run")),
            false => Gate {
                tasks: facts.crowd.clone(),
                ..Gate::closed(GateKind::ConcurrencyPerKey, format!("{most} of its object's have their turn"))
            },
        });
    }
    let opening = pace.opening(limits, *running, now);
    gates.push(match (opening, limits.concurrency) {
        (Opening::Full, _) if pace.ailing() => Gate {
            tasks: facts.runners.clone(),
            ..Gate::closed(
                GateKind::Concurrency,
                "the target keeps failing and is tried by one task at a time",
            )
        },
        (Opening::Full, most) => Gate {
            tasks: facts.runners.clone(),
            ..Gate::closed(
                GateKind::Concurrency,
                format!("{running} of at most {} run", most.unwrap_or(*running)),
            )
        },
        (_, Some(most)) => Gate::open(GateKind::Concurrency, format!("{running} of at most {most} run")),
        (_, None) => Gate::open(GateKind::Concurrency, "no limit"),
    });
    gates.push(match (opening, limits.rate) {
        (Opening::Paced(until), Some(rate)) => Gate {
            until: Some(until),
            ..Gate::closed(GateKind::Rate, format!("{rate} is used up; the next may begin at {until}"))
        },
        (_, Some(rate)) => Gate::open(GateKind::Rate, format!("within {rate}")),
        (_, None) => Gate::open(GateKind::Rate, "no limit"),
    });
    gates.extend(target(pace, opening));
    gates
}

/// None where no attempt has told of a target that is unwell or busy: most handlers have no target at all.
fn target(pace: &Pace, opening: Opening) -> Option<Gate> {
    let nothing_told = Pace { next: pace.next, ..Pace::default() };
    match opening {
        Opening::Quiet(until) => {
            let why = match pace.failures {
                0 => "it asked to be left alone".to_owned(),
                n => format!("it failed {n} times in a row"),
            };
            let detail = format!("the target is left alone until {until}: {why}");
            Some(Gate { until: Some(until), ..Gate::closed(GateKind::Target, detail) })
        }
        Opening::Open(_) | Opening::Full | Opening::Paced(_) => (*pace != nothing_told)
            .then(|| Gate::open(GateKind::Target, "the target is not left alone any more")),
    }
}

fn worker(facts: &Facts, now: Timestamp) -> Gate {
    let name = &facts.handler;
    if facts.pull {
        return match facts.asked {
            Some(at) if now.since(at).as_secs() <= LATELY => {
                Gate::open(GateKind::Worker, format!("a worker last asked for {name} at {at}"))
            }
            Some(at) => Gate::closed(
                GateKind::Worker,
                format!("no worker has asked for {name} since {at}; start one that claims it"),
            ),
            None => Gate::closed(
                GateKind::Worker,
                format!("no worker has asked for {name} yet; start one that claims it"),
            ),
        };
    }
    match facts.nodes.is_empty() {
        true => Gate::closed(GateKind::Worker, format!("no live node can run {name}")),
        false => Gate::open(GateKind::Worker, format!("{} can run it", facts.nodes.join(", "))),
    }
}

fn turn(facts: &Facts, all_open: bool) -> Gate {
    let ahead = match facts.ahead {
        0 => "it is the next of its queue".to_owned(),
        1 => "one task of its queue comes before it".to_owned(),
        MOST_AHEAD => format!("{MOST_AHEAD} tasks of its queue or more come before it"),
        n => format!("{n} tasks of its queue come before it"),
    };
    match (facts.state, all_open) {
        (State::Scheduled, _) => Gate::open(GateKind::Turn, "it has been chosen for the next free slot"),
        (_, true) if facts.pull => {
            Gate::closed(GateKind::Turn, format!("waits for a worker to take it; {ahead}"))
        }
        (_, true) => Gate::closed(GateKind::Turn, format!("waits for a free slot; {ahead}")),
        // Whose turn it is matters only among those that could run.
        (_, false) => Gate::open(GateKind::Turn, format!("not looked at yet; {ahead}")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Place, RuleKind};

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn facts() -> Facts {
        Facts {
            state: State::New { due: NOW },
            handler: HandlerName::new("index").unwrap(),
            defined: true,
            pull: false,
            sync: None,
            lane: None,
            order: None,
            rules: vec![],
            limits: Limits::default(),
            pace: Pace::default(),
            running: 0,
            runners: vec![],
            crowd: vec![],
            nodes: vec!["a".into()],
            asked: None,
            ahead: 0,
        }
    }

    fn closed(facts: &Facts) -> Vec<GateKind> {
        explain(facts, NOW).into_iter().filter(|gate| !gate.open).map(|gate| gate.gate).collect()
    }

    #[test]
    fn a_task_that_could_run_waits_for_its_turn() {
        assert_eq!(closed(&facts()), [GateKind::Turn]);
        assert_eq!(closed(&Facts { state: State::Scheduled, ..facts() }), []);
    }

    #[test]
    fn every_gate_names_what_holds_it() {
        let rule = Rule {
            kind: RuleKind::Pause,
            place: Place::Handler(facts().handler),
            tenant: None,
            by: "ops".into(),
            reason: "broken".into(),
            since: NOW,
        };
        let block = Rule { kind: RuleKind::Block, ..rule.clone() };
        let other = TaskId::from_text("index_record_1");
        let due = NOW.plus(Duration::from_secs(60));
        let facts = Facts {
            state: State::New { due },
            lane: Some((other.clone(), Status::Locked)),
            rules: vec![rule, block],
            limits: Limits { concurrency: Some(1), rate: "1/m".parse().ok(), ..Limits::default() },
            running: 1,
            runners: vec![other.clone()],
            nodes: vec![],
            ..facts()
        };
        use GateKind::{Concurrency, Due, Lane, Rule as Held, Worker};
        assert_eq!(closed(&facts), [Lane, Due, Held, Held, Concurrency, Worker]);
        let gates = explain(&facts, NOW);
        let find = |kind| gates.iter().find(|gate| gate.gate == kind).unwrap();
        assert_eq!(find(Lane).tasks, std::slice::from_ref(&other));
        assert_eq!(find(Concurrency).tasks, [other]);
        assert_eq!(find(Due).until, Some(due));
        assert!(find(Held).detail.contains("ops") && find(Held).detail.contains("broken"));
    }

    #[test]
    fn a_target_is_a_gate_only_where_one_was_told_of() {
        let find = |pace| {
            let gates = explain(&Facts { pace, ..facts() }, NOW);
            gates.into_iter().find(|gate| gate.gate == GateKind::Target).map(|gate| gate.open)
        };
        assert_eq!(find(Pace { next: NOW, ..Pace::default() }), None, "a rate says nothing of a target");
        assert_eq!(find(Pace { failures: 1, ..Pace::default() }), Some(true));
        let until = NOW.plus(Duration::from_secs(60));
        assert_eq!(find(Pace { quiet_until: until, quiet_since: NOW, ..Pace::default() }), Some(false));
    }

    #[test]
    fn what_has_ended_or_runs_has_no_gates() {
        let lease = super::super::Lease { node: 1, fence: 1, since: NOW, until: None };
        for state in [State::Done, State::Locked(lease)] {
            assert!(explain(&Facts { state, ..facts() }, NOW).is_empty());
        }
    }

    #[test]
    fn a_pulled_task_waits_for_a_worker_that_asks() {
        let pulled = Facts { pull: true, ..facts() };
        assert_eq!(closed(&pulled), [GateKind::Worker]);
        assert_eq!(closed(&Facts { asked: Some(NOW), ..pulled }), [GateKind::Turn]);
    }
}
