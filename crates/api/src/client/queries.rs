//! Events to emit, and the filters of lists and streams.

use pointsman_core::event::{Context, Priority};
use pointsman_core::{EventType, Json, ObjectKey, Tenant, Timestamp};
use serde::Serialize;

/// An event to emit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EmitBody {
    /// The event's type.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// The object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<ObjectKey>,
    /// The key of a sub-object, a part of the object.
    #[serde(rename = "sub", skip_serializing_if = "Option::is_none")]
    pub sub_object: Option<ObjectKey>,
    /// The payload; null if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Json>,
    /// The context, such as the request that the event comes from.
    #[serde(skip_serializing_if = "Context::is_empty")]
    pub context: Context,
    /// The tenant; that of the token if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Tenant>,
    /// How long the event's tasks wait, in one of the forms of an HTTP duration. Excludes `tasks_due_at`.
    #[serde(rename = "delay", skip_serializing_if = "Option::is_none")]
    pub task_delay: Option<String>,
    /// When the event's tasks are due. Excludes `task_delay`.
    #[serde(rename = "at", skip_serializing_if = "Option::is_none")]
    pub tasks_due_at: Option<Timestamp>,
    /// The priority of the event's tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

impl EmitBody {
    /// Creates an event of this type without a key, a value or options.
    pub fn new(event_type: EventType) -> Self {
        Self {
            event_type,
            key: None,
            sub_object: None,
            value: None,
            context: Context::new(),
            tenant: None,
            task_delay: None,
            tasks_due_at: None,
            priority: None,
        }
    }
}

/// A filter of events; the default matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// The event's type, or a parent of it.
    pub event_type: Option<String>,
    /// Only events after this id.
    pub after: Option<u64>,
    /// Only events whose key matches: `/` everything, `/a/` the tree below, `/a/*` its children, `/a` that key and,
    /// where it is a chain, its orders.
    pub path: Option<String>,
    /// Only events of this object.
    pub key: Option<String>,
    /// Only events of this tenant.
    pub tenant: Option<String>,
    /// How long to wait for a first match. Not for streams.
    pub timeout: Option<String>,
    /// The maximal number of events; a negative number reads backwards from the newest. Not for streams.
    pub limit: Option<i64>,
}

impl EventQuery {
    pub(super) fn to_parameters(&self) -> QueryParameters {
        let mut parameters = QueryParameters::default();
        parameters.add("return", &self.event_type);
        parameters.add("after", &self.after);
        parameters.add("path", &self.path);
        parameters.add("key", &self.key);
        parameters.add("tenant", &self.tenant);
        parameters.add("timeout", &self.timeout);
        parameters.add("limit", &self.limit);
        parameters
    }
}

/// A filter of tasks; the default matches all, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskQuery {
    /// Only tasks of this status.
    pub status: Option<String>,
    /// Only tasks of this handler or source.
    pub handler: Option<String>,
    /// Only tasks for events of this type, or of this collection of a source.
    pub subject_name: Option<String>,
    /// Only tasks of this tenant.
    pub tenant: Option<String>,
    /// Only tasks for this object.
    pub key: Option<String>,
    /// Only tasks for this event.
    pub event_id: Option<u64>,
    /// Only tasks created at or after this time.
    pub created_from: Option<String>,
    /// Only tasks created before this time.
    pub created_before: Option<String>,
    /// The maximal number in a page, 1 to 1000.
    pub limit: Option<u32>,
    /// The `next` of the previous page.
    pub cursor: Option<String>,
}

impl TaskQuery {
    pub(super) fn to_parameters(&self) -> QueryParameters {
        let mut parameters = QueryParameters::default();
        parameters.add("status", &self.status);
        parameters.add("handler", &self.handler);
        parameters.add("collection", &self.subject_name);
        parameters.add("tenant", &self.tenant);
        parameters.add("key", &self.key);
        parameters.add("event", &self.event_id);
        parameters.add("start", &self.created_from);
        parameters.add("end", &self.created_before);
        parameters.add("limit", &self.limit);
        parameters.add("cursor", &self.cursor);
        parameters
    }
}

/// A filter of orders; the default matches all, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderQuery {
    /// Only orders whose key matches: `/` everything, `/a/` the tree below, `/a/*` its children, `/a/chain` the orders
    /// of that chain.
    pub path: Option<String>,
    /// Only orders of this tenant.
    pub tenant: Option<String>,
    /// The maximal number in a page, 1 to 1000.
    pub limit: Option<u32>,
    /// The `next` of the previous page.
    pub cursor: Option<String>,
}

impl OrderQuery {
    pub(super) fn to_parameters(&self) -> QueryParameters {
        let mut parameters = QueryParameters::default();
        parameters.add("path", &self.path);
        parameters.add("tenant", &self.tenant);
        parameters.add("limit", &self.limit);
        parameters.add("cursor", &self.cursor);
        parameters
    }
}

/// A filter of a task's log lines; the default matches all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// Only lines written at or after this time.
    pub written_from: Option<String>,
    /// Only lines written before this time.
    pub written_before: Option<String>,
}

impl LogQuery {
    pub(super) fn to_parameters(&self) -> QueryParameters {
        let mut parameters = QueryParameters::default();
        parameters.add("start", &self.written_from);
        parameters.add("end", &self.written_before);
        parameters
    }
}

/// The query parameters of a call.
#[derive(Debug, Default)]
pub(super) struct QueryParameters(Vec<(&'static str, String)>);

impl QueryParameters {
    /// Adds a parameter, unless its value is `None`.
    pub(super) fn add(&mut self, name: &'static str, value: &Option<impl ToString>) {
        self.0.extend(value.as_ref().map(|value| (name, value.to_string())));
    }

    pub(super) fn append_to(&self, url: &mut url::Url) {
        if !self.0.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.0);
        }
    }
}
