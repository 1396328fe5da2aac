//! The events that a gate receives, and its decisions about them.

use std::time::Instant;

use pointsman_core::names::BadName;
use pointsman_core::{EventId, ObjectKey, Tenant};

use crate::{Ctx, RawEvent};

/// An object of a tenant, whose events are ordered. Parts of an object share its order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantObjectKey {
    /// The tenant.
    pub tenant: Tenant,
    /// The object's key.
    pub key: ObjectKey,
}

impl TenantObjectKey {
    /// Validates the names of a tenant and an object.
    pub fn new(tenant: impl AsRef<str>, key: impl AsRef<str>) -> Result<Self, BadName> {
        Ok(Self { tenant: Tenant::new(tenant)?, key: ObjectKey::new(key)? })
    }

    fn from_event(event: &pointsman_core::Event) -> Option<Self> {
        event.key.clone().map(|key| Self { tenant: event.tenant.clone(), key })
    }
}

/// An event that a consumer has received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingEvent<T> {
    /// The object of the event; `None` for an event without a key.
    pub object: Option<TenantObjectKey>,
    /// The event's id.
    pub id: EventId,
    /// The preceding event of the object that is sent to this consumer: `prev` for a consumer of the whole journal,
    /// `prev_sent` for a handler.
    pub prev: Option<EventId>,
    /// The event itself, or whatever the consumer needs to handle it.
    pub payload: T,
}

impl IncomingEvent<RawEvent> {
    /// An event that a consumer of the whole journal has read.
    pub fn from_journal(event: RawEvent) -> Self {
        Self { object: TenantObjectKey::from_event(&event), id: event.id, prev: event.prev, payload: event }
    }

    /// The event that a handler's attempt was given. `None` for a step of an order.
    pub fn from_attempt(ctx: &Ctx) -> Option<Self> {
        let id = ctx.task_info().event_id?;
        let event = ctx.event();
        Some(Self { object: TenantObjectKey::from_event(&event), id, prev: ctx.prev_sent(), payload: event })
    }
}

/// The decision of a gate about an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateDecision<T> {
    /// The event is the next one of its object: handle it, then call [`mark_done`](super::Gate::mark_done), or
    /// [`release`](super::Gate::release) if that failed.
    Ready(IncomingEvent<T>),
    /// The preceding event is not handled yet. The gate buffers this one.
    Wait,
    /// The event was handled or skipped, is in progress, or waits already.
    Duplicate,
    /// The order of the object has a hole before it, and the gate does not buffer it.
    Returned(ReturnedEvent<T>),
}

/// An event that is returned to the consumer, because its predecessor is missing or wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnedEvent<T> {
    /// The returned event. Its `prev` is the missing event, or contradicts the object's position.
    pub event: IncomingEvent<T>,
    /// Why the gate cannot keep the event.
    pub reason: ReturnReason,
}

/// Why a gate returns an event with a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReturnReason {
    /// The buffer of the gate or of the object is full. Pass the event to the gate again when there is space.
    BufferFull,
    /// The event is newer than the last handled one, but its predecessor is neither that one nor a newer one.
    Fork,
}

/// A missing event that buffered events wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEvent {
    /// The object.
    pub object: TenantObjectKey,
    /// The id of the missing event.
    pub missing_id: EventId,
    /// The events that wait for it, in order. [`skip_to`](super::Gate::skip_to) takes the first of them.
    pub waiting_ids: Vec<EventId>,
    /// When the first of them was received.
    pub waiting_since: Instant,
}
