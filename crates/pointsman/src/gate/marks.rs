//! How far each object has been handled.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;

use pointsman_core::EventId;

use super::Object;

/// How far an object has been handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// This event of the object was the last: the next one names it.
    Handled(EventId),
    /// All up to this id count as handled, by a skip or because the consumer started there. Which of the object's
    /// events was the last of them is not known.
    UpTo(EventId),
}

/// Where an event stands, seen from a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Passed,
    Next,
    /// Behind another one that is not handled yet.
    Later {
        behind: EventId,
    },
    /// Nowhere: it names a predecessor that cannot be its own.
    Fork,
}

impl Mark {
    /// The one rule by which events are judged.
    pub(super) fn place(self, id: EventId, prev: Option<EventId>) -> Place {
        let (Self::Handled(last) | Self::UpTo(last)) = self;
        if id <= last {
            return Place::Passed;
        }
        match (self, prev) {
            (Self::Handled(_) | Self::UpTo(_), Some(prev)) if prev >= id => Place::Fork,
            (Self::Handled(_) | Self::UpTo(_), Some(behind)) if behind > last => Place::Later { behind },
            (Self::Handled(_), prev) if prev == Some(last) => Place::Next,
            (Self::Handled(_), _) => Place::Fork,
            (Self::UpTo(_), _) => Place::Next,
        }
    }
}

/// Where marks are kept. When `remember` returns, the mark outlives whatever the marks are to outlive.
pub trait Marks {
    type Error: Error + 'static;

    /// The mark of an object; `None` for one that is not remembered.
    fn mark(&self, object: &Object) -> Result<Option<Mark>, Self::Error>;

    fn remember(&mut self, object: &Object, mark: Mark) -> Result<(), Self::Error>;
}

/// Marks that end with the process. One for each object: they grow with the objects that there are.
#[derive(Clone, Debug, Default)]
pub struct InMemory(HashMap<Object, Mark>);

impl Marks for InMemory {
    type Error = Infallible;

    fn mark(&self, object: &Object) -> Result<Option<Mark>, Infallible> {
        Ok(self.0.get(object).copied())
    }

    fn remember(&mut self, object: &Object, mark: Mark) -> Result<(), Infallible> {
        self.0.insert(object.clone(), mark);
        Ok(())
    }
}
