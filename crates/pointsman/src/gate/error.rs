use pointsman_core::EventId;

/// Why a gate did not do what it was told. Nothing has changed then, and the same may be tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GateError<E> {
    /// It was never ready, was done before, or was let through by another gate.
    #[error("event {id} is not in hand: only what was ready can be done or released")]
    NotInHand { id: EventId },
    #[error("nothing is skipped while event {id} of the object is in hand")]
    InHand { id: EventId },
    #[error("event {id} is not skipped to, because event {first} of the object waits before it")]
    WaitsBefore { id: EventId, first: EventId },
    #[error("what is remembered cannot be read or written: {0}")]
    Marks(#[source] E),
}
