//! Validated names: a value of one of these types has been checked and need not be checked again.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a name is invalid, as a text for the person who chose it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadName(String);

impl BadName {
    pub(crate) fn with_reason(why: String) -> Self {
        Self(why)
    }
}

/// The longest event type, in bytes.
pub const MAX_EVENT_TYPE_BYTES: usize = 255;
/// The longest object key, in bytes.
pub const MAX_OBJECT_KEY_BYTES: usize = 512;
/// The longest tenant, handler, source, collection or schedule name, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// The type of an event: dot-separated segments, from the general to the special (`record.published`).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventType(Arc<str>);

impl EventType {
    /// Validates an event type.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > MAX_EVENT_TYPE_BYTES {
            return Err(BadName(format!(
                "a type has 1 to {MAX_EVENT_TYPE_BYTES} bytes, this one has {}",
                text.len()
            )));
        }
        for segment in text.split('.') {
            if segment.is_empty() {
                return Err(BadName(format!("{text:?} has an empty segment between its dots")));
            }
            if let Some(bad) =
                segment.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
            {
                return Err(BadName(format!(
                    "{text:?} contains {bad:?}; a type is made of letters, digits, `_`, `-` and dots"
                )));
            }
        }
        Ok(Self(text.into()))
    }

    /// The type as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This type and its ancestors, the most general first: `a`, `a.b`, `a.b.c`.
    pub fn self_and_ancestors(&self) -> impl Iterator<Item = &str> {
        let text = &*self.0;
        text.match_indices('.').map(|(dot, _)| &text[..dot]).chain(std::iter::once(text))
    }

    /// Whether this type is `ancestor` or a descendant of it. Whole segments are compared: `records.x` is no descendant
    /// of `record`.
    pub fn is_same_or_descendant_of(&self, ancestor: &str) -> bool {
        self.0.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// The key of the object that an event is about (`record:1`). Events of one object are ordered among themselves.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// Validates a key.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > MAX_OBJECT_KEY_BYTES {
            return Err(BadName(format!(
                "a key has 1 to {MAX_OBJECT_KEY_BYTES} bytes, this one has {}",
                text.len()
            )));
        }
        if let Some(bad) = text.chars().find(|c| c.is_control()) {
            return Err(BadName(format!("a key holds no control characters, this one has {bad:?}")));
        }
        Ok(Self(text.into()))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const DEFAULT_TENANT: &str = "default";

/// The tenant that owns an event. Objects, lanes, idempotency keys and rules are scoped by tenant.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// Validates a tenant's name.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        check_plain_name("tenant", text.as_ref()).map(|()| Self(text.as_ref().into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ObjectKey {
    /// Wraps a key that was checked before, or that consists of checked names, without checking it again.
    pub fn from_trusted(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().into())
    }
}

impl Tenant {
    /// Whether this is the default tenant, to which events without a tenant belong.
    pub fn is_default(&self) -> bool {
        self.as_str() == DEFAULT_TENANT
    }

    /// The tenant of engine events that belong to no tenant. No producer can name it.
    pub fn no_tenant() -> Self {
        Self("".into())
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self(DEFAULT_TENANT.into())
    }
}

/// The name of a handler. Handlers, sources and schedules share one namespace.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HandlerName(Arc<str>);

impl HandlerName {
    /// Validates the name of a handler or a source.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        check_plain_name("name", text.as_ref()).map(|()| Self(text.as_ref().into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a collection: a part of a source that is synchronised separately.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionName(Arc<str>);

impl CollectionName {
    /// Validates the name of a collection.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        check_plain_name("collection", text.as_ref()).map(|()| Self(text.as_ref().into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a schedule: its own, or `source/collection` for that of a collection.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScheduleName(Arc<str>);

impl ScheduleName {
    /// Validates the name of a schedule.
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        let text = text.as_ref();
        match text.split_once('/') {
            Some((source, collection)) => {
                check_plain_name("source", source)?;
                check_plain_name("collection", collection)?;
            }
            None => check_plain_name("schedule's name", text)?,
        }
        Ok(Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A source and one of its collections. Each is synchronised by one task at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceCollection {
    /// The source.
    pub source: HandlerName,
    /// The collection of the source.
    pub collection: CollectionName,
}

impl SourceCollection {
    /// The name of the collection's schedule: `source/collection`.
    pub fn schedule_name(&self) -> ScheduleName {
        ScheduleName(self.to_string().into())
    }
}

impl fmt::Display for SourceCollection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.collection)
    }
}

impl std::str::FromStr for SourceCollection {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let Some((source, collection)) = text.split_once('/') else {
            return Err(BadName(format!("{text:?} is not a pair; write `source/collection`")));
        };
        Ok(Self { source: HandlerName::new(source)?, collection: CollectionName::new(collection)? })
    }
}

/// Checks a name of letters, digits, `.`, `_` and `-`; `noun` says in the error what it names.
fn check_plain_name(noun: &str, text: &str) -> Result<(), BadName> {
    if text.is_empty() || text.len() > MAX_NAME_BYTES {
        return Err(BadName(format!(
            "a {noun} has 1 to {MAX_NAME_BYTES} bytes, this one has {}",
            text.len()
        )));
    }
    match text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))) {
        Some(bad) => Err(BadName(format!(
            "{text:?} contains {bad:?}; a {noun} is made of letters, digits, `.`, `_` and `-`"
        ))),
        None => Ok(()),
    }
}

