//! How an event is emitted, and what comes of it.

use std::time::Duration;

use pointsman_core::event::{MAX_CONTEXT_BYTES, MAX_CONTEXT_ENTRIES};
use pointsman_core::names::BadName;
use pointsman_core::store::{Idempotency, Receipt, Sequenced};
use pointsman_core::{Context, EventId, NewEvent, TaskId, Tenant, Timestamp};
use sha2::{Digest, Sha256};

use crate::RequestContext;

/// How an event is emitted, where it matters. The default is: now, without context, for the default tenant.
#[derive(Clone, Debug, Default)]
pub struct Emit {
    pub(crate) context: Option<Context>,
    pub(crate) delay: Option<Duration>,
    pub(crate) priority: Option<u16>,
    pub(crate) tenant: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

impl Emit {
    pub fn new() -> Self {
        Self::default()
    }

    /// Who and what stood around the event.
    pub fn context(self, context: RequestContext) -> Self {
        Self { context: Some(context.into()), ..self }
    }

    /// Its tasks fall due this much later.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// 1 to 9000, higher first; above what the event's type says.
    pub fn priority(self, priority: u16) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Whose event it is. Objects, lanes and idempotency keys of two tenants have nothing to do with each other.
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { tenant: Some(tenant.into()), ..self }
    }

    /// A key for an emit that may be repeated: the repeat gets the answer of the first, and there is one event.
    /// Only for `Bus::emit_with`: what a unit of work or an attempt emits exists once anyway.
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    pub(crate) fn due(&self, now: Timestamp) -> Option<Timestamp> {
        self.delay.map(|delay| now.plus(delay))
    }

    pub(crate) fn checked_tenant(&self) -> Result<Tenant, BadName> {
        self.tenant.as_ref().map_or_else(|| Ok(Tenant::default()), Tenant::new)
    }

    /// The context, held to the limits that every other way of emitting has.
    pub(crate) fn checked_context(&self) -> Result<Context, String> {
        let context = self.context.clone().unwrap_or_default();
        check_context(&context)?;
        Ok(context)
    }

    /// Refuses an idempotency key where nothing looks at it.
    pub(crate) fn without_idempotency(&self, kind: &'static str) -> Result<(), BadEvent> {
        match &self.idempotency_key {
            None => Ok(()),
            Some(_) => Err(BadEvent::new(kind, &"only `Bus::emit_with` takes an idempotency key")),
        }
    }

    /// The idempotency key and a digest of all that the event says. A delay counts as it was asked for: the
    /// instant it comes to differs with every repeat.
    pub(crate) fn idempotency(&self, event: &NewEvent) -> Result<Option<Idempotency>, BadEvent> {
        let Some(key) = &self.idempotency_key else { return Ok(None) };
        if key.is_empty() || key.len() > MAX_IDEMPOTENCY_KEY || key.chars().any(char::is_control) {
            let what =
                format!("an idempotency key has 1 to {MAX_IDEMPOTENCY_KEY} bytes and no control characters");
            return Err(BadEvent::new(event.kind.as_str(), &what));
        }
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        part(event.kind.as_str());
        part(event.key.as_ref().map_or("", |key| key.as_str()));
        part(event.sub.as_ref().map_or("", |sub| sub.as_str()));
        part(event.value.as_str());
        part(&event.priority.get().to_string());
        part(&self.delay.unwrap_or_default().as_nanos().to_string());
        event.context.iter().flat_map(|(name, value)| [name, value]).for_each(|text| part(text));
        Ok(Some(Idempotency {
            tenant: event.tenant.clone(),
            key: key.clone(),
            digest: hash.finalize().into(),
        }))
    }
}

/// Holds a context to its limits.
pub(crate) fn check_context(context: &Context) -> Result<(), String> {
    if context.len() > MAX_CONTEXT_ENTRIES {
        return Err(format!(
            "a context has at most {MAX_CONTEXT_ENTRIES} entries, this one has {}",
            context.len()
        ));
    }
    for text in context.iter().flat_map(|(name, value)| [name, value]) {
        if text.len() > MAX_CONTEXT_BYTES {
            return Err(format!("a name or a value in a context has at most {MAX_CONTEXT_BYTES} bytes"));
        }
        if text.contains('\0') {
            return Err("a context holds no NUL characters".into());
        }
    }
    Ok(())
}

/// The longest idempotency key, in bytes.
const MAX_IDEMPOTENCY_KEY: usize = 255;

/// An event that now stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    pub id: EventId,
    /// The preceding event of the same object.
    pub prev: Option<EventId>,
    /// One task for each handler it goes to.
    pub tasks: Vec<TaskId>,
    /// Its idempotency key was used before: this is what came of it then.
    pub repeated: bool,
}

impl Emitted {
    pub(crate) fn all(receipt: Receipt) -> Vec<Self> {
        let repeated = receipt.repeated;
        let one = |Sequenced { id, prev, tasks }| Self { id, prev, tasks, repeated };
        receipt.events.into_iter().map(one).collect()
    }
}

/// Why an event cannot be emitted as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {fault}")]
pub struct BadEvent {
    kind: String,
    fault: String,
}

impl BadEvent {
    pub(crate) fn new(kind: &str, fault: &dyn std::fmt::Display) -> Self {
        Self { kind: kind.into(), fault: fault.to_string() }
    }
}

/// Why an emit did not happen. Nothing of it was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EmitError {
    #[error(transparent)]
    Event(#[from] BadEvent),
    #[error(transparent)]
    NotJournaled(#[from] pointsman_engine::EmitError),
}
