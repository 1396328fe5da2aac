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
    /// The preceding event of the object is not handled yet. The gate buffers the event until then.
    Wait,
    /// The event was handled or skipped, is in progress, or waits already.
    Duplicate,
    /// The event cannot be handled yet, or not at all, and the gate does not buffer it: the consumer has it back.
    Returned(ReturnedEvent<T>),
}

/// An event that a gate returns to the consumer without buffering it, because its predecessor is missing or wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnedEvent<T> {
    /// The returned event. Its `prev` is the missing event, or contradicts the object's position.
    pub event: IncomingEvent<T>,
    /// Why the gate does not buffer the event.
    pub reason: ReturnReason,
}

/// Why a gate returns an event instead of buffering it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReturnReason {
    /// The buffer of the gate or of the object is full. Pass the event to the gate again when there is space.
    BufferFull,
    /// The event contradicts the order of its object: its `prev` is older than the last handled event, missing, or not
    /// older than the event itself, or another event with the same `prev` is in progress. Waiting does not help.
    Fork,
}

/// A missing event that buffered events wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEvent {
    /// The object.
    pub object: TenantObjectKey,
    /// The id of the missing event.
    pub missing_id: EventId,
    /// The events that wait for the missing event, in order. Pass the first of them to
    /// [`skip_to`](super::Gate::skip_to) to skip the missing event.
    pub waiting_ids: Vec<EventId>,
    /// When the first waiting event was received.
    pub waiting_since: Instant,
}
