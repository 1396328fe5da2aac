//! Events as producers emit them and as the journal stores them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names::is_engine_event_type;
use crate::{EventId, EventType, Json, ObjectKey, TaskSeq, Tenant, Timestamp};

/// The circumstances in which an event was emitted, as strings: ip, user agent, traceparent, …
pub type Context = BTreeMap<String, String>;

/// The maximum number of entries in a context.
pub const MAX_CONTEXT_ENTRIES: usize = 64;
/// The maximum size of each name and of each value in a context.
pub const MAX_CONTEXT_STRING_BYTES: usize = 4096;

/// The priority of a task: 1 to 9000, higher first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Priority(u16);

impl Priority {
    /// The highest priority: with a higher one, the score of a source's task in Redis (`priority * 10^12 - seconds`)
    /// would not fit a double.
    pub const MAX: Self = Self(9000);
    /// The lowest priority.
    pub const MIN: Self = Self(1);

    /// The priority as a number, 1 to 9000.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(100)
    }
}

/// The error of a number that is no [`Priority`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a priority is a whole number from 1 to 9000, not {0}")]
pub struct BadPriority(i64);

impl TryFrom<i64> for Priority {
    type Error = BadPriority;
    fn try_from(number: i64) -> Result<Self, BadPriority> {
        match u16::try_from(number) {
            Ok(n @ 1..=9000) => Ok(Self(n)),
            _ => Err(BadPriority(number)),
        }
    }
}

impl From<Priority> for i64 {
    fn from(priority: Priority) -> i64 {
        priority.0.into()
    }
}

/// The cause of an event: the task whose handler emitted it, and the event that this task handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The event that the task handled, or for which its order was created; None if there is none.
    pub event: Option<EventId>,
    /// The task whose handler emitted the event.
    pub task: TaskSeq,
    /// The length of the chain of causes before the emitted event: one more than before the event that the task
    /// handled.
    pub depth: u16,
}

/// The maximum length of a chain of causes. A longer one counts as an endless loop of events.
pub const MAX_CAUSE_DEPTH: u16 = 64;

/// An event to be emitted.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// The event's type, by which it is routed to handlers.
    pub event_type: EventType,
    /// The object that the event is about; events without one are unordered.
    pub key: Option<ObjectKey>,
    /// The key of a sub-object, a part of the object. Lanes and `prev` follow `key` alone.
    pub sub_object: Option<ObjectKey>,
    /// The payload.
    pub value: Json,
    /// The request that the event comes from.
    pub context: Context,
    /// The tenant that the event belongs to.
    pub tenant: Tenant,
    /// When the event's tasks are due; at once if not given.
    pub due: Option<Timestamp>,
    /// The priority of the event's tasks.
    pub priority: Priority,
    /// The task that emits the event; `None` if a producer does.
    pub cause: Option<Cause>,
    /// The time for which a schedule planned this event.
    pub planned_at: Option<Timestamp>,
}

impl NewEvent {
    /// An event of this type, with the default for everything else.
    pub fn new(event_type: EventType) -> Self {
        Self {
            event_type,
            key: None,
            sub_object: None,
            value: Json::null(),
            context: Context::new(),
            tenant: Tenant::default(),
            due: None,
            priority: Priority::default(),
            cause: None,
            planned_at: None,
        }
    }
}

/// An event in the journal. It never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The event's id, larger than that of every earlier event.
    pub id: EventId,
    /// The id of the preceding event of the same object.
    pub prev: Option<EventId>,
    /// The event's type.
    pub event_type: EventType,
    /// The object that the event is about.
    pub key: Option<ObjectKey>,
    /// The key of a sub-object, a part of the object.
    pub sub_object: Option<ObjectKey>,
    /// The payload.
    pub value: Json,
    /// The request that the event comes from.
    pub context: Context,
    /// The tenant that the event belongs to.
    pub tenant: Tenant,
    /// The task that emitted the event; `None` if a producer did.
    pub cause: Option<Cause>,
}

impl Event {
    /// The length of the chain of causes before this event; 0 if nothing caused it.
    pub fn cause_depth(&self) -> u16 {
        self.cause.map_or(0, |cause| cause.depth)
    }

