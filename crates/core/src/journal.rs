//! Reading the journal: cursors, filters, retention.

use std::sync::Arc;
use std::time::Duration;

use crate::{Event, EventId, HandlingKey, ObjectKey, Tenant};

/// Where the journal begins and ends for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Extent {
    /// Every event up to and with this one has been forgotten.
    pub forgotten: EventId,
    /// The newest id given out.
    pub head: EventId,
}

impl Extent {
    /// Whether an observer that has read up to `after` has missed something, or holds a cursor that this
    /// journal never gave out.
    pub fn is_torn(&self, after: EventId) -> bool {
        after < self.forgotten || after > self.head
    }
}

/// A stretch of the journal, read in one transaction.
#[derive(Clone, Debug)]
pub struct Page {
    /// Events that matched, ascending (descending when read backwards).
    pub events: Vec<Arc<Event>>,
    /// The last id that was looked at, matching or not: read on after this one.
    pub scanned: EventId,
    pub extent: Extent,
}

/// Which events an observer wants. The default wants all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// Types or their ancestors; any of them.
    pub kinds: Vec<HandlingKey>,
    pub path: PathFilter,
    pub key: Option<ObjectKey>,
    pub tenant: Option<Tenant>,
    /// Only what the engine itself tells.
    pub engine: bool,
}

impl Filter {
    pub fn matches(&self, event: &Event) -> bool {
        (self.kinds.is_empty() || self.kinds.iter().any(|wanted| is_kind(&event.kind, wanted)))
            && self.key.as_ref().is_none_or(|key| event.key.as_ref() == Some(key))
            && self.tenant.as_ref().is_none_or(|tenant| event.tenant == *tenant)
            && (!self.engine || event.is_engine())
            && self.path.matches(path_of(event))
    }
}

/// What a path is compared with: the event's key. What is told of something by its kind (`Order:/a/b,1`) lies at the
/// path behind it, so that who watches a folder sees what appears and vanishes there.
fn path_of(event: &Event) -> &str {
    let key = event.key.as_ref().map_or("", |key| key.as_str());
    if event.is_engine() && event.kind.as_str().starts_with("FileBased") {
        return key.split_once(':').map_or(key, |(_, path)| path);
    }
    key
}

/// Whether a type is the wanted one or stands below it. The engine's own types have their documented
/// ancestors; `Event` stands above all.
fn is_kind(kind: &HandlingKey, wanted: &HandlingKey) -> bool {
    let wanted = wanted.as_str();
    wanted == "Event" || kind.is_under(wanted) || family(kind.as_str()) == Some(wanted)
}

/// The documented ancestor of an engine event.
fn family(kind: &str) -> Option<&'static str> {
    const FAMILIES: [(&str, &str); 5] = [
        ("Scheduler", "SchedulerEvent"),
        ("FileBased", "FileBasedEvent"),
        ("Order", "OrderEvent"),
        ("JobChain", "JobChainEvent"),
        ("Task", "TaskEvent"),
    ];
    if !crate::names::RESERVED_TYPES.contains(&kind) {
        return None;
    }
    FAMILIES.iter().find(|(prefix, _)| kind.starts_with(prefix)).map(|(_, family)| *family)
}

/// Which keys, by path: `/` everything, `/a/` the tree below, `/a/*` direct children, `/a` exactly that
/// (and, where it is a chain, its orders).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum PathFilter {
    #[default]
    Everything,
    Below(String),
    ChildrenOf(String),
    Exactly(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a path; write `/`, `/folder/`, `/folder/*` or `/folder/name`")]
pub struct BadPath(String);

impl std::str::FromStr for PathFilter {
    type Err = BadPath;
    fn from_str(text: &str) -> Result<Self, BadPath> {
        let bad = text.contains("//")
            || text.chars().any(char::is_control)
            || text.len() > crate::names::MAX_KEY
            || text.split('/').any(|step| step == "." || step == "..")
            // It stands for the children of a folder, and those are the end of a path.
            || text.split('/').rev().skip(1).any(|step| step == "*");
        if !text.starts_with('/') || bad {
            return Err(BadPath(text.into()));
        }
        Ok(match (text.strip_suffix("/*"), text.ends_with('/')) {
            _ if text == "/" => Self::Everything,
            (Some(folder), _) => Self::ChildrenOf(format!("{folder}/")),
            (None, true) => Self::Below(text.into()),
            (None, false) => Self::Exactly(text.into()),
        })
    }
}

impl PathFilter {
    pub fn matches(&self, key: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Below(folder) => key.starts_with(folder.as_str()),
            Self::ChildrenOf(folder) => {
                key.strip_prefix(folder.as_str()).is_some_and(|rest| !rest.is_empty() && !rest.contains('/'))
            }
            Self::Exactly(path) => key
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || (rest.starts_with(',') && !path.contains(','))),
        }
    }
}

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    pub count: u64,
    pub age: Duration,
}

