//! Errors of a gate.

use pointsman_core::EventId;

/// Why a call on a gate failed. Nothing has changed, and the call may be repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError<E> {
    /// The event is not in progress in this gate: it was never ready, is done already, or was ready in another gate.
    #[error("event {id} is not in progress: only an event that was ready can be done or released")]
    NotInProgress {
        /// The event.
        id: EventId,
    },
    /// Events cannot be skipped while one of their object is in progress.
    #[error("cannot skip while event {id} of the object is in progress: call `mark_done` or `release` first")]
    InProgress {
        /// The event in progress.
        id: EventId,
    },
    /// An older event of the object waits.
    #[error(
        "cannot skip to event {id}, because the older event {older_id} of the object waits; skip to that one first"
    )]
    OlderEventWaits {
        /// The event to skip to.
        id: EventId,
        /// The older event that waits.
        older_id: EventId,
    },
    /// The positions cannot be read or written.
    #[error("cannot read or write the position of an object")]
    PositionStore(#[source] E),
}
