//! Events on the wire.

use pointsman_core::store::LaneView;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{EventSnapshot, TaskBody};

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
    /// What it caused, and what that caused, as far as it is remembered.
    pub caused: Vec<CausedBody>,
    /// There may be more: the tree holds at most 1,000 events and is at most 32 deep.
    pub caused_cut: bool,
}

/// An event that was emitted by a task of the event above it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CausedBody {
    pub event: EventSnapshot,
    /// The task that emitted it; null once it is forgotten.
    pub task: Option<String>,
    #[schema(no_recursion)]
    pub caused: Vec<CausedBody>,
}

/// An object's recent past, and its lanes.
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
    /// Its lanes in which something waits, runs or stands still, by handler; at most 100. What runs without order is in
    /// no lane.
    pub lanes: Vec<LaneBody>,
    /// It has more than these.
    pub more_lanes: bool,
}

/// The tasks of one handler for one object, which run one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LaneBody {
    pub handler: String,
    /// The task that is first.
    pub head: TaskBody,
    /// The head failed for good, and the lane stands still until somebody retries or cancels it.
    pub halted: bool,
    /// How many tasks wait behind the head; at most 10,000.
    pub waiting: u64,
    /// More than these wait.
    pub more: bool,
}

impl From<&LaneView> for LaneBody {
    fn from(lane: &LaneView) -> Self {
        Self {
            handler: lane.head.handler.to_string(),
            head: TaskBody::from(&lane.head),
            halted: lane.is_halted(),
            waiting: lane.behind,
            more: lane.more,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_seqs_read_back_with_their_payloads_untouched() {
        let emitted = r#"{"eventId":7,"TYPE":"a","value":{ "n": 1.50 },"context":{},"tenant":"default"}"#;
        let engines = r#"{"eventId":8,"key":"/a,1","TYPE":"OrderFinished","nodeId":"x"}"#;
        let text = format!(r#"{{"TYPE":"NonEmpty","eventId":9,"eventSnapshots":[{emitted},{engines}]}}"#);
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
