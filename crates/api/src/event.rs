//! Events on the wire.

use std::collections::BTreeMap;

use pointsman_core::{Event, Json};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::TaskBody;

/// The answer to an emit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Emitted {
    /// The id of the last event.
    pub event_id: u64,
    /// One for each event, in the order they were sent.
    pub events: Vec<EmittedEvent>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmittedEvent {
    pub event_id: u64,
    /// The preceding event of the same object.
    pub prev: Option<u64>,
    /// The ids of the tasks that were made for it.
    pub tasks: Vec<String>,
}

/// An event as the stream shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventSnapshot {
    #[serde(rename = "eventId")]
    pub event_id: u64,
    #[serde(rename = "TYPE")]
    pub kind: String,
    /// The object it happened to. Keyless events have no such member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The preceding event of the same object: null for its first, absent without a key.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    #[schema(value_type = Option<u64>)]
    pub prev: Option<Option<u64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub: Option<String>,
    #[schema(value_type = serde_json::Value)]
    pub value: Json,
    pub context: BTreeMap<String, String>,
    pub tenant: String,
}

/// Tells `null` from nothing.
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::<u64>::deserialize(d).map(Some)
}

impl From<&Event> for EventSnapshot {
    fn from(event: &Event) -> Self {
        Self {
            event_id: event.id.get(),
            kind: event.kind.to_string(),
            key: event.key.as_ref().map(ToString::to_string),
            prev: event.key.is_some().then(|| event.prev.map(|prev| prev.get())),
            sub: event.sub.as_ref().map(ToString::to_string),
            value: event.value.clone(),
            context: event.context.clone(),
            tenant: event.tenant.to_string(),
        }
    }
}

/// A stretch of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "TYPE", try_from = "EventSeqParts")]
pub enum EventSeq {
    /// Events that matched, in the order of their ids (newest first under a negative `limit`).
    #[serde(rename_all = "camelCase")]
    NonEmpty { event_id: u64, event_snapshots: Vec<EventSnapshot> },
    /// Nothing matched in time; go on after `lastEventId`.
    #[serde(rename_all = "camelCase")]
    Empty { event_id: u64, last_event_id: u64 },
    /// Something after `after` was forgotten, or `after` is an id that was never given out.
    #[serde(rename_all = "camelCase")]
    Torn { event_id: u64 },
}

/// The same before it is known which of the three it is. Payloads that stay raw cannot be read through serde's
/// own tagged enums.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventSeqParts {
    #[serde(rename = "TYPE")]
    kind: String,
    event_id: u64,
    #[serde(default)]
    event_snapshots: Vec<EventSnapshot>,
    last_event_id: Option<u64>,
}

impl TryFrom<EventSeqParts> for EventSeq {
    type Error = String;
    fn try_from(parts: EventSeqParts) -> Result<Self, String> {
        let EventSeqParts { kind, event_id, event_snapshots, last_event_id } = parts;
        match (kind.as_str(), last_event_id) {
            ("NonEmpty", _) => Ok(Self::NonEmpty { event_id, event_snapshots }),
            ("Empty", Some(last_event_id)) => Ok(Self::Empty { event_id, last_event_id }),
            ("Empty", None) => Err("an Empty without lastEventId".into()),
            ("Torn", _) => Ok(Self::Torn { event_id }),
            (other, _) => Err(format!("{other:?} is no EventSeq")),
        }
    }
}

/// What made an event be emitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CauseBody {
    /// The event a handler was working on.
    pub event_id: Option<u64>,
    /// The task that was doing it; null once it is forgotten.
    pub task: Option<String>,
    /// How many emits lie between this event and one that nothing caused.
    pub depth: u16,
}

/// One event and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventDetail {
    /// The newest id when this was read.
    pub event_id: u64,
    pub event: EventSnapshot,
    /// Null if nothing inside Pointsman caused it.
    pub cause: Option<CauseBody>,
    pub tasks: Vec<TaskBody>,
}

/// An object's recent past.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDetail {
    /// The newest id when this was read.
    pub event_id: u64,
    pub key: String,
    pub tenant: String,
    /// The id of the object's last event, which outlives the journal.
    pub last: u64,
    /// Its events, newest first, as far as they are remembered.
    pub events: Vec<EventSnapshot>,
}

#[cfg(test)]
mod tests {
    use pointsman_core::{EventId, HandlingKey, ObjectKey, Tenant};

    use super::*;

    fn event(key: Option<&str>, prev: Option<u64>) -> Event {
        Event {
            id: EventId::new(7).unwrap(),
            prev: prev.and_then(EventId::new),
            kind: HandlingKey::new("record.published").unwrap(),
            key: key.map(|key| ObjectKey::new(key).unwrap()),
            sub: None,
            value: Json::parse(r#"{ "n": 1.50 }"#).unwrap(),
            context: BTreeMap::from([("ip".into(), "::1".into())]),
            tenant: Tenant::default(),
            cause: None,
        }
    }

    #[test]
    fn a_snapshot_reads_as_the_stream_does() {
        for event in [event(Some("a\"b"), Some(3)), event(Some("a"), None), event(None, None)] {
            let snapshot = EventSnapshot::from(&event);
            assert_eq!(serde_json::to_string(&snapshot).unwrap(), event.to_json());
            assert_eq!(serde_json::from_str::<EventSnapshot>(&event.to_json()).unwrap(), snapshot);
        }
    }

    #[test]
    fn event_seqs_read_back_with_their_payloads_untouched() {
        let snapshot = EventSnapshot::from(&event(Some("a"), None));
        for seq in [
            EventSeq::NonEmpty { event_id: 9, event_snapshots: vec![snapshot] },
            EventSeq::Empty { event_id: 9, last_event_id: 8 },
            EventSeq::Torn { event_id: 9 },
        ] {
            let text = serde_json::to_string(&seq).unwrap();
            assert_eq!(serde_json::from_str::<EventSeq>(&text).unwrap(), seq);
        }
        let empty = serde_json::to_string(&EventSeq::Empty { event_id: 9, last_event_id: 8 }).unwrap();
        assert_eq!(empty, r#"{"TYPE":"Empty","eventId":9,"lastEventId":8}"#);
        assert!(serde_json::from_str::<EventSeq>(r#"{"TYPE":"Full","eventId":1}"#).is_err());
    }
}
