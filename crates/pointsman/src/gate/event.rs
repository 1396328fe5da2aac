//! What goes into a gate, and what it says.

use std::time::Instant;

use pointsman_core::names::BadName;
use pointsman_core::{EventId, ObjectKey, Tenant};

use crate::{Ctx, Raw};

/// What events are about, and are ordered by. Parts of an object follow its key.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    pub tenant: Tenant,
    pub key: ObjectKey,
}

impl Object {
    pub fn new(tenant: impl AsRef<str>, key: impl AsRef<str>) -> Result<Self, BadName> {
        Ok(Self { tenant: Tenant::new(tenant)?, key: ObjectKey::new(key)? })
    }

    fn of(event: &pointsman_core::Event) -> Option<Self> {
        event.key.clone().map(|key| Self { tenant: event.tenant.clone(), key })
    }
}

/// An event that has come to a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<T> {
    /// None for an event without a key.
    pub object: Option<Object>,
    pub id: EventId,
    /// The preceding event of the object that this consumer is sent: `prev` for one of the whole journal,
    /// `prev_sent` for a handler.
    pub prev: Option<EventId>,
    pub payload: T,
}

impl Arrival<Raw> {
    /// An event as a consumer of the whole journal sees it.
    pub fn journaled(event: Raw) -> Self {
        Self { object: Object::of(&event), id: event.id, prev: event.prev, payload: event }
    }

    /// An event as the handler of this attempt sees it. None for a step of an order.
    pub fn sent(ctx: &Ctx) -> Option<Self> {
        let id = ctx.task().event?;
        let event = ctx.event();
        Some(Self { object: Object::of(&event), id, prev: ctx.prev_sent(), payload: event })
    }
}

/// What is to be done with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<T> {
    /// It is the next of its object: handle it, then say [`done`](super::Gate::done), or
    /// [`release`](super::Gate::release) if that failed.
    Ready(Arrival<T>),
    /// The one before it is not handled yet. The gate keeps it.
    Wait,
    /// It was handled or skipped, is in hand, or waits already.
    Duplicate,
    /// It cannot go on by itself, and the gate does not keep it.
    Hole(Hole<T>),
}

/// An event whose predecessor will not come by itself, as far as the gate can know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole<T> {
    /// Given back. Its `prev` is what is missing, or what cannot be true.
    pub event: Arrival<T>,
    pub why: Why,
}

/// Why there is a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// There is no room to wait, in the gate or for this object. Let it arrive again when there is.
    Full,
    /// It is newer than the last that was handled, and yet does not follow on it or on anything to come.
    Fork,
}

/// An event that others wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub object: Object,
    /// The one that is missing.
    pub prev: EventId,
    /// Those that could be handled if it was, in order. [`skip`](super::Gate::skip) goes to the first of them.
    pub waiting: Vec<EventId>,
    /// When the first of them came.
    pub since: Instant,
}