/// Implements formatting and serialisation as plain text for names; deserialisation checks them again.
macro_rules! impl_text_traits {
    ($($name:ident),+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(&self.0)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                Self::new(text).map_err(serde::de::Error::custom)
            }
        }
        impl std::str::FromStr for $name {
            type Err = BadName;
            fn from_str(text: &str) -> Result<Self, BadName> {
                Self::new(text)
            }
        }
    )+};
}
impl_text_traits!(EventType, ObjectKey, Tenant, HandlerName, CollectionName, ScheduleName);

/// The event types of the engine itself, and their ancestors. Producers may not emit them.
pub const ENGINE_EVENT_TYPES: &[&str] = &[
    "Event",
    "SchedulerEvent",
    "SchedulerStateChanged",
    "SchedulerClosed",
    "FileBasedEvent",
    "FileBasedAdded",
    "FileBasedRemoved",
    "FileBasedReplaced",
    "FileBasedActivated",
    "OrderEvent",
    "OrderStarted",
    "OrderFinished",
    "OrderStepStarted",
    "OrderStepEnded",
    "OrderSetBack",
    "OrderNodeChanged",
    "OrderSuspended",
    "OrderResumed",
    "OrderStatisticsChanged",
    "JobChainEvent",
    "JobChainStateChanged",
    "JobChainNodeActionChanged",
    "TaskEvent",
    "TaskStarted",
    "TaskEnded",
    "TaskClosed",
];

/// The names of the frames that the event stream itself sends. An event of such a type would be mistaken for one of
/// them, so producers may not emit it; descendants of these types are allowed.
pub const STREAM_FRAME_TYPES: &[&str] = &["Torn", "task"];

/// Why producers may not emit events of a well-formed type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReservedEventTypeError {
    /// The type of an engine event.
    #[error("only the engine itself emits {0}")]
    EngineEvent(EventType),
    /// The name of a frame of the event stream.
    #[error("{0} is the name of a frame of the event stream; use another type, such as {0}.changed")]
    StreamFrame(EventType),
}

/// Rejects the types that only the engine may emit, and those that the event stream uses itself.
pub fn check_emittable_type(event_type: &EventType) -> Result<(), ReservedEventTypeError> {
    if is_engine_event_type(event_type) {
        return Err(ReservedEventTypeError::EngineEvent(event_type.clone()));
    }
    match STREAM_FRAME_TYPES.contains(&event_type.as_str()) {
        true => Err(ReservedEventTypeError::StreamFrame(event_type.clone())),
        false => Ok(()),
    }
}

/// Whether this is a type of the engine's own events.
pub fn is_engine_event_type(event_type: &EventType) -> bool {
    // Few other types begin with a capital letter, so most need not be compared with the list.
    let begins_with_capital = event_type.as_str().starts_with(|first: char| first.is_ascii_uppercase());
    begins_with_capital
        && event_type.self_and_ancestors().next().is_some_and(|root| ENGINE_EVENT_TYPES.contains(&root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_of_an_event_type_go_from_the_general_to_the_special() {
        let key = EventType::new("a.b.c").unwrap();
        assert_eq!(key.self_and_ancestors().collect::<Vec<_>>(), ["a", "a.b", "a.b.c"]);
    }

    #[test]
    fn event_types_are_compared_by_segment() {
        let key = EventType::new("records.x").unwrap();
        assert!(key.is_same_or_descendant_of("records"));
        assert!(key.is_same_or_descendant_of("records.x"));
        assert!(!key.is_same_or_descendant_of("record"));
        assert!(!EventType::new("record").unwrap().is_same_or_descendant_of("record.x"));
    }

    #[test]
    fn invalid_event_types_are_rejected() {
        for bad in ["", ".", "a.", ".a", "a..b", "a b", "a/b", "é", "a\n", &"x".repeat(256)] {
            assert!(EventType::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn object_keys_may_contain_anything_but_control_characters() {
        for good in ["record:1", "../x", "a#b", "ключ", "a b"] {
            assert!(ObjectKey::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "a\r\nb", "a\0", "\u{7f}", &"x".repeat(513)] {
            assert!(ObjectKey::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_source_collection_round_trips_and_names_its_schedule() {
        let source_collection: SourceCollection = "shop/orders".parse().unwrap();
        assert_eq!(source_collection.to_string().parse::<SourceCollection>().unwrap(), source_collection);
        assert_eq!(source_collection.schedule_name(), ScheduleName::new("shop/orders").unwrap());
        for bad in ["shop", "shop/", "/orders", "a/b/c", "a b/c"] {
            assert!(bad.parse::<SourceCollection>().is_err(), "{bad:?}");
        }
        for bad in ["", "a/b/c", "a b", "/"] {
            assert!(ScheduleName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn engine_event_types_their_descendants_and_frame_names_are_reserved() {
        let check = |event_type: &str| check_emittable_type(&EventType::new(event_type).unwrap());
        assert!(matches!(check("OrderStarted"), Err(ReservedEventTypeError::EngineEvent(_))));
        assert!(matches!(check("Event.mine"), Err(ReservedEventTypeError::EngineEvent(_))));
        assert_eq!(check("order.started"), Ok(()));
        for frame in STREAM_FRAME_TYPES {
            assert!(matches!(check(frame), Err(ReservedEventTypeError::StreamFrame(_))), "{frame}");
            assert_eq!(check(&format!("{frame}.done")), Ok(()));
            assert!(!is_engine_event_type(&EventType::new(*frame).unwrap()));
        }
        assert_eq!((check("Task"), check("torn")), (Ok(()), Ok(())));
    }
}
