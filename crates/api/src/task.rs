//! JSON bodies about tasks and their logs.

use pointsman_core::task::{AttemptRecord, LogLine, Task, TaskState};
use pointsman_core::{Json, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A task. Times are RFC 3339 in UTC with six fraction digits, or empty if there is none yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskBody {
    /// The task's id.
    pub id: String,
    /// The source; for an event's task or an order's step the handler.
    pub source: String,
    /// The collection; for an event's task the event's type, for an order's step the node.
    #[serde(rename = "collection")]
    pub subject_name: String,
    /// The priority.
    pub priority: u16,
    /// When the task was created.
    pub created_at: String,
    /// When the latest attempt started.
    pub started_at: String,
    /// When the task ended.
    pub finished_at: String,
    /// `SCHEDULED`, `RUNNING`, `SUCCESS`, `FAILED` or `CANCELED`.
    pub status: String,
    /// The state in its lifecycle: `new`, `scheduled`, `locked`, `done`, `error` or `missing`.
    pub state: String,
    /// The handler.
    pub handler: String,
    /// The tenant.
    pub tenant: String,
    /// The object; for an order's step the order's path.
    pub key: Option<String>,
    /// The event; null for a source's task and for an order's step.
    pub event_id: Option<u64>,
    /// The number of retries so far.
    pub retries: u32,
    /// The number of attempts so far.
    pub attempt: u32,
    /// The time a schedule planned it for; empty if none did.
    pub planned_at: String,
    /// The task does not start before this time; empty if it need not wait for a time.
    pub delay_until: String,
    /// The error of the latest failed attempt.
    pub error: Option<String>,
}

/// Formats a time as task JSON has it: empty if there is none.
pub(crate) fn format_optional_time(instant: Option<Timestamp>) -> String {
    instant.map(|instant| instant.to_string()).unwrap_or_default()
}

impl From<&Task> for TaskBody {
    fn from(task: &Task) -> Self {
        let status = task.lifecycle.state.status();
        let delay = match task.lifecycle.state {
            TaskState::New { due } if due > task.created_at => Some(due),
            _ => None,
        };
        Self {
            id: task.id.to_string(),
            source: task.handler.to_string(),
            subject_name: task.subject_name.to_string(),
            priority: task.priority.get(),
            created_at: format_optional_time(Some(task.created_at)),
            started_at: format_optional_time(task.started_at),
            finished_at: format_optional_time(task.finished_at),
            status: status.public_name(task.lifecycle.state.error_reason()).into(),
            state: status.as_str().into(),
            handler: task.handler.to_string(),
            tenant: task.tenant.to_string(),
            key: task.key.as_ref().map(ToString::to_string),
            event_id: task.event_id.map(|id| id.get()),
            retries: task.lifecycle.retries,
            attempt: task.lifecycle.attempt,
            planned_at: format_optional_time(task.planned_at),
            delay_until: format_optional_time(delay),
            error: task.error.clone(),
        }
    }
}

/// One task with its attempts and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskDetail {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The task.
    #[serde(flatten)]
    pub task: TaskBody,
    /// The running attempt; null if none is running.
    #[serde(rename = "running")]
    pub running_attempt: Option<RunningAttemptBody>,
    /// The ended attempts, in order.
    pub attempts: Vec<EndedAttemptBody>,
    /// The result that the handler returned, if any.
    #[schema(value_type = serde_json::Value)]
    pub result: Option<Json>,
}

/// A running attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunningAttemptBody {
    /// The attempt's number; 1 for the first.
    pub number: u32,
    /// When the attempt started.
    pub started_at: String,
    /// When a pull worker's lease ends unless it sends a heartbeat; empty if a node runs it.
    pub lease_until: String,
}

impl RunningAttemptBody {
    /// The running attempt of a task, if it has one.
    pub fn from_task(task: &Task) -> Option<Self> {
        let TaskState::Locked(lease) = task.lifecycle.state else { return None };
        let (number, started_at) = (task.lifecycle.attempt, lease.since.to_string());
        Some(Self { number, started_at, lease_until: format_optional_time(lease.until) })
    }
}

/// An ended attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndedAttemptBody {
    /// The attempt's number; 1 for the first.
    pub number: u32,
    /// When the attempt started.
    pub started_at: String,
    /// When the attempt ended.
    pub ended_at: String,
    /// `succeeded`, `failed`, `snoozed`, `released`, `crashed` or `canceled`.
    #[serde(rename = "end")]
    #[schema(value_type = String)]
    pub outcome: pointsman_core::task::AttemptOutcome,
    /// The error of a failed attempt.
    pub error: Option<String>,
}

impl From<&AttemptRecord> for EndedAttemptBody {
    fn from(attempt: &AttemptRecord) -> Self {
        Self {
            number: attempt.number,
            started_at: attempt.started_at.to_string(),
            ended_at: attempt.ended_at.to_string(),
            outcome: attempt.outcome,
            error: attempt.error.clone(),
        }
    }
}

/// Tasks, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The tasks, newest first.
    pub tasks: Vec<TaskBody>,
    /// Pass it as `cursor` to read the next page; null at the end.
    pub next: Option<String>,
}

/// Lines of a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The lines, in order.
    pub logs: Vec<LogLineBody>,
}

/// One line of a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLineBody {
    /// When the line was written.
    pub time: String,
    /// The text.
    pub message: String,
    /// `info` or `error`.
    #[schema(value_type = String)]
    pub level: pointsman_core::task::LogLevel,
}

impl From<&LogLine> for LogLineBody {
    fn from(line: &LogLine) -> Self {
        Self { time: line.time.to_string(), message: line.message.clone(), level: line.level }
    }
}

/// A change of a task. Sent on the event stream without an id, because it is not in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskChangeBody {
    /// The task's id.
    pub id: String,
    /// The handler.
    pub handler: String,
    /// The tenant.
    pub tenant: String,
    /// The object; for an order's step the order's path.
    pub key: Option<String>,
    /// The event's type, the source's collection, or the order's node.
    #[serde(rename = "collection")]
    pub subject_name: String,
    /// The event; null for a source's task and for an order's step.
    pub event_id: Option<u64>,
    /// `SCHEDULED`, `RUNNING`, `SUCCESS`, `FAILED` or `CANCELED`.
    pub status: String,
    /// The state in its lifecycle: `new`, `scheduled`, `locked`, `done`, `error` or `missing`.
    pub state: String,
    /// The number of attempts so far.
    pub attempt: u32,
    /// The error of the latest failed attempt.
    pub error: Option<String>,
    /// When it will be retried, or empty.
    pub delay_until: String,
    /// When the task changed.
    pub time: String,
}
