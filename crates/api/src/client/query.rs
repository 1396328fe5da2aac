//! What callers send: events to emit, and what lists and streams are narrowed to.

use pointsman_core::event::{Context, Priority};
use pointsman_core::{HandlingKey, Json, ObjectKey, Tenant, Timestamp};
use serde::Serialize;

/// An event to emit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmitBody {
    #[serde(rename = "type")]
    pub kind: HandlingKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<ObjectKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub: Option<ObjectKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    #[serde(skip_serializing_if = "Context::is_empty")]
    pub context: Context,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// How long its tasks wait, in one of the forms of an HTTP duration. Excludes `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

impl EmitBody {
    /// An event of this type with nothing else to it.
    pub fn of(kind: HandlingKey) -> Self {
        Self {
            kind,
            key: None,
            sub: None,
            value: None,
            context: Context::new(),
            tenant: None,
            delay: None,
            at: None,
            priority: None,
        }
    }
}

/// Which events; the default means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// A type or one of its ancestors.
    pub kind: Option<String>,
    /// Only what came after this id.
    pub after: Option<u64>,
    pub path: Option<String>,
    pub key: Option<String>,
    pub tenant: Option<String>,
    /// How long to wait for a first match. Not for streams.
    pub timeout: Option<String>,
    /// At most so many; a negative number reads backwards from the newest. Not for streams.
    pub limit: Option<i64>,
}

impl EventQuery {
    pub(super) fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.add("return", &self.kind);
        pairs.add("after", &self.after);
        pairs.add("path", &self.path);
        pairs.add("key", &self.key);
        pairs.add("tenant", &self.tenant);
        pairs.add("timeout", &self.timeout);
        pairs.add("limit", &self.limit);
        pairs
    }
}

/// Which tasks; the default means all, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskQuery {
    pub status: Option<String>,
    /// A handler or a source.
    pub handler: Option<String>,
    /// An event's type or a source's collection.
    pub collection: Option<String>,
    pub tenant: Option<String>,
    pub key: Option<String>,
    pub event: Option<u64>,
    /// Created at or after, and before.
    pub start: Option<String>,
    pub end: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl TaskQuery {
    pub(super) fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.add("status", &self.status);
        pairs.add("handler", &self.handler);
        pairs.add("collection", &self.collection);
        pairs.add("tenant", &self.tenant);
        pairs.add("key", &self.key);
        pairs.add("event", &self.event);
        pairs.add("start", &self.start);
        pairs.add("end", &self.end);
        pairs.add("limit", &self.limit);
        pairs.add("cursor", &self.cursor);
        pairs
    }
}

/// Which orders; the default means all, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderQuery {
    /// `/` everything, `/a/` the tree below, `/a/*` its children, `/a/chain` that chain's orders.
    pub path: Option<String>,
    pub tenant: Option<String>,
    /// 1 to 1000.
    pub limit: Option<u32>,
    /// The `next` of the list before.
    pub cursor: Option<String>,
}

impl OrderQuery {
    pub(super) fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.add("path", &self.path);
        pairs.add("tenant", &self.tenant);
        pairs.add("limit", &self.limit);
        pairs.add("cursor", &self.cursor);
        pairs
    }
}

/// Which lines of a task's log; the default means all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Written at or after, and before.
    pub start: Option<String>,
    pub end: Option<String>,
}

impl LogQuery {
    pub(super) fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.add("start", &self.start);
        pairs.add("end", &self.end);
        pairs
    }
}

/// The parameters of a call. What is not given is not sent.
#[derive(Debug, Default)]
pub(super) struct Pairs(Vec<(&'static str, String)>);

impl Pairs {
    pub(super) fn add(&mut self, name: &'static str, value: &Option<impl ToString>) {
        self.0.extend(value.as_ref().map(|value| (name, value.to_string())));
    }

    pub(super) fn append_to(&self, url: &mut url::Url) {
        if !self.0.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.0);
        }
    }
}
