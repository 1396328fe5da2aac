//! Validated names. Once one of these exists, the rest of the system need not look at its characters again.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a name was refused, in words for the person who chose it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadName(String);

impl BadName {
    pub(crate) fn because(why: String) -> Self {
        Self(why)
    }
}

/// The longest handling key, in bytes.
pub const MAX_TYPE: usize = 255;
/// The longest object key, in bytes.
pub const MAX_KEY: usize = 512;
/// The longest tenant, handler, source, collection or schedule name, in bytes.
pub const MAX_NAME: usize = 128;

/// The type of an event: dot-separated segments, from the general to the special (`record.published`).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HandlingKey(Arc<str>);

impl HandlingKey {
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > MAX_TYPE {
            return Err(BadName(format!("a type has 1 to {MAX_TYPE} bytes, this one has {}", text.len())));
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

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This key and all that stand above it, the most general first: `a`, `a.b`, `a.b.c`.
    pub fn lineage(&self) -> impl Iterator<Item = &str> {
        let text = &*self.0;
        text.match_indices('.').map(|(dot, _)| &text[..dot]).chain(std::iter::once(text))
    }

    /// Whether this key is `ancestor` or stands below it. Segments count, not characters: `records.x` is no
    /// child of `record`.
    pub fn is_under(&self, ancestor: &str) -> bool {
        self.0.strip_prefix(ancestor).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// What an event happened to (`record:1`). Events of one object are ordered among themselves.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        let text = text.as_ref();
        if text.is_empty() || text.len() > MAX_KEY {
            return Err(BadName(format!("a key has 1 to {MAX_KEY} bytes, this one has {}", text.len())));
        }
        if let Some(bad) = text.chars().find(|c| c.is_control()) {
            return Err(BadName(format!("a key holds no control characters, this one has {bad:?}")));
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const DEFAULT_TENANT: &str = "default";

/// Whose event it is. Objects, lanes, idempotency keys and rules are scoped by it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

impl Tenant {
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        plain_name("tenant", text.as_ref()).map(|()| Self(text.as_ref().into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ObjectKey {
    /// A key that has been checked already, or is made of names that have.
    pub fn trusted(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().into())
    }
}

impl Tenant {
    /// Whether it is the one that nobody has to name.
    pub fn is_default(&self) -> bool {
        self.as_str() == DEFAULT_TENANT
    }

    /// Whose those of the engine's own events are that are no tenant's. No producer can name it.
    pub fn nobody() -> Self {
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
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        plain_name("name", text.as_ref()).map(|()| Self(text.as_ref().into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A part of a source that is synchronised by itself.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CollectionName(Arc<str>);

impl CollectionName {
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        plain_name("collection", text.as_ref()).map(|()| Self(text.as_ref().into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a schedule: its own, or `source/collection` for that of a collection.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScheduleName(Arc<str>);

impl ScheduleName {
    pub fn new(text: impl AsRef<str>) -> Result<Self, BadName> {
        let text = text.as_ref();
        match text.split_once('/') {
            Some((source, collection)) => {
                plain_name("source", source)?;
                plain_name("collection", collection)?;
            }
            None => plain_name("schedule's name", text)?,
        }
        Ok(Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A source and one of its collections: what is synchronised one task at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pair {
    pub source: HandlerName,
    pub collection: CollectionName,
}

impl Pair {
    /// What its schedule is called.
    pub fn schedule(&self) -> ScheduleName {
        ScheduleName(self.to_string().into())
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.collection)
    }
}

impl std::str::FromStr for Pair {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        let Some((source, collection)) = text.split_once('/') else {
            return Err(BadName(format!("{text:?} is not a pair; write `source/collection`")));
        };
        Ok(Self { source: HandlerName::new(source)?, collection: CollectionName::new(collection)? })
    }
}

fn plain_name(what: &str, text: &str) -> Result<(), BadName> {
    if text.is_empty() || text.len() > MAX_NAME {
        return Err(BadName(format!("a {what} has 1 to {MAX_NAME} bytes, this one has {}", text.len())));
    }
    match text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))) {
        Some(bad) => Err(BadName(format!(
            "{text:?} contains {bad:?}; a {what} is made of letters, digits, `.`, `_` and `-`"
        ))),
        None => Ok(()),
    }
}

/// What every name has: it shows and serialises as its text, and is checked again on the way in.
macro_rules! text_name {
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
text_name!(HandlingKey, ObjectKey, Tenant, HandlerName, CollectionName, ScheduleName);

/// The event types of the engine itself, and their ancestors. Nobody else may emit them.
pub const RESERVED_TYPES: &[&str] = &[
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

/// The names of the event stream's own frames. An event of such a type would be taken for one, so nobody may emit it;
/// types below them are allowed.
pub const FRAME_TYPES: &[&str] = &["Torn", "task"];

/// Why a well-formed type may not be emitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReservedType {
    #[error("only the engine itself emits {0}")]
    Engine(HandlingKey),
    #[error("{0} is the name of a frame of the event stream; use another type, such as {0}.changed")]
    Frame(HandlingKey),
}

/// Refuses the types that only the engine may emit, and those that the event stream uses itself.
pub fn check_emittable(kind: &HandlingKey) -> Result<(), ReservedType> {
    if is_engine_type(kind) {
        return Err(ReservedType::Engine(kind.clone()));
    }
    match FRAME_TYPES.contains(&kind.as_str()) {
        true => Err(ReservedType::Frame(kind.clone())),
        false => Ok(()),
    }
}

/// Whether this is a type of the engine's own events.
pub fn is_engine_type(kind: &HandlingKey) -> bool {
    // Hardly any other type begins with a capital, so that most need not be compared with them all.
    let capital = kind.as_str().starts_with(|first: char| first.is_ascii_uppercase());
    capital && kind.lineage().next().is_some_and(|root| RESERVED_TYPES.contains(&root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lineage_goes_from_the_general_to_the_special() {
        let key = HandlingKey::new("a.b.c").unwrap();
        assert_eq!(key.lineage().collect::<Vec<_>>(), ["a", "a.b", "a.b.c"]);
    }

    #[test]
    fn ancestry_is_by_segment() {
        let key = HandlingKey::new("records.x").unwrap();
        assert!(key.is_under("records"));
        assert!(key.is_under("records.x"));
        assert!(!key.is_under("record"));
        assert!(!HandlingKey::new("record").unwrap().is_under("record.x"));
    }

    #[test]
    fn bad_types_are_refused() {
        for bad in ["", ".", "a.", ".a", "a..b", "a b", "a/b", "é", "a\n", &"x".repeat(256)] {
            assert!(HandlingKey::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn keys_hold_anything_but_control_characters() {
        for good in ["record:1", "../x", "a#b", "ключ", "a b"] {
            assert!(ObjectKey::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", "a\r\nb", "a\0", "\u{7f}", &"x".repeat(513)] {
            assert!(ObjectKey::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_pair_reads_back_and_names_its_schedule() {
        let pair: Pair = "shop/orders".parse().unwrap();
        assert_eq!(pair.to_string().parse::<Pair>().unwrap(), pair);
        assert_eq!(pair.schedule(), ScheduleName::new("shop/orders").unwrap());
        for bad in ["shop", "shop/", "/orders", "a/b/c", "a b/c"] {
            assert!(bad.parse::<Pair>().is_err(), "{bad:?}");
        }
        for bad in ["", "a/b/c", "a b", "/"] {
            assert!(ScheduleName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn reserved_types_cover_their_children() {
        let check = |kind: &str| check_emittable(&HandlingKey::new(kind).unwrap());
        assert!(matches!(check("OrderStarted"), Err(ReservedType::Engine(_))));
        assert!(matches!(check("Event.mine"), Err(ReservedType::Engine(_))));
        assert_eq!(check("order.started"), Ok(()));
        for frame in FRAME_TYPES {
            assert!(matches!(check(frame), Err(ReservedType::Frame(_))), "{frame}");
            assert_eq!(check(&format!("{frame}.done")), Ok(()));
            assert!(!is_engine_type(&HandlingKey::new(*frame).unwrap()));
        }
        assert_eq!((check("Task"), check("torn")), (Ok(()), Ok(())));
    }
}
