//! The position of each object: how far its events have been handled.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;

use pointsman_core::EventId;

use super::TenantObjectKey;

/// How far the events of an object have been handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectPosition {
    /// This event of the object was handled last: the `prev` of the object's next event is this id.
    LastHandled(EventId),
    /// All events up to this id count as handled, by a skip or because the consumer started there. The last event of
    /// the object among them is unknown.
    HandledUpTo(EventId),
}

/// The status of an event relative to an [`ObjectPosition`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SequenceStatus {
    AlreadyHandled,
    Next,
    /// The event follows one that is not handled yet.
    Later {
        predecessor: EventId,
    },
    /// The event names a predecessor that contradicts the position.
    Fork,
}

impl ObjectPosition {
    /// Classifies an event by its id and its predecessor. All decisions of a gate are based on this rule.
    pub(super) fn classify_event(self, id: EventId, prev: Option<EventId>) -> SequenceStatus {
        let (Self::LastHandled(last) | Self::HandledUpTo(last)) = self;
        if id <= last {
            return SequenceStatus::AlreadyHandled;
        }
        match (self, prev) {
            (Self::LastHandled(_) | Self::HandledUpTo(_), Some(prev)) if prev >= id => SequenceStatus::Fork,
            (Self::LastHandled(_) | Self::HandledUpTo(_), Some(prev)) if prev > last => {
                SequenceStatus::Later { predecessor: prev }
            }
            (Self::LastHandled(_), prev) if prev == Some(last) => SequenceStatus::Next,
            (Self::LastHandled(_), _) => SequenceStatus::Fork,
            (Self::HandledUpTo(_), _) => SequenceStatus::Next,
        }
    }
}

/// Stores the positions of objects. When `write_position` returns, the position is as durable as the store.
pub trait PositionStore {
    /// Why positions cannot be read or written.
    type Error: Error + 'static;

    /// Reads the position of an object; `None` if none is stored.
    fn read_position(&self, object: &TenantObjectKey) -> Result<Option<ObjectPosition>, Self::Error>;

    /// Stores the position of an object.
    fn write_position(
        &mut self,
        object: &TenantObjectKey,
        position: ObjectPosition,
    ) -> Result<(), Self::Error>;
}

/// Positions in memory, which end with the process. They take memory for every object that has been handled.
#[derive(Clone, Debug, Default)]
pub struct InMemoryPositions(HashMap<TenantObjectKey, ObjectPosition>);

impl PositionStore for InMemoryPositions {
    type Error = Infallible;

    fn read_position(&self, object: &TenantObjectKey) -> Result<Option<ObjectPosition>, Infallible> {
        Ok(self.0.get(object).copied())
    }

    fn write_position(
        &mut self,
        object: &TenantObjectKey,
        position: ObjectPosition,
    ) -> Result<(), Infallible> {
        self.0.insert(object.clone(), position);
        Ok(())
    }
}
