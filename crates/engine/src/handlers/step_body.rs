//! The JSON body that the handler of a step gets, with its order.

use pointsman_core::Json;
use pointsman_core::store::ClaimedTask;
use pointsman_core::task::StepRun;
use serde::Serialize;

#[derive(Serialize)]
struct StepBody<'a> {
    task_id: &'a str,
    order: String,
    node: &'a str,
    tenant: &'a str,
    /// The value as it was stored, without parsing it.
    value: &'a Json,
    /// Empty for a step that was not planned for a time.
    planned_at: String,
}

/// Encodes the body of a step, which is the same for commands and HTTP targets.
pub(super) fn encode_step_body(task: &ClaimedTask, step: &StepRun) -> String {
    let body = StepBody {
        task_id: task.id.as_str(),
        order: step.order_key.to_string(),
        node: step.node.as_str(),
        tenant: step.tenant.as_str(),
        value: &step.value,
        planned_at: task.planned_at.map(|planned| planned.to_string()).unwrap_or_default(),
    };
    // Strings and what has been checked to be JSON always serialise.
    serde_json::to_string(&body).unwrap_or_default()
}
