//! The property that each safeguard protects.

use crate::properties::{
    ACKNOWLEDGED_EMIT_IS_JOURNALED, ASSIGNED_ID_IS_USED, EMIT_FOLLOWS_EARLIER_EVENTS, EMITTED_ONCE,
    IDS_ASCEND, NO_EVENT_IS_STUCK, OBJECT_WITH_EVENTS_IS_QUEUED_OR_OWNED, ONLY_OWNER_COMMITS,
    ONLY_OWNER_HAS_EVENT_IN_FLIGHT, PUSH_ORDER_IS_KEPT,
};
use crate::safeguards::Safeguards;
use crate::scope::Scope;

/// A safeguard and the failure without it.
pub(crate) struct SafeguardCase {
    pub(crate) name: &'static str,
    pub(crate) disable: fn(&mut Safeguards),
    /// Safeguards that must also be disabled for the failure. Disabling only these causes no failure in this scope.
    pub(crate) also_disabled: fn(&mut Safeguards),
    pub(crate) scope: Scope,
    pub(crate) failure: ExpectedFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectedFailure {
    Property(&'static str),
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
            also_disabled: |_safeguards| { $(_safeguards.$also_disabled = false;)* },
            scope: $scope,
            failure: $failure,
        }
    };
}

/// Two workers, and one object with a push of two events and then a push of one.
fn two_workers_one_object() -> Scope {
    Scope::one_object(2)
}

/// Two workers and two objects with one event each.
fn two_objects_one_event_each() -> Scope {
    Scope { pushes: vec![vec![1], vec![1]], ..two_workers_one_object() }
}

/// One object, and workers that lose their heartbeat, are mistaken for dead, and return.
fn with_heartbeat_losses() -> Scope {
    Scope { heartbeat_losses: 2, ..two_workers_one_object() }
}

/// A direct emit to an object with two events.
fn with_direct_emit() -> Scope {
    Scope { pushes: vec![vec![2]], emits: vec![0], ..two_workers_one_object() }
}

/// A direct emit to an object with two events, without worker faults, and with a clock that leaps ahead of the ids.
fn with_clock_ahead() -> Scope {
    Scope { crashes: 0, heartbeat_losses: 0, clock_leaps: 1, ..with_direct_emit() }
}

/// Returns a case for each safeguard: without it a property is violated.
pub(crate) fn all_cases() -> Vec<SafeguardCase> {
    vec![
        case!(
            idempotent_begin,
            two_workers_one_object(),
            ExpectedFailure::Property(ONLY_OWNER_HAS_EVENT_IN_FLIGHT)
        ),
        case!(
            begin_checks_owner,
            two_workers_one_object(),
            ExpectedFailure::Property(ONLY_OWNER_HAS_EVENT_IN_FLIGHT)
        ),
        case!(
            release_checks_queue,
            two_workers_one_object(),
            ExpectedFailure::Property(OBJECT_WITH_EVENTS_IS_QUEUED_OR_OWNED)
        ),
        case!(commit_checks_version, two_objects_one_event_each(), ExpectedFailure::Property(IDS_ASCEND)),
        case!(commit_checks_owner, two_workers_one_object(), ExpectedFailure::Property(ONLY_OWNER_COMMITS)),
        case!(commit_checks_event_id, with_clock_ahead(), ExpectedFailure::Property(ASSIGNED_ID_IS_USED)),
        case!(
            acknowledgement_finds_moved_events,
            with_direct_emit(),
            ExpectedFailure::Property(PUSH_ORDER_IS_KEPT)
        ),
        case!(resend_checks_commit_id, with_direct_emit(), ExpectedFailure::Property(EMITTED_ONCE)),
        case!(commit_ids_are_kept, with_direct_emit(), ExpectedFailure::Property(EMITTED_ONCE)),
        case!(
            unique_commit_ids,
            with_direct_emit(),
            ExpectedFailure::Property(ACKNOWLEDGED_EMIT_IS_JOURNALED)
        ),
        case!(assigned_ids_must_be_new, with_direct_emit(), ExpectedFailure::Property(IDS_ASCEND)),
        case!(requeue, two_workers_one_object(), ExpectedFailure::Property(NO_EVENT_IS_STUCK)),
        case!(takeover, two_workers_one_object(), ExpectedFailure::Livelock),
        case!(
            takeover_moves_event,
            two_workers_one_object(),
            ExpectedFailure::Property(ONLY_OWNER_HAS_EVENT_IN_FLIGHT)
        ),
        case!(takeover_moves_id, two_workers_one_object(), ExpectedFailure::Property(ASSIGNED_ID_IS_USED)),
        case!(unique_workers, two_workers_one_object(), ExpectedFailure::Property(ONLY_OWNER_COMMITS)),
        case!(
            emit_journals_outbox_first,
            with_direct_emit(),
            ExpectedFailure::Property(EMIT_FOLLOWS_EARLIER_EVENTS)
        ),
        case!(
            emit_journals_whole_outbox,
            with_direct_emit(),
            ExpectedFailure::Property(EMIT_FOLLOWS_EARLIER_EVENTS)
        ),
    ]
}

/// Returns cases in which checks of owner and id also protect the order of events, once the safeguards that keep it are
/// disabled.
pub(crate) fn fallback_cases() -> Vec<SafeguardCase> {
    let order = ExpectedFailure::Property(PUSH_ORDER_IS_KEPT);
    vec![
        case!(commit_checks_owner without [acknowledgement_finds_moved_events], two_workers_one_object(), order),
        case!(commit_checks_event_id without [commit_checks_version, commit_checks_owner], two_workers_one_object(), order),
        case!(takeover_moves_id without [commit_checks_version, commit_checks_owner], with_heartbeat_losses(), order),
        case!(unique_workers without [commit_checks_version, commit_checks_event_id], two_workers_one_object(), order),
    ]
}
