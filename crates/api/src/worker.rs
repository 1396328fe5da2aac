//! What workers that fetch their tasks say, and are told.
//!
//! Every call about a task carries the `fence` of its claim. Once the lease has run out, or a person has ended the
//! task, that fence is stale: the call is refused, and whatever the worker still does counts for nothing.

use pointsman_core::Json;
use pointsman_core::store::Claimed;
use pointsman_core::task::{Level, StepRun, Subject};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::EventSnapshot;
use crate::client::EmitBody;
use crate::task::time;

/// Asks for tasks. Durations are those of HTTP parameters (`30`, `30s`, `1m30s`, `PT30S`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    /// 1 to 256 handlers or sources that are pulled.
    pub handlers: Vec<String>,
    /// 1 to 256 tasks at most; 1 if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// How long to wait for a first one, up to 5 minutes; not at all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// How long the worker may be silent, 1 second to 1 hour; one minute if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// The tasks that the worker holds now; none if there were none in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedList {
    pub tasks: Vec<ClaimedBody>,
}

/// A task that a worker holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedBody {
    pub id: String,
    /// Names this claim in everything that is said of the task.
    pub fence: i64,
    /// When the worker loses it unless it sends a heartbeat.
    pub lease_until: String,
    /// 1 for the first run.
    pub attempt: u32,
    pub retries: u32,
    pub handler: String,
    pub source: String,
    /// The source's collection; for an event's task its type, for an order's step the node.
    pub collection: String,
    pub tenant: String,
    pub key: Option<String>,
    /// The time a schedule planned it for, or empty.
    pub planned_at: String,
    /// The previous event of the object that this handler was sent.
    pub prev_sent: Option<u64>,
    /// It runs outside the order of its object.
    pub late: bool,
    /// Null for a source's task and an order's step.
    pub event: Option<EventSnapshot>,
    /// The step; null for all but an order's. The result it is `done` with becomes the order's value.
    pub order: Option<StepBody>,
}

/// A step of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StepBody {
    /// The order's whole name: `/chain/path,id`.
    pub path: String,
    pub chain: String,
    pub id: String,
    pub node: String,
    /// The order's value before the step.
    #[schema(value_type = serde_json::Value)]
    pub value: Json,
}

impl From<&StepRun> for StepBody {
    fn from(step: &StepRun) -> Self {
        Self {
            path: step.order.to_string(),
            chain: step.order.chain.to_string(),
            id: step.order.id.to_string(),
            node: step.node.to_string(),
            value: step.value.clone(),
        }
    }
}

impl ClaimedBody {
    /// A task that was claimed with a lease until then.
    pub fn new(claimed: &Claimed) -> Self {
        let subject = &claimed.subject;
        Self {
            id: claimed.id.to_string(),
            fence: claimed.fence,
            lease_until: time(claimed.until),
            attempt: claimed.attempt,
            retries: claimed.retries,
            handler: claimed.handler.to_string(),
            source: claimed.handler.to_string(),
            collection: subject.collection().to_owned(),
            tenant: subject.tenant().to_string(),
            key: subject.key().map(ToString::to_string),
            planned_at: time(claimed.planned),
            prev_sent: claimed.prev_sent.map(|id| id.get()),
            late: claimed.late,
            event: subject.event().map(|event| EventSnapshot::from(&**event)),
            order: match subject {
                Subject::Step(step) => Some(StepBody::from(step)),
                Subject::Event(_) | Subject::Run(_) => None,
            },
        }
    }
}

/// The worker is still at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatBody {
    pub fence: i64,
    /// How long it may be silent from now on; as long as it claimed the task for if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// Until when a worker holds a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Leased {
    pub lease_until: String,
}

/// Lines for a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogsBody {
    pub fence: i64,
    pub logs: Vec<NewLog>,
}

/// A line for a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLog {
    /// RFC 3339; now if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// `info` (if not given) or `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub level: Option<Level>,
    pub message: String,
}

/// How many lines were taken. One line that says so stands for all beyond the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Logged {
    pub logged: u64,
}

/// The task is done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct DoneBody {
    pub fence: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Json>,
    /// Events to emit, committed together with the end of the task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<serde_json::Value>)]
    pub emit: Vec<EmitBody>,
    /// Last lines for its log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<NewLog>,
}

/// The attempt has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct FailBody {
    pub fence: i64,
    pub error: String,
    /// What it returned, as a program's exit code; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// Whether to try again, as far as the handler's policy goes; true if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
    /// How long to wait before that; as long as the policy says if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// Not now: the task is put off, at no cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SnoozeBody {
    pub fence: i64,
    /// For how long; five minutes if neither is given. Excludes `until`.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Where a task stands after its attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ended {
    pub id: String,
    /// `SCHEDULED`, `SUCCESS` or `FAILED`.
    pub status: String,
    /// The same in the lifecycle's own words.
    pub state: String,
    /// When it will be tried again, or empty.
    pub delay_until: String,
    /// The ids of the events that were emitted.
    pub events: Vec<u64>,
}
