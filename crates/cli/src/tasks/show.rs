//! `pointsman tasks show`: one task with its attempts and result.

use pointsman_api::client::Client;
use pointsman_api::{EndedAttemptBody, RunningAttemptBody, TaskBody, TaskDetail};

use super::task_request_failure;
use crate::failure::CommandResult;
use crate::output::{Output, escape_controls, format_count, format_timestamp};

pub(super) async fn show_task(client: &Client, output: Output, id: &str) -> CommandResult {
    let detail = match client.read_task(id).await {
        Ok(detail) => detail,
        Err(error) => return Err(task_request_failure(client, id, error).await),
    };
    if output.is_json() {
        return Ok(output.print_json(&detail)?);
    }
    output.print_fields(&task_fields(&detail))?;
    let rows = detail
        .attempts
        .iter()
        .map(ended_attempt_row)
        .chain(detail.running_attempt.iter().map(running_attempt_row));
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        output.print_line("")?;
        output.print_table(&["attempt", "started", "ended", "outcome", "error"], rows, "")?;
    }
    Ok(())
}

fn task_fields(detail: &TaskDetail) -> Vec<(&'static str, String)> {
    let task = &detail.task;
    let (handler_label, collection_label, key_label) = match (task.event_id, &task.key) {
        (Some(_), _) => ("handler", "type", "key"),
        // A task without an event has a key only if it is a step of an order.
        (None, Some(_)) => ("handler", "node", "order"),
        (None, None) => ("source", "collection", "key"),
    };
    let lease = detail.running_attempt.as_ref().map(|running| running.lease_until.clone());
    vec![
        ("task", task.id.clone()),
        ("status", format!("{} ({})", task.status, task.state)),
        ("error", task.error.clone().unwrap_or_default()),
        (handler_label, task.handler.clone()),
        (collection_label, task.subject_name.clone()),
        (key_label, task.key.clone().unwrap_or_default()),
        ("tenant", task.tenant.clone()),
        ("event", task.event_id.map(|id| id.to_string()).unwrap_or_default()),
        ("priority", task.priority.to_string()),
        ("attempts", describe_attempts(task)),
        ("planned for", task.planned_at.clone()),
        ("created", task.created_at.clone()),
        ("not before", task.delay_until.clone()),
        ("started", task.started_at.clone()),
        ("lease until", lease.unwrap_or_default()),
        ("finished", task.finished_at.clone()),
        ("result", detail.result.as_ref().map(|json| json.as_str().to_owned()).unwrap_or_default()),
    ]
}

/// The number of attempts, and whether more follow.
fn describe_attempts(task: &TaskBody) -> String {
    let count = task.attempt;
    match (task.status.as_str(), count, task.retries) {
        ("SCHEDULED", 0, _) => "none".into(),
        ("SCHEDULED", _, _) => format!("{count}, will be retried"),
        (_, _, 0) => count.to_string(),
        (_, _, retries) => format!("{count} ({} used)", format_count(retries.into(), "retry", "retries")),
    }
}

fn ended_attempt_row(attempt: &EndedAttemptBody) -> Vec<String> {
    // The JSON name of the outcome.
    let outcome = serde_json::to_value(attempt.outcome).ok();
    vec![
        attempt.number.to_string(),
        format_timestamp(&attempt.started_at),
        format_timestamp(&attempt.ended_at),
        outcome.as_ref().and_then(|outcome| outcome.as_str()).unwrap_or("-").to_owned(),
        escape_controls(attempt.error.as_deref().unwrap_or("")).into_owned(),
    ]
}

fn running_attempt_row(attempt: &RunningAttemptBody) -> Vec<String> {
    let started = format_timestamp(&attempt.started_at);
    vec![attempt.number.to_string(), started, "-".into(), "running".into(), String::new()]
}
