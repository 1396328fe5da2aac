//! Tasks on the wire.

use pointsman_core::task::{Attempt, LogLine, State, Task};
use pointsman_core::{Json, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A task. Times are RFC 3339 in UTC with six fraction digits, or empty where there is none yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskBody {
    pub id: String,
    /// The source; for an event's task or an order's step the handler.
    pub source: String,
    /// The collection; for an event's task the event's type, for an order's step the node.
    pub collection: String,
    pub priority: u16,
    pub created_at: String,
    pub started_at: String,
    pub finished_at: String,
    /// `SCHEDULED`, `RUNNING`, `SUCCESS`, `FAILED` or `CANCELED`.
    pub status: String,
    /// The same in the lifecycle's own words: `new`, `scheduled`, `locked`, `done`, `error` or `missing`.
    pub state: String,
    pub handler: String,
    pub tenant: String,
    /// The object; for an order's step the order's path.
    pub key: Option<String>,
    pub event_id: Option<u64>,
    /// How many failures it has been forgiven.
    pub retries: u32,
    /// How often it was begun.
    pub attempt: u32,
    /// The time a schedule planned it for; empty if none did.
    pub planned_at: String,
    /// It is not begun before this.
    pub delay_until: String,
    pub error: Option<String>,
}

/// A time as a task has it: empty where there is none.
pub(crate) fn time(instant: Option<Timestamp>) -> String {
    instant.map(|instant| instant.to_string()).unwrap_or_default()
}

impl From<&Task> for TaskBody {
    fn from(task: &Task) -> Self {
        let status = task.life.state.status();
        let delay = match task.life.state {
            State::New { due } if due > task.created_at => Some(due),
            _ => None,
        };
        Self {
            id: task.id.to_string(),
            source: task.handler.to_string(),
            collection: task.collection.to_string(),
            priority: task.priority.get(),
            created_at: time(Some(task.created_at)),
            started_at: time(task.started_at),
            finished_at: time(task.finished_at),
            status: status.public(task.life.state.reason()).into(),
            state: status.as_str().into(),
            handler: task.handler.to_string(),
            tenant: task.tenant.to_string(),
            key: task.key.as_ref().map(ToString::to_string),
            event_id: task.event.map(|id| id.get()),
            retries: task.life.retries,
            attempt: task.life.attempt,
            planned_at: time(task.planned_at),
            delay_until: time(delay),
            error: task.error.clone(),
        }
    }
}

/// One task with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskDetail {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub snapshot: u64,
    #[serde(flatten)]
    pub task: TaskBody,
    /// The attempt that runs now.
    pub running: Option<RunningBody>,
    /// The attempts that have ended, in order.
    pub attempts: Vec<AttemptBody>,
    /// What the handler returned, if anything.
    #[schema(value_type = serde_json::Value)]
    pub result: Option<Json>,
}

/// An attempt that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunningBody {
    pub number: u32,
    pub started_at: String,
    /// When a worker that fetched it loses it unless it sends a heartbeat; empty where a node runs it.
    pub lease_until: String,
}

impl RunningBody {
    /// The attempt that runs, if one does.
    pub fn of(task: &Task) -> Option<Self> {
        let State::Locked(lease) = task.life.state else { return None };
        let (number, started_at) = (task.life.attempt, lease.since.to_string());
        Some(Self { number, started_at, lease_until: time(lease.until) })
    }
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttemptBody {
    pub number: u32,
    pub started_at: String,
    pub ended_at: String,
    /// `succeeded`, `failed`, `snoozed`, `released`, `crashed` or `canceled`.
    #[schema(value_type = String)]
    pub end: pointsman_core::task::AttemptEnd,
    pub error: Option<String>,
}

impl From<&Attempt> for AttemptBody {
    fn from(attempt: &Attempt) -> Self {
        Self {
            number: attempt.number,
            started_at: attempt.started_at.to_string(),
            ended_at: attempt.ended_at.to_string(),
            end: attempt.end,
            error: attempt.error.clone(),
        }
    }
}

/// Tasks, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub tasks: Vec<TaskBody>,
    /// Pass it as `cursor` to read on; null at the end.
    pub next: Option<String>,
}

/// Lines of a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub logs: Vec<LogBody>,
}

/// One line of a task's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogBody {
    pub time: String,
    pub message: String,
    /// `info` or `error`.
    #[schema(value_type = String)]
    pub level: pointsman_core::task::Level,
}

impl From<&LogLine> for LogBody {
    fn from(line: &LogLine) -> Self {
        Self { time: line.time.to_string(), message: line.message.clone(), level: line.level }
    }
}

/// A task changed. Sent on the stream without an id: it is not in the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskChangeBody {
    pub id: String,
    pub handler: String,
    pub tenant: String,
    pub key: Option<String>,
    /// The event's type, the source's collection, or the order's node.
    pub collection: String,
    /// Null for a source's task and an order's step.
    pub event_id: Option<u64>,
    pub status: String,
    pub state: String,
    pub attempt: u32,
    pub error: Option<String>,
    /// When it will be tried again, or empty.
    pub delay_until: String,
    pub time: String,
}
