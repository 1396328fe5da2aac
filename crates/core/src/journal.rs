//! Ranges and pages of the journal, filters of events and paths, and retention.

use std::sync::Arc;
use std::time::Duration;

use crate::{Event, EventId, EventType, ObjectKey, Tenant};

/// The range of event ids that observers can read: after `last_expired_event_id`, up to and including
/// `newest_event_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct JournalRange {
    /// All events up to and including this one have expired.
    pub last_expired_event_id: EventId,
    /// The newest event id.
    pub newest_event_id: EventId,
}

impl JournalRange {
    /// Whether a reader that continues after the cursor `after` would miss expired events, or the cursor is ahead of
    /// this journal.
    pub fn has_gap_after(&self, after: EventId) -> bool {
        after < self.last_expired_event_id || after > self.newest_event_id
    }
}

/// A page of events, read in one transaction.
#[derive(Clone, Debug)]
pub struct EventPage {
    /// The events that matched the filter, ascending by id (descending when read backwards).
    pub events: Vec<Arc<Event>>,
    /// The last id that was read, matching or not: the next page starts after it.
    pub last_scanned_event_id: EventId,
    /// The ids in the journal when the page was read.
    pub journal_range: JournalRange,
}

/// Selects events for an observer. The default selects all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFilter {
    /// Event types or their ancestors; an event matches if any of them matches. Empty: every type.
    pub event_types: Vec<EventType>,
    /// Only events whose key matches.
    pub path: PathFilter,
    /// Only events of this object, if given.
    pub key: Option<ObjectKey>,
    /// Only events of this tenant, if given.
    pub tenant: Option<Tenant>,
    /// Only events of the engine itself.
    pub engine_events_only: bool,
}

impl EventFilter {
    /// Whether the filter selects this event.
    pub fn matches(&self, event: &Event) -> bool {
        (self.event_types.is_empty()
            || self.event_types.iter().any(|wanted| event_type_matches(&event.event_type, wanted)))
            && self.key.as_ref().is_none_or(|key| event.key.as_ref() == Some(key))
            && self.tenant.as_ref().is_none_or(|tenant| event.tenant == *tenant)
            && (!self.engine_events_only || event.is_engine_event())
            && self.path.matches(event_path(event))
    }
}

/// The text of an event that a [`PathFilter`] is compared with: its key. For a FileBased event (key `Order:/a/b,1`) it
/// is the part after the kind, so that an observer of a folder sees the objects that are added and removed there.
fn event_path(event: &Event) -> &str {
    let key = event.key.as_ref().map_or("", |key| key.as_str());
    if event.is_engine_event() && event.event_type.as_str().starts_with("FileBased") {
        return key.split_once(':').map_or(key, |(_, path)| path);
    }
    key
}

/// Whether an event type is the wanted one or a descendant of the wanted one. The engine's types have their documented
/// ancestors; `Event` is the ancestor of all.
fn event_type_matches(event_type: &EventType, wanted: &EventType) -> bool {
    let wanted = wanted.as_str();
    wanted == "Event"
        || event_type.is_same_or_descendant_of(wanted)
        || engine_event_ancestor(event_type.as_str()) == Some(wanted)
}

/// The documented ancestor of an engine event's type; None for other types.
fn engine_event_ancestor(event_type: &str) -> Option<&'static str> {
    const ANCESTOR_BY_TYPE_PREFIX: [(&str, &str); 5] = [
        ("Scheduler", "SchedulerEvent"),
        ("FileBased", "FileBasedEvent"),
        ("Order", "OrderEvent"),
        ("JobChain", "JobChainEvent"),
        ("Task", "TaskEvent"),
    ];
    if !crate::names::ENGINE_EVENT_TYPES.contains(&event_type) {
        return None;
    }
    ANCESTOR_BY_TYPE_PREFIX
        .iter()
        .find(|(prefix, _)| event_type.starts_with(prefix))
        .map(|(_, ancestor)| *ancestor)
}

/// Selects keys by path: `/` everything, `/a/` the tree below, `/a/*` direct children, `/a` exactly that
/// (and, where it is a chain, its orders).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathFilter {
    /// Every key: `/`.
    #[default]
    Everything,
    /// The keys below a folder: `/a/`.
    Subtree(String),
    /// The direct children of a folder: `/a/*`.
    ChildrenOf(String),
    /// One key, and the orders of the chain of that path: `/a`.
    PathAndItsOrders(String),
}

/// The error of a text that is no [`PathFilter`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a path; write `/`, `/folder/`, `/folder/*` or `/folder/name`")]
pub struct BadPathFilter(String);

impl std::str::FromStr for PathFilter {
    type Err = BadPathFilter;
    fn from_str(text: &str) -> Result<Self, BadPathFilter> {
        let bad = text.contains("//")
            || text.chars().any(char::is_control)
            || text.len() > crate::names::MAX_OBJECT_KEY_BYTES
            || text.split('/').any(|step| step == "." || step == "..")
            // `*` means the children of a folder, so it can only be the last segment.
            || text.split('/').rev().skip(1).any(|step| step == "*");
        if !text.starts_with('/') || bad {
            return Err(BadPathFilter(text.into()));
        }
        Ok(match (text.strip_suffix("/*"), text.ends_with('/')) {
            _ if text == "/" => Self::Everything,
            (Some(folder), _) => Self::ChildrenOf(format!("{folder}/")),
            (None, true) => Self::Subtree(text.into()),
            (None, false) => Self::PathAndItsOrders(text.into()),
        })
    }
}

