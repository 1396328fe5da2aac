//! Events: the typed ones that a program emits, and the raw ones that the journal holds.

use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;

use pointsman_core::event::MAX_DEPTH;
use pointsman_core::{Cause, HandlingKey, Json, NewEvent, ObjectKey, Priority, Timestamp, names, wire};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::emit::{BadEvent, Emit};

/// A fact: something happened to an object. Derived for plain structs:
///
/// ```
/// use pointsman::Event;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Event, Serialize, Deserialize)]
/// #[event(type = "record.published", key = "record:{id}")]
/// struct RecordPublished {
///     id: u64,
///     title: String,
/// }
///
/// let event = RecordPublished { id: 1, title: "Hello".into() };
/// assert_eq!(RecordPublished::TYPE, "record.published");
/// assert_eq!(event.key().as_deref(), Some("record:1"));
/// ```
///
/// | attribute | what it says |
/// |---|---|
/// | `type = "record.published"` | the handling key: dot-separated segments, from the general to the special |
/// | `key = "record:{id}"` | the object it happened to. Holes are fields that implement `Display`; a format may follow: `{id:08}` |
/// | `key = self.object_key()` | the same by an expression that is a `String`, a `&str`, or an `Option` of one |
/// | `sub = …` | a part of the object; order follows the key alone |
/// | `priority = 200` | 1 to 9000, higher first; 100 if nothing is said |
///
/// Names are checked when the program is compiled:
///
/// ```compile_fail
/// # use pointsman::Event;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Event, Serialize, Deserialize)]
/// #[event(type = "record..published")]
/// struct RecordPublished;
/// ```
///
/// ```compile_fail
/// # use pointsman::Event;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Event, Serialize, Deserialize)]
/// #[event(type = "record.published", key = "record:{idd}")]
/// struct RecordPublished { id: u64 }
/// ```
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The handling key.
    const TYPE: &'static str;
    /// How urgent its tasks are, where it says so.
    const PRIORITY: Option<u16> = None;

    /// What it happened to. Events of one object are ordered among themselves.
    fn key(&self) -> Option<String> {
        None
    }

    /// A part of the object.
    fn sub(&self) -> Option<String> {
        None
    }
}

/// What an expression in `key = …` may be.
pub trait IntoKey {
    fn into_key(self) -> Option<String>;
}

impl IntoKey for String {
    fn into_key(self) -> Option<String> {
        Some(self)
    }
}

impl IntoKey for &str {
    fn into_key(self) -> Option<String> {
        Some(self.into())
    }
}

impl<K: IntoKey> IntoKey for Option<K> {
    fn into_key(self) -> Option<String> {
        self.and_then(K::into_key)
    }
}

/// An event as the journal holds it: with its id, its `prev`, and a payload that nobody has looked at. For
/// handlers of several types, and for those who watch.
#[derive(Clone, Debug, PartialEq)]
pub struct Raw(pub(crate) Arc<pointsman_core::Event>);

impl Raw {
    /// Whether it is of this type or of one below it.
    pub fn is<E: Event>(&self) -> bool {
        self.kind.is_under(E::TYPE)
    }

    /// The payload as a value of any type.
    pub fn to<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        self.value.to()
    }
}

impl Deref for Raw {
    type Target = pointsman_core::Event;
    fn deref(&self) -> &pointsman_core::Event {
        &self.0
    }
}

/// A typed event as the store takes it, held to the limits that every other way of emitting has.
pub(crate) fn describe<E: Event>(
    event: &E,
    how: &Emit,
    cause: Option<Cause>,
    now: Timestamp,
) -> Result<NewEvent, BadEvent> {
    let fault = |what: &dyn Display| BadEvent::new(E::TYPE, what);
    let kind = HandlingKey::new(E::TYPE).map_err(|e| fault(&e))?;
    names::check_emittable(&kind).map_err(|reserved| fault(&reserved))?;
    if cause.is_some_and(|cause| cause.depth > MAX_DEPTH) {
        return Err(fault(&format!(
            "an event storm: {MAX_DEPTH} events have caused each other up to this one"
        )));
    }
    let name = |text: Option<String>| text.map(ObjectKey::new).transpose().map_err(|e| fault(&e));
    let value = Json::of(event).map_err(|e| fault(&e))?;
    if value.as_str().len() > wire::MAX_VALUE {
        return Err(fault(&format!("a value has at most {} bytes of JSON", wire::MAX_VALUE)));
    }
    let priority = how.priority.or(E::PRIORITY).map(|number| Priority::try_from(i64::from(number)));
    Ok(NewEvent {
        kind,
        key: name(event.key())?,
        sub: name(event.sub())?,
        value,
        context: how.checked_context().map_err(|e| fault(&e))?,
        tenant: how.checked_tenant().map_err(|e| fault(&e))?,
        due: how.due(now),
        priority: priority.transpose().map_err(|e| fault(&e))?.unwrap_or_default(),
        cause,
        planned: None,
    })
}
