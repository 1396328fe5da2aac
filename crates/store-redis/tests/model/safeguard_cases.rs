//! The property that each safeguard protects.

use crate::properties::{
    ACKNOWLEDGED_EMIT_IS_JOURNALED, ASSIGNED_ID_IS_USED, EMIT_FOLLOWS_EARLIER_EVENTS,
    EMIT_IS_JOURNALED_AT_MOST_ONCE, IDS_ASCEND, NO_EVENT_IS_STUCK, OBJECT_WITH_EVENTS_IS_QUEUED_OR_OWNED,
    ONLY_OWNER_COMMITS, ONLY_OWNER_HAS_EVENT_IN_FLIGHT, PUSH_ORDER_IS_KEPT,
};
use crate::safeguards::Safeguards;
use crate::scope::Scope;

/// A safeguard and the failure without it.
pub(crate) struct SafeguardCase {
    pub(crate) name: &'static str,
    pub(crate) disable: fn(&mut Safeguards),
    /// Safeguards that must also be disabled for the failure. Disabling only these causes no failure in this scope.
    pub(crate) disable_others: fn(&mut Safeguards),
    pub(crate) scope: Scope,
    pub(crate) failure: ExpectedFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedFailure {
    ViolatedProperty(&'static str),
    /// The same actions repeat forever without progress.
    Livelock,
}

/// Builds a case.
macro_rules! case {
    ($name:ident, $scope:expr, $failure:expr) => {
        case!($name without [], $scope, $failure)
    };
    ($name:ident without [$($also_disabled:ident),*], $scope:expr, $failure:expr) => {
        SafeguardCase {
            name: stringify!($name),
            disable: |safeguards| safeguards.$name = false,
            disable_others: |_safeguards| { $(_safeguards.$also_disabled = false;)* },
            scope: $scope,
            failure: $failure,
        }
    };
}

/// Two workers, and one object with a push of two events and then a push of one.
fn scope_with_two_workers_one_object() -> Scope {
    Scope::one_object(2)
}

/// Two workers and two objects with one event each.
fn scope_with_two_objects_one_event_each() -> Scope {
    Scope { push_sizes_by_object: vec![vec![1], vec![1]], ..scope_with_two_workers_one_object() }
}

/// One object, and workers that lose their heartbeat, are mistaken for dead, and return.
fn scope_with_heartbeat_losses() -> Scope {
    Scope { max_heartbeat_losses: 2, ..scope_with_two_workers_one_object() }
}

/// A direct emit to an object with two events.
fn scope_with_direct_emit() -> Scope {
    Scope {
        push_sizes_by_object: vec![vec![2]],
        emit_objects: vec![0],
        ..scope_with_two_workers_one_object()
    }
}

/// A direct emit to an object with two events, without worker faults, and with a clock that leaps ahead of the ids.
fn scope_with_clock_ahead() -> Scope {
    Scope { max_crashes: 0, max_heartbeat_losses: 0, max_clock_leaps: 1, ..scope_with_direct_emit() }
}

/// Returns a case for each safeguard: without it a property is violated.
pub(crate) fn safeguard_cases() -> Vec<SafeguardCase> {
    vec![
        case!(
            idempotent_begin,
            scope_with_two_workers_one_object(),
            ExpectedFailure::ViolatedProperty(ONLY_OWNER_HAS_EVENT_IN_FLIGHT)
        ),
        case!(
            begin_checks_owner,
            scope_with_two_workers_one_object(),
            ExpectedFailure::ViolatedProperty(ONLY_OWNER_HAS_EVENT_IN_FLIGHT)
        ),
        case!(
            release_checks_queue,
            scope_with_two_workers_one_object(),
            ExpectedFailure::ViolatedProperty(OBJECT_WITH_EVENTS_IS_QUEUED_OR_OWNED)
        ),
        case!(
            commit_checks_version,
            scope_with_two_objects_one_event_each(),
            ExpectedFailure::ViolatedProperty(IDS_ASCEND)
        ),
        case!(
            commit_checks_owner,
            scope_with_two_workers_one_object(),
            ExpectedFailure::ViolatedProperty(ONLY_OWNER_COMMITS)
        ),
        case!(
            commit_checks_event_id,
            scope_with_clock_ahead(),
            ExpectedFailure::ViolatedProperty(ASSIGNED_ID_IS_USED)
        ),
        case!(
            acknowledgement_finds_moved_events,
            scope_with_direct_emit(),
            ExpectedFailure::ViolatedProperty(PUSH_ORDER_IS_KEPT)
        ),
        case!(
            resend_checks_commit_id,
            scope_with_direct_emit(),
            ExpectedFailure::ViolatedProperty(EMIT_IS_JOURNALED_AT_MOST_ONCE)
        ),
        case!(
            commit_ids_are_kept,
            scope_with_direct_emit(),
            ExpectedFailure::ViolatedProperty(EMIT_IS_JOURNALED_AT_MOST_ONCE)
        ),
        case!(
            unique_commit_ids,
            scope_with_direct_emit(),
            ExpectedFailure::ViolatedProperty(ACKNOWLEDGED_EMIT_IS_JOURNALED)
        ),
        case!(
            assigned_ids_must_be_new,
            scope_with_direct_emit(),
            ExpectedFailure::ViolatedProperty(IDS_ASCEND)
        ),
        case!(
            requeue,
            scope_with_two_workers_one_object(),
            ExpectedFailure::ViolatedProperty(NO_EVENT_IS_STUCK)
        ),
        case!(takeover, scope_with_two_workers_one_object(), ExpectedFailure::Livelock),
        case!(
            takeover_moves_event,
            scope_with_two_workers_one_object(),
            ExpectedFailure::ViolatedProperty(ONLY_OWNER_HAS_EVENT_IN_FLIGHT)
        ),
        case!(
            takeover_moves_id,
            scope_with_two_workers_one_object(),
            ExpectedFailure::ViolatedProperty(ASSIGNED_ID_IS_USED)
        ),
        case!(
            unique_workers,
            scope_with_two_workers_one_object(),
            ExpectedFailure::ViolatedProperty(ONLY_OWNER_COMMITS)
        ),
        case!(
            emit_journals_outbox_first,
            scope_with_direct_emit(),
            ExpectedFailure::ViolatedProperty(EMIT_FOLLOWS_EARLIER_EVENTS)
        ),
        case!(
            emit_journals_whole_outbox,
            scope_with_direct_emit(),
            ExpectedFailure::ViolatedProperty(EMIT_FOLLOWS_EARLIER_EVENTS)
        ),
    ]
}

/// Returns cases in which checks of owner and id also protect the order of events, once the safeguards that keep it are
/// disabled.
pub(crate) fn fallback_safeguard_cases() -> Vec<SafeguardCase> {
    let order = ExpectedFailure::ViolatedProperty(PUSH_ORDER_IS_KEPT);
    vec![
        case!(commit_checks_owner without [acknowledgement_finds_moved_events], scope_with_two_workers_one_object(), order),
        case!(commit_checks_event_id without [commit_checks_version, commit_checks_owner], scope_with_two_workers_one_object(), order),
        case!(takeover_moves_id without [commit_checks_version, commit_checks_owner], scope_with_heartbeat_losses(), order),
        case!(unique_workers without [commit_checks_version, commit_checks_event_id], scope_with_two_workers_one_object(), order),
    ]
}
