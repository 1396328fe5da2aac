//! JSON bodies about events and objects.

use pointsman_core::store::LaneView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{EventBody, TaskBody};

/// The response to an emit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmitResponse {
    /// The id of the last event of the request.
    #[serde(rename = "eventId")]
    pub last_event_id: u64,
    /// The emitted events, in the order in which they were sent.
    pub events: Vec<EmittedEventBody>,
}

/// An event that was emitted: its id and its tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmittedEventBody {
    /// The event's id.
    pub event_id: u64,
    /// The preceding event of the same object.
    pub prev: Option<u64>,
    /// The ids of the tasks that were created for the event.
    pub tasks: Vec<String>,
}

/// A range of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "TYPE", try_from = "RawEventSeq")]
pub enum EventSeq {
    /// Matching events, in the order of their ids (newest first under a negative `limit`).
    #[serde(rename_all = "camelCase")]
    NonEmpty {
        /// The newest event id when this was read.
        event_id: u64,
        /// The events.
        event_snapshots: Vec<EventBody>,
    },
    /// No event matched before the timeout; continue after `lastEventId`.
    #[serde(rename_all = "camelCase")]
    Empty {
        /// The newest event id when this was read.
        event_id: u64,
        /// The last event id that was compared with the filter.
        last_event_id: u64,
    },
    /// An event after `after` has expired, or `after` is an id that was never assigned.
    #[serde(rename_all = "camelCase")]
    Torn {
        /// The newest event id when this was read.
        event_id: u64,
    },
}

/// The members of an [`EventSeq`] before its variant is known. Raw JSON payloads cannot be deserialized through
/// serde's own tagged enums.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawEventSeq {
    #[serde(rename = "TYPE")]
    variant: String,
    event_id: u64,
    #[serde(default)]
    event_snapshots: Vec<EventBody>,
    last_event_id: Option<u64>,
}

impl TryFrom<RawEventSeq> for EventSeq {
    type Error = String;
    fn try_from(parts: RawEventSeq) -> Result<Self, String> {
        let RawEventSeq { variant, event_id, event_snapshots, last_event_id } = parts;
        match (variant.as_str(), last_event_id) {
            ("NonEmpty", _) => Ok(Self::NonEmpty { event_id, event_snapshots }),
            ("Empty", Some(last_event_id)) => Ok(Self::Empty { event_id, last_event_id }),
            ("Empty", None) => Err("an Empty without lastEventId".into()),
            ("Torn", _) => Ok(Self::Torn { event_id }),
            (other, _) => Err(format!("{other:?} is not a variant of EventSeq")),
        }
    }
}

/// The cause of an event: the task that emitted it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventCauseBody {
    /// The event that the task was handling.
    pub event_id: Option<u64>,
    /// The task that emitted it; null once the task has expired.
    pub task: Option<String>,
    /// The number of emits between this event and the first one, which nothing caused.
    pub depth: u16,
}

/// One event, its tasks, its cause and the events it caused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventDetail {
    /// The newest id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The event.
    pub event: EventBody,
    /// The task that emitted the event; null if nothing inside Pointsman caused it.
    pub cause: Option<EventCauseBody>,
    /// The event's tasks.
    pub tasks: Vec<TaskBody>,
    /// The events that this event caused, and those that they caused in turn, as far as they have not expired.
    #[serde(rename = "caused")]
    pub caused_events: Vec<CausedEventBody>,
    /// Whether there may be more caused events: the tree has at most 1,000 events and is at most 32 deep.
    #[serde(rename = "causedTruncated")]
    pub are_caused_events_truncated: bool,
}

/// An event that a task of the causing event emitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CausedEventBody {
    /// The event.
    pub event: EventBody,
    /// The task that emitted it; null once the task has expired.
    pub task: Option<String>,
    /// The events that this event caused directly.
    #[serde(rename = "caused")]
    #[schema(no_recursion)]
    pub caused_events: Vec<CausedEventBody>,
}

/// An object's recent events, and its lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectDetail {
    /// The newest id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The object's key.
    pub key: String,
    /// The object's tenant.
    pub tenant: String,
    /// The id of the object's last event; kept even after that event has expired.
    #[serde(rename = "last")]
    pub last_event_id: u64,
    /// The object's events, newest first, as far as they have not expired.
    pub events: Vec<EventBody>,
    /// The object's lanes in which tasks wait, run or are halted, by handler; at most 100. Handlers without ordering
    /// have no lanes.
    pub lanes: Vec<ObjectLaneBody>,
    /// Whether the object has more lanes than are listed.
    #[serde(rename = "moreLanes")]
    pub has_more_lanes: bool,
}

/// A lane: the tasks of one handler for one object, which run one after another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObjectLaneBody {
    /// The handler of the lane.
    pub handler: String,
    /// The first task.
    pub head: TaskBody,
    /// Whether the head failed for good and the lane is halted until somebody retries or cancels the head.
    #[serde(rename = "halted")]
    pub is_halted: bool,
    /// The number of tasks behind the head; at most 10,000.
    #[serde(rename = "waiting")]
    pub task_count_behind_head: u64,
    /// Whether there are more tasks behind the head than were counted.
    #[serde(rename = "more")]
    pub has_more_behind_head: bool,
}

impl From<&LaneView> for ObjectLaneBody {
    fn from(lane: &LaneView) -> Self {
        Self {
            handler: lane.head.handler.to_string(),
            head: TaskBody::from(&lane.head),
            is_halted: lane.is_halted(),
            task_count_behind_head: lane.task_count_behind_head,
            has_more_behind_head: lane.has_more_behind_head,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_seqs_round_trip_with_payloads_unchanged() {
        let emitted = r#"{"eventId":7,"TYPE":"a","value":{ "n": 1.50 },"context":{},"tenant":"default"}"#;
        let engine_event = r#"{"eventId":8,"key":"/a,1","TYPE":"OrderFinished","nodeId":"x"}"#;
        let text =
            format!(r#"{{"TYPE":"NonEmpty","eventId":9,"eventSnapshots":[{emitted},{engine_event}]}}"#);
        let seq: EventSeq = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&seq).unwrap(), text);
        for seq in [EventSeq::Empty { event_id: 9, last_event_id: 8 }, EventSeq::Torn { event_id: 9 }] {
            let text = serde_json::to_string(&seq).unwrap();
            assert_eq!(serde_json::from_str::<EventSeq>(&text).unwrap(), seq);
        }
        let empty = serde_json::to_string(&EventSeq::Empty { event_id: 9, last_event_id: 8 }).unwrap();
        assert_eq!(empty, r#"{"TYPE":"Empty","eventId":9,"lastEventId":8}"#);
        assert!(serde_json::from_str::<EventSeq>(r#"{"TYPE":"Full","eventId":1}"#).is_err());
    }
}
