//! JSON bodies of the calls of pull workers.
//!
//! Every call about a task carries the `fence` of its claim. Once the lease has expired, or a person has ended the
//! task, that fence is stale: the call is refused, and nothing that the worker still does has an effect.

use pointsman_core::Json;
use pointsman_core::store::ClaimedTask;
use pointsman_core::task::{LogLevel, StepRun, TaskSubject};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::EventBody;
use crate::client::EmitBody;
use crate::task::format_optional_time;

/// A request to claim tasks. Durations are those of HTTP parameters (`30`, `30s`, `1m30s`, `PT30S`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimBody {
    /// 1 to 256 handlers or sources that run by `pull`.
    pub handlers: Vec<String>,
    /// The maximal number of tasks, 1 to 256; 1 if not given.
    #[serde(rename = "max", default, skip_serializing_if = "Option::is_none")]
    pub max_tasks: Option<u32>,
    /// How long to wait for a first task, up to 5 minutes; not at all if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<String>,
    /// The lease: how long the worker may go without a heartbeat, 1 second to 1 hour; one minute if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// The claimed tasks; empty if there were none in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedTaskList {
    /// The claimed tasks.
    pub tasks: Vec<ClaimedTaskBody>,
}

/// A claimed task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClaimedTaskBody {
    /// The task's id.
    pub id: String,
    /// Identifies this claim; every further call about the task carries it.
    pub fence: i64,
    /// When the lease ends unless the worker sends a heartbeat.
    pub lease_until: String,
    /// The attempt's number; 1 for the first.
    pub attempt: u32,
    /// The number of retries so far.
    pub retries: u32,
    /// The handler.
    pub handler: String,
    /// The source; for an event's task or an order's step the handler.
    pub source: String,
    /// The source's collection; for an event's task the event's type, for an order's step the node.
    #[serde(rename = "collection")]
    pub subject_name: String,
    /// The tenant.
    pub tenant: String,
    /// The object; for an order's step the order's path.
    pub key: Option<String>,
    /// The time a schedule planned it for, or empty.
    pub planned_at: String,
    /// The previous event of the object that was delivered to this handler.
    #[serde(rename = "prev_sent")]
    pub prev_sent_event_id: Option<u64>,
    /// Whether the task runs outside the order of its lane.
    #[serde(rename = "late")]
    pub out_of_order: bool,
    /// The event to handle; null for a source's task and an order's step.
    pub event: Option<EventBody>,
    /// The order's step; null for other tasks. The `result` of `done` becomes the order's value.
    #[serde(rename = "order")]
    pub order_step: Option<OrderStepBody>,
}

/// A step of an order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderStepBody {
    /// The order's full name: `/chain/path,id`.
    pub path: String,
    /// The chain's path.
    pub chain: String,
    /// The order's id.
    pub id: String,
    /// The node of the step.
    pub node: String,
    /// The order's value before the step.
    #[schema(value_type = serde_json::Value)]
    pub value: Json,
}

impl From<&StepRun> for OrderStepBody {
    fn from(step: &StepRun) -> Self {
        Self {
            path: step.order_key.to_string(),
            chain: step.order_key.chain.to_string(),
            id: step.order_key.id.to_string(),
            node: step.node.to_string(),
            value: step.value.clone(),
        }
    }
}

impl ClaimedTaskBody {
    /// The body of a task that was claimed with a lease.
    pub fn new(claimed: &ClaimedTask) -> Self {
        let subject = &claimed.subject;
        Self {
            id: claimed.id.to_string(),
            fence: claimed.fence,
            lease_until: format_optional_time(claimed.pull_worker_lease_until),
            attempt: claimed.attempt,
            retries: claimed.retries,
            handler: claimed.handler.to_string(),
            source: claimed.handler.to_string(),
            subject_name: subject.name().to_owned(),
            tenant: subject.tenant().to_string(),
            key: subject.key().map(ToString::to_string),
            planned_at: format_optional_time(claimed.planned_at),
            prev_sent_event_id: claimed.prev_sent_event_id.map(|id| id.get()),
            out_of_order: claimed.out_of_order,
            event: subject.event().map(|event| EventBody::from(&**event)),
            order_step: match subject {
                TaskSubject::Step(step) => Some(OrderStepBody::from(step)),
                TaskSubject::Event(_) | TaskSubject::CollectionRun(_) => None,
            },
        }
    }
}

/// A heartbeat: the worker still runs the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatBody {
    /// The fence of the claim.
    pub fence: i64,
    /// The lease from now on; that of the claim if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<String>,
}

/// The response to a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatResponse {
    /// When the lease ends unless the worker sends another heartbeat.
    pub lease_until: String,
}

/// Lines to add to a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddLogsBody {
    /// The fence of the claim.
    pub fence: i64,
    /// The lines, in order.
    pub logs: Vec<NewLogLine>,
}

/// A line to add to a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLogLine {
    /// When the line was written (RFC 3339); now if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The severity, `info` or `error`; `info` if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub level: Option<LogLevel>,
    /// The text.
    pub message: String,
}

/// The number of lines that were added. Lines beyond the limit are replaced by one line that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddLogsResponse {
    /// The number of lines that were added.
    #[serde(rename = "logged")]
    pub added_line_count: u64,
}

/// A report that the attempt has succeeded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct DoneBody {
    /// The fence of the claim.
    pub fence: i64,
    /// The task's result; for an order's step the order's new value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub result: Option<Json>,
    /// Events to emit, committed together with the end of the attempt.
    #[serde(rename = "emit", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<serde_json::Value>)]
    pub events_to_emit: Vec<EmitBody>,
    /// The last lines of its log.
    #[serde(rename = "log", skip_serializing_if = "Vec::is_empty")]
    pub log_lines: Vec<NewLogLine>,
}

/// A report that the attempt has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct FailBody {
    /// The fence of the claim.
    pub fence: i64,
    /// The error, for people.
    pub error: String,
    /// The return code of the attempt, such as a program's exit code; 1 if not given.
    #[serde(rename = "code", skip_serializing_if = "Option::is_none")]
    pub return_code: Option<i64>,
    /// Whether to retry, as far as the handler's policy allows; true if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<bool>,
    /// The delay before the retry; that of the policy if not given.
    #[serde(rename = "after", skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<String>,
}

/// A snooze: the task is put off and loses no retry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct SnoozeBody {
    /// The fence of the claim.
    pub fence: i64,
    /// How long the task is put off; five minutes if neither this nor `until` is given. Excludes `until`.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The time until which the task is put off (RFC 3339). Excludes `for`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// The state of a task after its attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptEndResponse {
    /// The task's id.
    pub id: String,
    /// `SCHEDULED`, `SUCCESS` or `FAILED`.
    pub status: String,
    /// The state in its lifecycle.
    pub state: String,
    /// When it will be retried, or empty.
    pub delay_until: String,
    /// The ids of the events that were emitted.
    #[serde(rename = "events")]
    pub emitted_event_ids: Vec<u64>,
}
