//! The outbox of document 001 as this store has it, in small, looked at in all its runs: `claim_objects.lua`, `requeue_objects.lua`, `read_outboxes.lua`
//! and `commit.lua` as steps of a model, with crashes, lost answers, workers that are taken for dead though they live, and
//! commands that arrive late. Then each safeguard is taken out, and what breaks is what it is for.
//!
//! A direct emit to an object for which more was left than one transaction takes commits that a piece at a time, and goes on
//! after each without beginning again. Its own event comes with the last piece.
//!
//! Not looked at: the turn to write (`begin_transaction.lua`), which only spares conflicts; what an event is made of, and what is set
//! aside because it is none; that workers and jobs share processes and transactions; keys that somebody else has changed,
//! such as an owner that does not name its object, which the sweep looks for and no script leaves behind (`OWNER_NAMES_OBJECT`).

mod actions;
mod cases;
mod outbox;
mod properties;
mod safeguards;
mod scope;
mod scripts;
mod state;
mod termination;

use std::collections::BTreeSet;

use actions::Action;
use cases::{ExpectedFailure, SafeguardCase};
use outbox::OutboxModel;
use properties::{
    COMMIT_WAS_OVERTAKEN, EMIT_JOURNALS_IN_FLIGHT_EVENT, EMIT_READ_EVENT_NOW_IN_FLIGHT,
    EMIT_REPLY_LOST_AND_OVERTAKEN, EVENT_WAS_TAKEN_OVER, EVERYTHING_IS_JOURNALED, TWO_WORKERS_BELIEVE_TO_OWN,
};
use safeguards::Safeguards;
use scope::Scope;
use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// A property that does not hold, and a run that shows it.
type Violation = (&'static str, Vec<Action>);

/// Looks at all states of a scope. Nothing may break; answers which of the examples were seen.
fn explore_all_states(name: &str, scope: Scope) -> BTreeSet<&'static str> {
    let checker = OutboxModel { scope, safeguards: Safeguards::all() }.checker().spawn_dfs().join();
    println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    assert_eq!(violated_properties(&checker), [], "{name}");
    checker.discoveries().into_keys().collect()
}

/// What does not hold, that with the shortest run first.
fn violated_properties(checker: &impl Checker<OutboxModel>) -> Vec<Violation> {
    let is_broken = |name| checker.model().property(name).expectation == Expectation::Always;
    let found = checker.discoveries().into_iter().filter(|(name, _)| is_broken(name));
    let mut broken: Vec<Violation> = found.map(|(name, path)| (name, path.into_actions())).collect();
    broken.sort_by_key(|(name, run)| (run.len(), *name));
    broken
}

#[test]
fn properties_hold_with_three_workers_on_one_object() {
    let scope = Scope::one_object(3);
    let seen = explore_all_states("three workers, a turn has one event", scope.clone());
    assert!(
        seen.is_superset(&BTreeSet::from([
            EVERYTHING_IS_JOURNALED,
            TWO_WORKERS_BELIEVE_TO_OWN,
            EVENT_WAS_TAKEN_OVER,
            COMMIT_WAS_OVERTAKEN
        ])),
        "{seen:?}"
    );
    explore_all_states("three workers, a turn has two events", Scope { max_events: 2, ..scope });
}

#[test]
fn properties_hold_with_three_workers_on_two_objects() {
    let seen = explore_all_states("two objects", Scope::two_objects(3));
    assert!(
        seen.is_superset(&BTreeSet::from([
            EVERYTHING_IS_JOURNALED,
            TWO_WORKERS_BELIEVE_TO_OWN,
            EVENT_WAS_TAKEN_OVER,
            COMMIT_WAS_OVERTAKEN
        ])),
        "{seen:?}"
    );
}

#[test]
fn properties_hold_with_late_commands_and_clock_leaps() {
    let scope = Scope { pushes: vec![vec![1, 1]], late_commands: 1, clock_leaps: 1, ..Scope::one_object(2) };
    explore_all_states("late commands", scope.clone());
    let scope = Scope { pushes: vec![vec![1]], emits: vec![0], ..scope };
    explore_all_states("late commands and a direct emit", scope);
}

