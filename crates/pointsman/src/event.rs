//! Typed events that a program emits, and raw events of the journal.

use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;

use pointsman_core::event::MAX_CAUSE_DEPTH;
use pointsman_core::{
    Cause, EventType, Json, NewEvent, ObjectKey, Priority, Timestamp, event_json_parser, names,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::emit::{EmitOptions, InvalidEvent};

/// An event type of the program: something happened to an object. Derive it for plain structs:
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
/// | attribute | meaning |
/// |---|---|
/// | `type = "record.published"` | the event type: dot-separated segments, from the general to the specific |
/// | `key = "record:{id}"` | the object it happened to. Placeholders are fields that implement `Display`; a format may follow: `{id:08}` |
/// | `key = self.object_key()` | the same by an expression that is a `String`, a `&str`, or an `Option` of one |
/// | `sub = …` | a part of the object; the order depends on the key only |
/// | `priority = 200` | 1 to 9000, higher first; 100 by default |
///
/// Names are checked at compile time:
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
    /// The event type.
    const TYPE: &'static str;
    /// The priority of the event's tasks, if the type sets one.
    const PRIORITY: Option<u16> = None;

    /// The key of the object that the event happened to. Events of one object are ordered.
    fn key(&self) -> Option<String> {
        None
    }

    /// The key of a sub-object, a part of the object. The order of events follows `key` alone.
    fn sub(&self) -> Option<String> {
        None
    }
}

/// A value that an expression in `key = …` or `sub = …` may have.
pub trait IntoKey {
    /// The key, if there is one.
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

/// An event as it is in the journal: with its id, its `prev`, and the unparsed payload. For handlers of several types,
/// and for watches.
#[derive(Clone, Debug, PartialEq)]
pub struct RawEvent(pub(crate) Arc<pointsman_core::Event>);

impl RawEvent {
    /// Whether the event is of this type or a subtype.
    pub fn is<E: Event>(&self) -> bool {
        self.event_type.is_same_or_descendant_of(E::TYPE)
    }

    /// Parses the payload.
    pub fn parse_value<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        self.value.decode()
    }
}

impl Deref for RawEvent {
    type Target = pointsman_core::Event;
    fn deref(&self) -> &pointsman_core::Event {
        &self.0
    }
}

/// Turns a typed event into one for the store, and checks it against the limits.
pub(crate) fn to_new_event<E: Event>(
    event: &E,
    options: &EmitOptions,
    cause: Option<Cause>,
    now: Timestamp,
) -> Result<NewEvent, InvalidEvent> {
    let invalid = |reason: &dyn Display| InvalidEvent::new(E::TYPE, reason);
    let event_type = EventType::new(E::TYPE).map_err(|e| invalid(&e))?;
    names::check_emittable_type(&event_type).map_err(|reserved| invalid(&reserved))?;
    if cause.is_some_and(|cause| cause.depth > MAX_CAUSE_DEPTH) {
        return Err(invalid(&format!(
            "an event storm: it is the last of a chain of {MAX_CAUSE_DEPTH} events that caused each other; check for handlers that emit \
             what they handle"
        )));
    }
    let parse_key = |text: Option<String>| text.map(ObjectKey::new).transpose().map_err(|e| invalid(&e));
    let value = Json::from_value(event).map_err(|e| invalid(&e))?;
    if value.as_str().len() > event_json_parser::MAX_VALUE_BYTES {
        return Err(invalid(&format!(
            "a value has at most {} bytes of JSON",
            event_json_parser::MAX_VALUE_BYTES
        )));
    }
    let priority = options.priority.or(E::PRIORITY).map(|number| Priority::try_from(i64::from(number)));
    Ok(NewEvent {
        event_type,
        key: parse_key(event.key())?,
        sub_object: parse_key(event.sub())?,
        value,
        context: options.validate_context().map_err(|e| invalid(&e))?,
        tenant: options.parse_tenant().map_err(|e| invalid(&e))?,
        due: options.due_time(now),
        priority: priority.transpose().map_err(|e| invalid(&e))?.unwrap_or_default(),
        cause,
        planned_at: None,
    })
}
