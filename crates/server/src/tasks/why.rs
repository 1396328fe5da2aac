//! Explains why a task is waiting.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{TaskGateBody, TaskWhyBody};
use pointsman_core::task::gates::{Gate, GateKind};
use pointsman_core::task::{ErrorReason, Task, TaskState};

use super::single_task::find_visible_task;
use crate::app_state::App;
use crate::auth::{Caller, Viewer};
use crate::path_segment::{PathSegment, TaskIdSegment};
use crate::problem::Problem;
use crate::request_query::RequestQuery;
use crate::rules::{is_rule_author_hidden, rule_body_visible_to};

/// The gates that a task has to pass before it runs, in order, each with whether it is open and what blocks it.
#[utoipa::path(
    get,
    path = "/api/v1/tasks/{id}/why",
    operation_id = "explain_task",
    tag = "tasks",
    params(("id" = String, Path, description = "a task's id")),
    responses((status = 200, description = "The gates", body = TaskWhyBody)),
)]
pub(crate) async fn explain_task(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    uri: Uri,
) -> Result<Json<TaskWhyBody>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    let (task, journal_range) = find_visible_task(&app, &caller, &id).await?;
    let mut gates = app.store().explain_waiting(&id, app.now()).await?.unwrap_or_default();
    let mut bodies = Vec::new();
    for gate in &mut gates {
        redact_gate_for_tenant(&app, &caller, gate).await?;
        bodies.push(TaskGateBody {
            rule: gate.rule.as_ref().map(|rule| rule_body_visible_to(&caller, rule)),
            ..TaskGateBody::from(&*gate)
        });
    }
    let state = task.lifecycle.state;
    Ok(Json(TaskWhyBody {
        newest_event_id: journal_range.newest_event_id.get(),
        task_id: id.to_string(),
        status: state.status().public_name(state.error_reason()).into(),
        summary: summarize_gates(&task, &gates),
        gates: bodies,
    }))
}

/// Hides from a caller bound to a tenant the ids of other tenants' tasks, the names of nodes, and who set a rule for
/// all tenants.
async fn redact_gate_for_tenant(app: &App, caller: &Caller, gate: &mut Gate) -> Result<(), Problem> {
    if caller.bound_tenant.is_none() {
        return Ok(());
    }
    if let Some(rule) = gate.rule.as_ref().filter(|rule| is_rule_author_hidden(caller, rule)) {
        let why = if rule.reason.is_empty() { String::new() } else { format!(": {}", rule.reason) };
        gate.detail = format!("a {} of all tenants since {}{why}", rule.kind.as_str(), rule.since);
    }
    if gate.kind == GateKind::CapableNodeOrWorker && gate.open {
        gate.detail = "a live node can run it".into();
    }
    let mut own = Vec::new();
    let mut others = 0;
    for id in std::mem::take(&mut gate.blocking_tasks) {
        let task = app.store().read_task(&id).await?;
        match task.is_some_and(|(task, _)| caller.can_see_tenant(&task.tenant)) {
            true => own.push(id),
            false => {
                others += 1;
                gate.detail = gate.detail.replace(id.as_str(), "a task of another tenant");
            }
        }
    }
    gate.blocking_tasks = own;
    match others {
        0 => {}
        1 => gate.detail.push_str("; one of the blocking tasks is not shown"),
        n => gate.detail.push_str(&format!("; {n} of the blocking tasks are not shown")),
    }
    Ok(())
}

/// Summarizes in one sentence why a task is waiting: the detail of the first closed gate, or why no gate is closed.
fn summarize_gates(task: &Task, gates: &[Gate]) -> String {
    if let Some(closed) = gates.iter().find(|gate| !gate.open) {
        return closed.detail.clone();
    }
    let ended = task.finished_at.map(|at| format!(" at {at}")).unwrap_or_default();
    match task.lifecycle.state {
        TaskState::Locked(lease) => {
            format!("attempt {} has run since {}", task.lifecycle.attempt, lease.since)
        }
        TaskState::Done => format!("it succeeded{ended}"),
        TaskState::Error { reason: ErrorReason::Canceled, .. } => {
            let last_error =
                task.error.as_ref().map(|error| format!(" (last error: {error})")).unwrap_or_default();
            format!("it was cancelled{ended}{last_error}; retry it to run it again")
        }
        TaskState::Error { reason: ErrorReason::Failed, .. } => {
            format!("it failed{ended}; retry it to run it again")
        }
        TaskState::Error { reason: ErrorReason::Crashed, .. } => {
            format!("its node or worker died too often, the last{ended}; retry it to run it again")
        }
        TaskState::New { .. } | TaskState::Scheduled | TaskState::Missing { .. } => {
            "nothing blocks it: it is about to run".into()
        }
    }
}
