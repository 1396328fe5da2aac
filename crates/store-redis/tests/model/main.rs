//! A model of the outbox of document 001, of which all runs are explored: `claim_objects.lua`, `requeue_objects.lua`,
//! `read_outboxes.lua` and `commit.lua` are its steps, with crashes, lost replies, live workers that are mistaken for dead, and
//! commands that arrive late. Then each safeguard is disabled, and a property that it protects must be violated.
//!
//! A direct emit to an object with more outbox events than one transaction takes commits them in parts, and continues after
//! each part without a new begin. Its own event is in the last part.
//!
//! Not modelled: the write lock (`begin_transaction.lua`), which only avoids conflicts; the contents of events and
//! entries that are set aside; that workers and jobs share processes and transactions; keys changed by other programs,
//! such as an owner that does not name its object, which the scan for dead workers looks for and no script leaves
//! behind (`OWNER_NAMES_OBJECT`).

mod actions;
mod outbox;
mod properties;
mod safeguard_cases;
mod safeguards;
mod scope;
mod scripts;
mod state;
mod termination;

use std::collections::BTreeSet;

use actions::Action;
use outbox::OutboxModel;
use properties::{
    COMMIT_WAS_OVERTAKEN, EMIT_JOURNALS_IN_FLIGHT_EVENT, EMIT_READ_EVENT_NOW_IN_FLIGHT,
    EMIT_REPLY_LOST_AND_OVERTAKEN, EVENT_WAS_TAKEN_OVER, EVERYTHING_IS_JOURNALED, TWO_WORKERS_BELIEVE_TO_OWN,
};
use safeguard_cases::{ExpectedFailure, SafeguardCase};
use safeguards::Safeguards;
use scope::Scope;
use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// A violated property, and a run that violates it.
type Violation = (&'static str, Vec<Action>);

/// Explores all states of a scope, and panics if a property is violated. Returns the examples that were reached.
fn explore_all_states(name: &str, scope: Scope) -> BTreeSet<&'static str> {
    let checker = OutboxModel { scope, safeguards: Safeguards::all() }.checker().spawn_dfs().join();
    println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    assert_eq!(violated_properties(&checker), [], "{name}");
    checker.discoveries().into_keys().collect()
}

/// Returns the violated properties, the one with the shortest run first.
fn violated_properties(checker: &impl Checker<OutboxModel>) -> Vec<Violation> {
    let must_always_hold = |name| checker.model().property(name).expectation == Expectation::Always;
    let found = checker.discoveries().into_iter().filter(|(name, _)| must_always_hold(name));
    let mut violations: Vec<Violation> = found.map(|(name, path)| (name, path.into_actions())).collect();
    violations.sort_by_key(|(name, run)| (run.len(), *name));
    violations
}

#[test]
fn properties_hold_with_three_workers_on_one_object() {
    let scope = Scope::one_object(3);
    let reached = explore_all_states("three workers, one event per transaction", scope.clone());
    assert!(
        reached.is_superset(&BTreeSet::from([
            EVERYTHING_IS_JOURNALED,
            TWO_WORKERS_BELIEVE_TO_OWN,
            EVENT_WAS_TAKEN_OVER,
            COMMIT_WAS_OVERTAKEN
        ])),
        "{reached:?}"
    );
    explore_all_states(
        "three workers, two events per transaction",
        Scope { max_events_per_transaction: 2, ..scope },
    );
}

#[test]
fn properties_hold_with_three_workers_on_two_objects() {
    let reached = explore_all_states("two objects", Scope::two_objects(3));
    assert!(
        reached.is_superset(&BTreeSet::from([
            EVERYTHING_IS_JOURNALED,
            TWO_WORKERS_BELIEVE_TO_OWN,
            EVENT_WAS_TAKEN_OVER,
            COMMIT_WAS_OVERTAKEN
        ])),
        "{reached:?}"
    );
}

#[test]
fn properties_hold_with_late_commands_and_clock_leaps() {
    let scope = Scope {
        push_sizes_by_object: vec![vec![1, 1]],
        max_late_commands: 1,
        max_clock_leaps: 1,
        ..Scope::one_object(2)
    };
    explore_all_states("late commands", scope.clone());
    let scope = Scope { push_sizes_by_object: vec![vec![1]], emit_objects: vec![0], ..scope };
    explore_all_states("late commands and a direct emit", scope);
}

