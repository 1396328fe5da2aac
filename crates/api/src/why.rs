//! Why a task does not run, on the wire.

use pointsman_core::task::why::{Gate, GateKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::RuleBody;
use crate::task::time;

/// The gates that a task has to pass before it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyBody {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    pub task_id: String,
    /// `SCHEDULED`, `RUNNING`, `SUCCESS`, `FAILED` or `CANCELED`.
    pub status: String,
    /// All of it in one sentence.
    pub summary: String,
    /// In the order in which they are passed; none for a task that runs or has ended.
    pub gates: Vec<GateBody>,
}

/// Something a task has to pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GateBody {
    /// `handler`, `sync`, `lane`, `order`, `due`, `rule`, `concurrency_per_key`, `concurrency`, `rate`, `target`,
    /// `worker` or `turn`.
    #[schema(value_type = String)]
    pub gate: GateKind,
    pub open: bool,
    /// What was looked at, and what holds it.
    pub detail: String,
    /// When it opens by itself, or empty where that is not known.
    pub until: String,
    /// The tasks that hold it.
    pub tasks: Vec<String>,
    /// The rule that holds it.
    pub rule: Option<RuleBody>,
}

impl From<&Gate> for GateBody {
    fn from(gate: &Gate) -> Self {
        Self {
            gate: gate.gate,
            open: gate.open,
            detail: gate.detail.clone(),
            until: time(gate.until),
            tasks: gate.tasks.iter().map(ToString::to_string).collect(),
            rule: gate.rule.as_ref().map(RuleBody::from),
        }
    }
}