#[test]
fn properties_hold_with_direct_emits() {
    let scope = Scope { pushes: vec![vec![1, 1]], emits: vec![0], ..Scope::one_object(2) };
    let seen = explore_all_states("a direct emit", scope.clone());
    let examples = BTreeSet::from([
        EVERYTHING_IS_JOURNALED,
        COMMIT_WAS_OVERTAKEN,
        EMIT_REPLY_LOST_AND_OVERTAKEN,
        EMIT_JOURNALS_IN_FLIGHT_EVENT,
        EMIT_READ_EVENT_NOW_IN_FLIGHT,
    ]);
    assert!(seen.is_superset(&examples), "{seen:?}");
    explore_all_states("two direct emits", Scope { pushes: vec![vec![1]], emits: vec![0, 0], ..scope });
}

#[test]
#[ignore = "millions of states; `cargo xtask model` looks at them"]
fn larger_scopes_hold_all_properties() {
    let (one, two) = (Scope::one_object(3), Scope::two_objects(2));
    explore_all_states(
        "two crashes and two lapses",
        Scope { crashes: 2, heartbeat_losses: 2, ..one.clone() },
    );
    explore_all_states(
        "three workers, late commands",
        Scope { late_commands: 1, clock_leaps: 1, ..one.clone() },
    );
    explore_all_states(
        "two objects, late commands",
        Scope { late_commands: 1, clock_leaps: 1, max_events: 2, ..two.clone() },
    );
    explore_all_states("two objects, a direct emit", Scope { emits: vec![0], ..two.clone() });
    explore_all_states("three events, a direct emit", Scope { emits: vec![0], ..Scope::one_object(2) });
    explore_all_states(
        "two events, two direct emits",
        Scope { pushes: vec![vec![2]], emits: vec![0, 0], ..two },
    );
}

#[test]
fn every_run_terminates() {
    let scope = Scope::one_object(2);
    for scope in [
        Scope { heartbeat_losses: 2, ..scope.clone() },
        Scope { pushes: vec![vec![2]], late_commands: 1, ..scope.clone() },
        Scope { pushes: vec![vec![2]], emits: vec![0], ..scope },
    ] {
        assert_eq!(termination::find_cycle(&OutboxModel { scope, safeguards: Safeguards::all() }), None);
    }
}

/// What breaks without a safeguard, as far as it is of the expected kind, and a run that shows it.
fn find_failure(
    scope: &Scope,
    safeguards: Safeguards,
    expected: ExpectedFailure,
) -> Option<(ExpectedFailure, Vec<Action>)> {
    let outbox = OutboxModel { scope: scope.clone(), safeguards };
    if expected == ExpectedFailure::Livelock {
        return termination::find_cycle(&outbox).map(|run| (ExpectedFailure::Livelock, run));
    }
    let ExpectedFailure::Property(expected) = expected else { return None };
    let found = HasDiscoveries::AnyOf(BTreeSet::from([expected]));
    let checker = outbox.checker().finish_when(found).spawn_bfs().join();
    let mut broken = violated_properties(&checker).into_iter();
    broken.find(|(name, _)| *name == expected).map(|(name, run)| (ExpectedFailure::Property(name), run))
}

#[test]
fn each_safeguard_is_needed() {
    let cases = cases::all_cases();
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names, Safeguards::NAMES);
    cases.iter().for_each(assert_safeguard_is_needed);
}

/// Some keep the order of events, too, where others that keep it are gone.
#[test]
fn some_safeguards_back_up_others() {
    for case in cases::fallback_cases() {
        for (missing, what) in [(case.also_disabled, "the first line"), (case.disable, "the second line")] {
            let found = find_failure(&case.scope, Safeguards::without(missing), case.failure);
            assert_eq!(found, None, "{}: {what} alone is missed", case.name);
        }
        assert_safeguard_is_needed(&case);
    }
}

fn assert_safeguard_is_needed(case: &SafeguardCase) {
    let SafeguardCase { name, disable, also_disabled, scope, failure } = case;
    let safeguards = Safeguards::without(|safeguards| {
        also_disabled(safeguards);
        disable(safeguards);
    });
    let found = find_failure(scope, safeguards, *failure);
    println!("without {name}: {found:?}");
    assert_eq!(found.map(|(failure, _)| failure), Some(*failure), "{name}");
}