#[test]
fn properties_hold_with_direct_emits() {
    let scope =
        Scope { push_sizes_by_object: vec![vec![1, 1]], emit_objects: vec![0], ..Scope::one_object(2) };
    let reached = explore_all_states("a direct emit", scope.clone());
    let examples = BTreeSet::from([
        EVERYTHING_IS_JOURNALED,
        COMMIT_WAS_OVERTAKEN,
        EMIT_REPLY_LOST_AND_OVERTAKEN,
        EMIT_JOURNALS_IN_FLIGHT_EVENT,
        EMIT_READ_EVENT_NOW_IN_FLIGHT,
    ]);
    assert!(reached.is_superset(&examples), "{reached:?}");
    explore_all_states(
        "two direct emits",
        Scope { push_sizes_by_object: vec![vec![1]], emit_objects: vec![0, 0], ..scope },
    );
}

#[test]
#[ignore = "millions of states; `cargo xtask model` explores them"]
fn larger_scopes_hold_all_properties() {
    let (one, two) = (Scope::one_object(3), Scope::two_objects(2));
    explore_all_states(
        "two crashes and two lost heartbeats",
        Scope { max_crashes: 2, max_heartbeat_losses: 2, ..one.clone() },
    );
    explore_all_states(
        "three workers, late commands",
        Scope { max_late_commands: 1, max_clock_leaps: 1, ..one.clone() },
    );
    explore_all_states(
        "two objects, late commands",
        Scope { max_late_commands: 1, max_clock_leaps: 1, max_events_per_transaction: 2, ..two.clone() },
    );
    explore_all_states("two objects, a direct emit", Scope { emit_objects: vec![0], ..two.clone() });
    explore_all_states(
        "three events, a direct emit",
        Scope { emit_objects: vec![0], ..Scope::one_object(2) },
    );
    explore_all_states(
        "two events, two direct emits",
        Scope { push_sizes_by_object: vec![vec![2]], emit_objects: vec![0, 0], ..two },
    );
}

#[test]
fn every_run_terminates() {
    let scope = Scope::one_object(2);
    for scope in [
        Scope { max_heartbeat_losses: 2, ..scope.clone() },
        Scope { push_sizes_by_object: vec![vec![2]], max_late_commands: 1, ..scope.clone() },
        Scope { push_sizes_by_object: vec![vec![2]], emit_objects: vec![0], ..scope },
    ] {
        assert_eq!(termination::find_cycle(&OutboxModel { scope, safeguards: Safeguards::all() }), None);
    }
}

/// Returns the expected failure and a run that shows it, if it occurs without some safeguards.
fn find_failure(
    scope: &Scope,
    safeguards: Safeguards,
    expected: ExpectedFailure,
) -> Option<(ExpectedFailure, Vec<Action>)> {
    let outbox = OutboxModel { scope: scope.clone(), safeguards };
    if expected == ExpectedFailure::Livelock {
        return termination::find_cycle(&outbox).map(|run| (ExpectedFailure::Livelock, run));
    }
    let ExpectedFailure::ViolatedProperty(expected) = expected else { return None };
    let found = HasDiscoveries::AnyOf(BTreeSet::from([expected]));
    let checker = outbox.checker().finish_when(found).spawn_bfs().join();
    let mut violations = violated_properties(&checker).into_iter();
    violations
        .find(|(name, _)| *name == expected)
        .map(|(name, run)| (ExpectedFailure::ViolatedProperty(name), run))
}

#[test]
fn each_safeguard_is_needed() {
    let cases = safeguard_cases::safeguard_cases();
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names, Safeguards::NAMES);
    cases.iter().for_each(assert_safeguard_is_needed);
}

/// Some safeguards also keep the order of events when those that usually keep it are disabled.
#[test]
fn some_safeguards_back_up_others() {
    for case in safeguard_cases::fallback_safeguard_cases() {
        for (disable, which) in
            [(case.disable_others, "the first safeguard"), (case.disable, "the second safeguard")]
        {
            let found = find_failure(&case.scope, Safeguards::without(disable), case.failure);
            assert_eq!(found, None, "{}: fails without {which} alone", case.name);
        }
        assert_safeguard_is_needed(&case);
    }
}

fn assert_safeguard_is_needed(case: &SafeguardCase) {
    let SafeguardCase { name, disable, disable_others: also_disabled, scope, failure } = case;
    let safeguards = Safeguards::without(|safeguards| {
        also_disabled(safeguards);
        disable(safeguards);
    });
    let found = find_failure(scope, safeguards, *failure);
    println!("without {name}: {found:?}");
    assert_eq!(found.map(|(failure, _)| failure), Some(*failure), "{name}");
}
