//! Errors of a gate.

use pointsman_core::EventId;

/// Why a call on a gate failed. Nothing has changed, and the call may be repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError<E> {
    /// The event is not in progress in this gate: it was never ready, is done already, or was ready in another gate.
    #[error("event {id} is not in progress: only an event that was ready can be done or released")]
    NotInProgress { id: EventId },
    #[error("cannot skip while event {id} of the object is in progress: call `mark_done` or `release` first")]
    InProgress { id: EventId },
    #[error(
        "cannot skip to event {id}, because the older event {older_id} of the object waits; skip to that one first"
    )]
    OlderEventWaits { id: EventId, older_id: EventId },
    #[error("cannot read or write the position of an object")]
    PositionStore(#[source] E),
}