impl Retention {
    /// The least number of events that a journal keeps.
    pub const LEAST_EVENTS: u64 = 10_000;
}

impl Default for Retention {
    fn default() -> Self {
        Self { count: 1_000_000, age: Duration::from_secs(30 * 86_400) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_exactly_when_something_was_forgotten_or_the_cursor_is_foreign() {
        let id = |n| EventId::new(n).unwrap();
        let extent = Extent { forgotten: id(10), head: id(20) };
        assert!(extent.is_torn(id(9)));
        assert!(!extent.is_torn(id(10)));
        assert!(!extent.is_torn(id(20)));
        assert!(extent.is_torn(id(21)));
        assert!(!Extent::default().is_torn(EventId::ZERO));
    }

    #[test]
    fn paths() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("/", &["", "record:1", "/a", "/a/b,1"], &[]),
            ("/a/", &["/a/b", "/a/b/c", "/a/b,1"], &["/a", "/ab/c", "a/b"]),
            ("/a/*", &["/a/b", "/a/b,1"], &["/a/b/c", "/a/", "/a"]),
            ("/a/chain", &["/a/chain", "/a/chain,1"], &["/a/chain2", "/a/chain/x"]),
            ("/a/chain,1", &["/a/chain,1"], &["/a/chain,12", "/a/chain", "/a/chain,1,2"]),
        ];
        for (path, yes, no) in cases {
            let filter: PathFilter = path.parse().unwrap();
            assert!(yes.iter().all(|key| filter.matches(key)), "{path}");
            assert!(!no.iter().any(|key| filter.matches(key)), "{path}");
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
    fn what_appears_and_vanishes_lies_at_its_path() {
        use crate::engine_event::{EngineEvent, FileChange};
        let id = EventId::new(1).unwrap();
        let told = |key: &str| EngineEvent::FileBased { change: FileChange::Added, key: key.into() }.at(id);
        let filter = |path: &str| Filter { path: path.parse().unwrap(), ..Filter::default() };
        for path in ["/", "/a/", "/a/*", "/a/b", "/a/b,1"] {
            assert!(filter(path).matches(&told("Order:/a/b,1")), "{path}");
        }
        assert!(filter("/a/b").matches(&told("JobChain:/a/b")));
        assert!(!filter("/b/").matches(&told("Order:/a/b,1")));
        let all = EngineEvent::SchedulerClosed.at(id);
        assert!(filter("/").matches(&all) && Filter { engine: true, ..Filter::default() }.matches(&all));
        // Only the engine tells of things in this way: anybody else's key is taken as it is.
        let emitted = Event { kind: HandlingKey::new("mine").unwrap(), ..told("Order:/a/b,1") };
        assert!(!filter("/a/").matches(&emitted) && filter("/").matches(&emitted));
        assert!(!Filter { engine: true, ..Filter::default() }.matches(&emitted));
    }

    #[test]
    fn kinds_match_by_segment_and_by_family() {
        let is = |kind: &str, wanted: &str| {
            is_kind(&HandlingKey::new(kind).unwrap(), &HandlingKey::new(wanted).unwrap())
        };
        assert!(is("record.published", "record"));
        assert!(is("record.published", "Event"));
        assert!(!is("records.published", "record"));
        assert!(is("OrderStarted", "OrderEvent"));
        assert!(is("JobChainStateChanged", "JobChainEvent"));
        assert!(!is("OrderStarted", "TaskEvent"));
        assert!(!is("Orderly", "OrderEvent"));
    }
}