impl PathFilter {
    /// Whether the filter selects this key.
    pub fn matches(&self, key: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Subtree(folder) => key.starts_with(folder.as_str()),
            Self::ChildrenOf(folder) => {
                key.strip_prefix(folder.as_str()).is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
            }
            Self::PathAndItsOrders(path) => key
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || (rest.starts_with(',') && !path.contains(','))),
        }
    }
}

/// The limits by number and by age beyond which old rows are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The largest number of rows that are kept.
    pub max_count: u64,
    /// The largest age of a row that is kept.
    pub max_age: Duration,
}

impl Retention {
    /// The smallest `max_count` that the configuration allows for the journal.
    pub const MIN_JOURNAL_MAX_COUNT: u64 = 10_000;
}

impl Default for Retention {
    fn default() -> Self {
        Self { max_count: 1_000_000, max_age: Duration::from_secs(30 * 86_400) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_that_expired_or_is_ahead_has_a_gap() {
        let id = |n| EventId::new(n).unwrap();
        let range = JournalRange { last_expired_event_id: id(10), newest_event_id: id(20) };
        assert!(range.has_gap_after(id(9)));
        assert!(!range.has_gap_after(id(10)));
        assert!(!range.has_gap_after(id(20)));
        assert!(range.has_gap_after(id(21)));
        assert!(!JournalRange::default().has_gap_after(EventId::ZERO));
    }

    #[test]
    fn path_filters_match_trees_children_and_single_paths() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("/", &["", "record:1", "/a", "/a/b,1"], &[]),
            ("/a/", &["/a/b", "/a/b/c", "/a/b,1"], &["/a", "/ab/c", "a/b"]),
            ("/a/*", &["/a/b", "/a/b,1"], &["/a/b/c", "/a/", "/a"]),
            ("/a/chain", &["/a/chain", "/a/chain,1"], &["/a/chain2", "/a/chain/x"]),
            ("/a/chain,1", &["/a/chain,1"], &["/a/chain,12", "/a/chain", "/a/chain,1,2"]),
        ];
        for (path, matching, other) in cases {
            let filter: PathFilter = path.parse().unwrap();
            assert!(matching.iter().all(|key| filter.matches(key)), "{path}");
            assert!(!other.iter().any(|key| filter.matches(key)), "{path}");
        }
        for good in ["/*", "/a/*", "/a.b/..c/", "/a/b*", "/*a/b"] {
            assert!(good.parse::<PathFilter>().is_ok(), "{good:?}");
        }
        for bad in [
            "", "a", "//", "/a//b", "/a\n", "/.", "/..", "/a/../b/", "/a/./b", "/a/..", "/../*", "/a/*/b",
            "/*/", "/*/*", "/a/*/",
        ] {
            assert!(bad.parse::<PathFilter>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn file_based_events_match_by_the_path_in_their_key() {
        use crate::engine_event::{EngineEvent, FileBasedChange};
        let id = EventId::new(1).unwrap();
        let file_based_event = |key: &str| {
            EngineEvent::FileBasedChanged { change: FileBasedChange::Added, key: key.into() }.to_event(id)
        };
        let filter = |path: &str| EventFilter { path: path.parse().unwrap(), ..EventFilter::default() };
        for path in ["/", "/a/", "/a/*", "/a/b", "/a/b,1"] {
            assert!(filter(path).matches(&file_based_event("Order:/a/b,1")), "{path}");
        }
        assert!(filter("/a/b").matches(&file_based_event("JobChain:/a/b")));
        assert!(!filter("/b/").matches(&file_based_event("Order:/a/b,1")));
        let all = EngineEvent::SchedulerClosed.to_event(id);
        assert!(
            filter("/").matches(&all)
                && EventFilter { engine_events_only: true, ..EventFilter::default() }.matches(&all)
        );
        // Only keys of engine events are split: a producer's key is compared as it is.
        let emitted =
            Event { event_type: EventType::new("mine").unwrap(), ..file_based_event("Order:/a/b,1") };
        assert!(!filter("/a/").matches(&emitted) && filter("/").matches(&emitted));
        assert!(!EventFilter { engine_events_only: true, ..EventFilter::default() }.matches(&emitted));
    }

    #[test]
    fn event_types_match_filters_for_themselves_and_their_ancestors() {
        let matches = |event_type: &str, wanted: &str| {
            event_type_matches(&EventType::new(event_type).unwrap(), &EventType::new(wanted).unwrap())
        };
        assert!(matches("record.published", "record"));
        assert!(matches("record.published", "Event"));
        assert!(!matches("records.published", "record"));
        assert!(matches("OrderStarted", "OrderEvent"));
        assert!(matches("JobChainStateChanged", "JobChainEvent"));
        assert!(!matches("OrderStarted", "TaskEvent"));
        assert!(!matches("Orderly", "OrderEvent"));
    }
}
