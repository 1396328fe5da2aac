//! JSON bodies that explain why a task does not run.

use pointsman_core::task::gates::{Gate, GateKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RuleBody;
use crate::task::format_optional_time;

/// The gates that a task has to pass before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskWhyBody {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The task's id.
    pub task_id: String,
    /// `SCHEDULED`, `RUNNING`, `SUCCESS`, `FAILED` or `CANCELED`.
    pub status: String,
    /// The explanation in one sentence.
    pub summary: String,
    /// The gates, in the order in which a task passes them; empty for a task that runs or has ended.
    pub gates: Vec<TaskGateBody>,
}

/// A condition that a task has to pass before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskGateBody {
    /// `handler`, `sync`, `lane`, `order`, `due`, `rule`, `concurrency_per_key`, `concurrency`, `rate`, `target`,
    /// `worker` or `turn`.
    #[serde(rename = "gate")]
    #[schema(value_type = String)]
    pub kind: GateKind,
    /// Whether the task meets the condition.
    pub open: bool,
    /// The condition that was checked, and why the gate is closed.
    pub detail: String,
    /// When it opens without intervention, or empty if that is unknown.
    #[serde(rename = "until")]
    pub opens_at: String,
    /// The tasks that close it.
    #[serde(rename = "tasks")]
    pub blocking_tasks: Vec<String>,
    /// The rule that closes it.
    pub rule: Option<RuleBody>,
}

impl From<&Gate> for TaskGateBody {
    fn from(gate: &Gate) -> Self {
        Self {
            kind: gate.kind,
            open: gate.open,
            detail: gate.detail.clone(),
            opens_at: format_optional_time(gate.opens_at),
            blocking_tasks: gate.blocking_tasks.iter().map(ToString::to_string).collect(),
            rule: gate.rule.as_ref().map(RuleBody::from),
        }
    }
}