    /// Whether the engine itself published this event; producers may not emit such types.
    pub fn is_engine_event(&self) -> bool {
        is_engine_event_type(&self.event_type)
    }

    /// Formats the event as stream JSON. An engine event's fields are at the top level; a task's key is an object.
    pub fn to_json(&self) -> String {
        if self.is_engine_event() {
            return self.engine_event_to_json();
        }
        let mut out = String::with_capacity(160 + self.value.as_str().len());
        let text = |s: &str| serde_json::Value::from(s).to_string();
        out.push_str(&format!("{{\"eventId\":{},\"TYPE\":\"{}\"", self.id, self.event_type));
        if let Some(key) = &self.key {
            out.push_str(&format!(",\"key\":{}", text(key.as_str())));
            match self.prev {
                Some(prev) => out.push_str(&format!(",\"prev\":{prev}")),
                None => out.push_str(",\"prev\":null"),
            }
        }
        if let Some(sub) = &self.sub_object {
            out.push_str(&format!(",\"sub\":{}", text(sub.as_str())));
        }
        out.push_str(&format!(",\"value\":{}", self.value.as_str()));
        let context = serde_json::to_string(&self.context).unwrap_or_else(|_| "{}".into());
        out.push_str(&format!(",\"context\":{context},\"tenant\":\"{}\"}}", self.tenant));
        out
    }

    fn engine_event_to_json(&self) -> String {
        let key = match &self.key {
            Some(key) if self.event_type.as_str().starts_with("Task") => format!(",\"key\":{}", key.as_str()),
            Some(key) => format!(",\"key\":{}", serde_json::Value::from(key.as_str())),
            None => String::new(),
        };
        let fields = self.value.as_str().trim_start_matches('{');
        let comma = if fields == "}" { "" } else { "," };
        format!("{{\"eventId\":{}{key},\"TYPE\":\"{}\"{comma}{fields}", self.id, self.event_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_1_to_9000() {
        assert!(Priority::try_from(0).is_err());
        assert!(Priority::try_from(9001).is_err());
        assert_eq!(i64::from(Priority::try_from(9000).unwrap()), 9000);
    }

    #[test]
    fn engine_events_have_their_fields_at_the_top_level_of_json() {
        use crate::engine_event::EngineEvent;
        let id = EventId::new(7).unwrap();
        let (order, node, from) = ("/a/b,1".parse().unwrap(), "BB".parse().unwrap(), "A".parse().unwrap());
        assert_eq!(
            EngineEvent::OrderNodeChanged { order, node, from_node: from }.to_event(id).to_json(),
            r#"{"eventId":7,"key":"/a/b,1","TYPE":"OrderNodeChanged","fromNodeId":"A","nodeId":"BB"}"#
        );
        assert_eq!(
            EngineEvent::SchedulerClosed.to_event(id).to_json(),
            r#"{"eventId":7,"TYPE":"SchedulerClosed"}"#
        );
        let (handler, task) = ("h".parse().unwrap(), crate::TaskId::from_text("h_x_1"));
        assert_eq!(
            EngineEvent::TaskEnded { handler, task, return_code: 3 }.to_event(id).to_json(),
            r#"{"eventId":7,"key":{"jobPath":"/h","taskId":"h_x_1"},"TYPE":"TaskEnded","returnCode":3}"#
        );
    }

    #[test]
    fn json_of_an_event_keeps_the_payload_verbatim() {
        let event = Event {
            id: EventId::new(7).unwrap(),
            prev: None,
            event_type: EventType::new("record.published").unwrap(),
            key: Some(ObjectKey::new("record:\"1\"").unwrap()),
            sub_object: None,
            value: Json::parse(r#"{ "n": 1.50 }"#).unwrap(),
            context: Context::from([("ip".into(), "::1".into())]),
            tenant: Tenant::default(),
            cause: None,
        };
        assert_eq!(
            event.to_json(),
            r#"{"eventId":7,"TYPE":"record.published","key":"record:\"1\"","prev":null,"value":{ "n": 1.50 },"context":{"ip":"::1"},"tenant":"default"}"#
        );
    }
}
