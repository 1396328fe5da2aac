//! Options and results of emitting an event.

use std::time::Duration;

use pointsman_core::event::{MAX_CONTEXT_ENTRIES, MAX_CONTEXT_STRING_BYTES};
use pointsman_core::names::BadName;
use pointsman_core::store::{EmitReceipt, EmittedEventReceipt, IdempotencyKey};
use pointsman_core::{Context, EventId, NewEvent, TaskId, Tenant, Timestamp};
use sha2::{Digest, Sha256};

use crate::RequestContext;

/// Options for emitting an event. By default it is due now, has no context, and belongs to the default tenant.
#[derive(Clone, Debug, Default)]
pub struct EmitOptions {
    pub(crate) context: Option<Context>,
    pub(crate) delay: Option<Duration>,
    pub(crate) priority: Option<u16>,
    pub(crate) tenant: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

impl EmitOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the request that the event comes from.
    pub fn context(self, context: RequestContext) -> Self {
        Self { context: Some(context.into()), ..self }
    }

    /// Delays the event's tasks.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// Sets the priority of the event's tasks, 1 to 9000, higher first; it overrides the priority of the event type.
    pub fn priority(self, priority: u16) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Sets the tenant. Objects, lanes and idempotency keys of different tenants are independent.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { tenant: Some(tenant.into()), ..self }
    }

    /// Sets a key for an emit that may be repeated: a repeat returns the result of the first, and there is one event.
    /// Only for `Bus::emit_with`: a unit of work or an attempt emits each event once anyway.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    pub(crate) fn due_time(&self, now: Timestamp) -> Option<Timestamp> {
        self.delay.map(|delay| now.plus(delay))
    }

    pub(crate) fn parse_tenant(&self) -> Result<Tenant, BadName> {
        self.tenant.as_ref().map_or_else(|| Ok(Tenant::default()), Tenant::new)
    }

    /// Returns the context if it is within the limits.
    pub(crate) fn validate_context(&self) -> Result<Context, String> {
        let context = self.context.clone().unwrap_or_default();
        check_context_limits(&context)?;
        Ok(context)
    }

    /// Rejects an idempotency key, for emits that do not support one.
    pub(crate) fn reject_idempotency_key(&self, event_type: &'static str) -> Result<(), InvalidEvent> {
        match &self.idempotency_key {
            None => Ok(()),
            Some(_) => Err(InvalidEvent::new(event_type, &"only `Bus::emit_with` takes an idempotency key")),
        }
    }

    /// The idempotency key and a digest of the whole event. The digest contains the delay instead of the due time,
    /// which differs with every repeat.
    pub(crate) fn build_idempotency_key(
        &self,
        event: &NewEvent,
    ) -> Result<Option<IdempotencyKey>, InvalidEvent> {
        let Some(key) = &self.idempotency_key else { return Ok(None) };
        if key.is_empty() || key.len() > MAX_IDEMPOTENCY_KEY_BYTES || key.chars().any(char::is_control) {
            let reason = format!(
                "an idempotency key has 1 to {MAX_IDEMPOTENCY_KEY_BYTES} bytes and no control characters"
            );
            return Err(InvalidEvent::new(event.event_type.as_str(), &reason));
        }
        let mut hash = Sha256::new();
        let mut add_part = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        add_part(event.event_type.as_str());
        add_part(event.key.as_ref().map_or("", |key| key.as_str()));
        add_part(event.sub_object.as_ref().map_or("", |sub| sub.as_str()));
        add_part(event.value.as_str());
        add_part(&event.priority.get().to_string());
        add_part(&self.delay.unwrap_or_default().as_nanos().to_string());
        event.context.iter().flat_map(|(name, value)| [name, value]).for_each(|text| add_part(text));
        Ok(Some(IdempotencyKey {
            tenant: event.tenant.clone(),
            key: key.clone(),
            request_digest: hash.finalize().into(),
        }))
    }
}

/// Checks a context against the limits of entries and bytes.
pub(crate) fn check_context_limits(context: &Context) -> Result<(), String> {
    if context.len() > MAX_CONTEXT_ENTRIES {
        return Err(format!(
            "a context has at most {MAX_CONTEXT_ENTRIES} entries, this one has {}",
            context.len()
        ));
    }
    for text in context.iter().flat_map(|(name, value)| [name, value]) {
        if text.len() > MAX_CONTEXT_STRING_BYTES {
            return Err(format!(
                "a name or a value in a context has at most {MAX_CONTEXT_STRING_BYTES} bytes"
            ));
        }
        if text.contains('\0') {
            return Err("a context cannot contain NUL characters".into());
        }
    }
    Ok(())
}

/// The longest idempotency key, in bytes.
const MAX_IDEMPOTENCY_KEY_BYTES: usize = 255;

/// An event that is now in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmittedEvent {
    /// The event's id, larger than that of every earlier event.
    pub id: EventId,
    /// The preceding event of the same object.
    pub prev: Option<EventId>,
    /// One task for each handler that the event is routed to.
    pub tasks: Vec<TaskId>,
    /// Whether the idempotency key was used before; then the event is the one that the first emit stored.
    pub is_repeat: bool,
}

impl EmittedEvent {
    pub(crate) fn from_receipt(receipt: EmitReceipt) -> Vec<Self> {
        let is_repeat = receipt.repeated;
        let to_emitted = |EmittedEventReceipt { id, prev, tasks }| Self { id, prev, tasks, is_repeat };
        receipt.events.into_iter().map(to_emitted).collect()
    }
}

/// Why an event cannot be emitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event_type} cannot be emitted: {reason}")]
pub struct InvalidEvent {
    event_type: String,
    reason: String,
}

impl InvalidEvent {
    pub(crate) fn new(event_type: &str, reason: &dyn std::fmt::Display) -> Self {
        Self { event_type: event_type.into(), reason: reason.to_string() }
    }
}

/// Why an emit failed. An invalid event is not stored; after a store error the event may or may not be stored.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The event cannot be emitted.
    #[error(transparent)]
    InvalidEvent(#[from] InvalidEvent),
    /// The engine or the store did not acknowledge the event.
    #[error(transparent)]
    EmitFailed(#[from] pointsman_engine::EmitError),
}
