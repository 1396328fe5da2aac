//! The outbox of document 001 as this store has it, in small, looked at in all its runs: `claim_objects.lua`, `requeue_objects.lua`, `read_outboxes.lua`
//! and `commit.lua` as steps of a model, with crashes, lost answers, workers that are taken for dead though they live, and
//! commands that arrive late. Then each safeguard is taken out, and what breaks is what it is for.
//!
//! A direct emit to an object for which more was left than one transaction takes commits that a piece at a time, and goes on
//! after each without beginning again. Its own event comes with the last piece.
//!
//! Not looked at: the turn to write (`begin_transaction.lua`), which only spares conflicts; what an event is made of, and what is set
//! aside because it is none; that workers and jobs share processes and transactions; keys that somebody else has changed,
//! such as an owner that does not name its object, which the sweep looks for and no script leaves behind (`OWNER_HOLDS`).

mod actions;
mod cases;
mod ends;
mod outbox;
mod properties;
mod safeguards;
mod scope;
mod scripts;
mod state;

use std::collections::BTreeSet;

use actions::Action;
use cases::{Breaks, Case};
use outbox::Outbox;
use properties::{ALL_IS_DONE, EMIT_FOLLOWS, EMIT_SERVES, OVERTAKEN, TAKEN_OVER, TWO_BELIEVE, UNHEARD};
use safeguards::Safeguards;
use scope::Scope;
use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// A property that does not hold, and a run that shows it.
type Broken = (&'static str, Vec<Action>);

/// Looks at all states of a scope. Nothing may break; answers which of the examples were seen.
fn explore(name: &str, scope: Scope) -> BTreeSet<&'static str> {
    let checker = Outbox { scope, safeguards: Safeguards::all() }.checker().spawn_dfs().join();
    println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    assert_eq!(broken(&checker), [], "{name}");
    checker.discoveries().into_keys().collect()
}

/// What does not hold, that with the shortest run first.
fn broken(checker: &impl Checker<Outbox>) -> Vec<Broken> {
    let is_broken = |name| checker.model().property(name).expectation == Expectation::Always;
    let found = checker.discoveries().into_iter().filter(|(name, _)| is_broken(name));
    let mut broken: Vec<Broken> = found.map(|(name, path)| (name, path.into_actions())).collect();
    broken.sort_by_key(|(name, run)| (run.len(), *name));
    broken
}

#[test]
fn properties_hold_with_three_workers_on_one_object() {
    let scope = Scope::one_object(3);
    let seen = explore("three workers, a turn has one event", scope.clone());
    assert!(seen.is_superset(&BTreeSet::from([ALL_IS_DONE, TWO_BELIEVE, TAKEN_OVER, OVERTAKEN])), "{seen:?}");
    explore("three workers, a turn has two events", Scope { budget: 2, ..scope });
}

#[test]
fn properties_hold_with_three_workers_on_two_objects() {
    let seen = explore("two objects", Scope::two_objects(3));
    assert!(seen.is_superset(&BTreeSet::from([ALL_IS_DONE, TWO_BELIEVE, TAKEN_OVER, OVERTAKEN])), "{seen:?}");
}

#[test]
fn properties_hold_with_late_commands_and_clock_leaps() {
    let scope = Scope { pushes: vec![vec![1, 1]], late: 1, leaps: 1, ..Scope::one_object(2) };
    explore("late commands", scope.clone());
    let scope = Scope { pushes: vec![vec![1]], emits: vec![0], ..scope };
    explore("late commands and a direct emit", scope);
}

#[test]
fn properties_hold_with_direct_emits() {
    let scope = Scope { pushes: vec![vec![1, 1]], emits: vec![0], ..Scope::one_object(2) };
    let seen = explore("a direct emit", scope.clone());
    let examples = BTreeSet::from([ALL_IS_DONE, OVERTAKEN, UNHEARD, EMIT_SERVES, EMIT_FOLLOWS]);
    assert!(seen.is_superset(&examples), "{seen:?}");
    explore("two direct emits", Scope { pushes: vec![vec![1]], emits: vec![0, 0], ..scope });
}

#[test]
#[ignore = "millions of states; `cargo xtask model` looks at them"]
fn larger_scopes_hold_all_properties() {
    let (one, two) = (Scope::one_object(3), Scope::two_objects(2));
    explore("two crashes and two lapses", Scope { crashes: 2, lapses: 2, ..one.clone() });
    explore("three workers, late commands", Scope { late: 1, leaps: 1, ..one.clone() });
    explore("two objects, late commands", Scope { late: 1, leaps: 1, budget: 2, ..two.clone() });
    explore("two objects, a direct emit", Scope { emits: vec![0], ..two.clone() });
    explore("three events, a direct emit", Scope { emits: vec![0], ..Scope::one_object(2) });
    explore("two events, two direct emits", Scope { pushes: vec![vec![2]], emits: vec![0, 0], ..two });
}

#[test]
fn every_run_terminates() {
    let scope = Scope::one_object(2);
    for scope in [
        Scope { lapses: 2, ..scope.clone() },
        Scope { pushes: vec![vec![2]], late: 1, ..scope.clone() },
        Scope { pushes: vec![vec![2]], emits: vec![0], ..scope },
    ] {
        assert_eq!(ends::endless(&Outbox { scope, safeguards: Safeguards::all() }), None);
    }
}

/// What breaks without a safeguard, as far as it is of the expected kind, and a run that shows it.
fn what_breaks(scope: &Scope, safeguards: Safeguards, expected: Breaks) -> Option<(Breaks, Vec<Action>)> {
    let outbox = Outbox { scope: scope.clone(), safeguards };
    if expected == Breaks::End {
        return ends::endless(&outbox).map(|run| (Breaks::End, run));
    }
    let Breaks::Property(expected) = expected else { return None };
    let found = HasDiscoveries::AnyOf(BTreeSet::from([expected]));
    let checker = outbox.checker().finish_when(found).spawn_bfs().join();
    let mut broken = broken(&checker).into_iter();
    broken.find(|(name, _)| *name == expected).map(|(name, run)| (Breaks::Property(name), run))
}

#[test]
fn each_safeguard_is_needed() {
    let cases = cases::all();
    let names: Vec<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names, Safeguards::NAMES);
    cases.iter().for_each(assert_breaks);
}

/// Some keep the order of events, too, where others that keep it are gone.
#[test]
fn some_safeguards_back_up_others() {
    for case in cases::second_line() {
        for (missing, what) in [(case.gone, "the first line"), (case.take_out, "the second line")] {
            let found = what_breaks(&case.scope, Safeguards::without(missing), case.breaks);
            assert_eq!(found, None, "{}: {what} alone is missed", case.name);
        }
        assert_breaks(&case);
    }
}

fn assert_breaks(case: &Case) {
    let Case { name, take_out, gone, scope, breaks } = case;
    let safeguards = Safeguards::without(|safeguards| {
        gone(safeguards);
        take_out(safeguards);
    });
    let found = what_breaks(scope, safeguards, *breaks);
    println!("without {name}: {found:?}");
    assert_eq!(found.map(|(breaks, _)| breaks), Some(*breaks), "{name}");
}
