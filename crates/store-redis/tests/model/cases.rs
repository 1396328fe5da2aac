//! What each safeguard is for.

use crate::properties::{
    EMIT_IS_BEHIND, EMITTED_ONCE, ID_IS_KEPT, IDS_ASCEND, NOTHING_IS_STUCK, ONLY_OWNERS_FLY, ORDER_IS_KEPT,
    OWNER_COMMITS, SOMEBODY_CARES, TOLD_IS_TRUE,
};
use crate::safeguards::Safeguards;
use crate::scope::Scope;

/// A safeguard, and what breaks without it.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) take_out: fn(&mut Safeguards),
    /// What must be gone before it is missed. As long as the safeguard stands, those are not missed either in this scope.
    pub(crate) gone: fn(&mut Safeguards),
    pub(crate) scope: Scope,
    pub(crate) breaks: Breaks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breaks {
    Property(&'static str),
    /// Something happens over and over again, and gets nowhere.
    End,
}

/// Makes a case.
macro_rules! case {
    ($name:ident, $scope:expr, $breaks:expr) => {
        case!($name without [], $scope, $breaks)
    };
    ($name:ident without [$($gone:ident),*], $scope:expr, $breaks:expr) => {
        Case {
            name: stringify!($name),
            take_out: |safeguards| safeguards.$name = false,
            gone: |_safeguards| { $(_safeguards.$gone = false;)* },
            scope: $scope,
            breaks: $breaks,
        }
    };
}

/// Two workers, an object with two events and then another.
fn drained() -> Scope {
    Scope::one_object(2)
}

/// The same with two objects of one event each.
fn side_by_side() -> Scope {
    Scope { pushes: vec![vec![1], vec![1]], ..drained() }
}

/// One object with workers that are taken for dead, and come back.
fn to_and_fro() -> Scope {
    Scope { lapses: 2, ..drained() }
}

/// A direct emit to an object with two events.
fn emitted() -> Scope {
    Scope { pushes: vec![vec![2]], emits: vec![0], ..drained() }
}

/// The same with all workers in good health, and a clock that is ahead of the ids.
fn ahead() -> Scope {
    Scope { crashes: 0, lapses: 0, leaps: 1, ..emitted() }
}

/// What each is for by itself: without it a rule breaks.
pub(crate) fn all() -> Vec<Case> {
    vec![
        case!(idempotent_pop, drained(), Breaks::Property(ONLY_OWNERS_FLY)),
        case!(pop_knows_owner, drained(), Breaks::Property(ONLY_OWNERS_FLY)),
        case!(release_looks, drained(), Breaks::Property(SOMEBODY_CARES)),
        case!(commit_knows_version, side_by_side(), Breaks::Property(IDS_ASCEND)),
        case!(commit_knows_owner, drained(), Breaks::Property(OWNER_COMMITS)),
        case!(commit_knows_event_id, ahead(), Breaks::Property(ID_IS_KEPT)),
        case!(acknowledgement_follows, emitted(), Breaks::Property(ORDER_IS_KEPT)),
        case!(resend_knows_mark, emitted(), Breaks::Property(EMITTED_ONCE)),
        case!(marks_are_kept, emitted(), Breaks::Property(EMITTED_ONCE)),
        case!(unique_marks, emitted(), Breaks::Property(TOLD_IS_TRUE)),
        case!(given_ids_are_new, emitted(), Breaks::Property(IDS_ASCEND)),
        case!(sweep, drained(), Breaks::Property(NOTHING_IS_STUCK)),
        case!(takeover, drained(), Breaks::End),
        case!(takeover_moves_event, drained(), Breaks::Property(ONLY_OWNERS_FLY)),
        case!(takeover_moves_id, drained(), Breaks::Property(ID_IS_KEPT)),
        case!(unique_workers, drained(), Breaks::Property(OWNER_COMMITS)),
        case!(emit_serves_first, emitted(), Breaks::Property(EMIT_IS_BEHIND)),
        case!(emit_serves_all, emitted(), Breaks::Property(EMIT_IS_BEHIND)),
    ]
}

/// Who is responsible, and by which id, matters to the order of events as well, once what keeps that is gone.
pub(crate) fn second_line() -> Vec<Case> {
    let order = Breaks::Property(ORDER_IS_KEPT);
    vec![
        case!(commit_knows_owner without [acknowledgement_follows], drained(), order),
        case!(commit_knows_event_id without [commit_knows_version, commit_knows_owner], drained(), order),
        case!(takeover_moves_id without [commit_knows_version, commit_knows_owner], to_and_fro(), order),
        case!(unique_workers without [commit_knows_version, commit_knows_event_id], drained(), order),
    ]
}
