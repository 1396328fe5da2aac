//! `pointsman tasks show`: one task, its attempts and its result.

use pointsman_api::client::Client;
use pointsman_api::{AttemptBody, RunningBody, TaskBody, TaskDetail};

use super::about;
use crate::failure::Result;
use crate::output::{Output, clean, counted, day_and_time};

pub(super) async fn show(client: &Client, output: Output, id: &str) -> Result {
    let detail = match client.task(id).await {
        Ok(detail) => detail,
        Err(error) => return Err(about(client, id, error).await),
    };
    if output.is_json() {
        return Ok(output.json(&detail)?);
    }
    output.facts(&facts(&detail))?;
    let rows = detail.attempts.iter().map(ended).chain(detail.running.iter().map(running));
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        output.line("")?;
        output.table(&["attempt", "started", "ended", "end", "error"], rows, "")?;
    }
    Ok(())
}

fn facts(detail: &TaskDetail) -> Vec<(&'static str, String)> {
    let task = &detail.task;
    let (who, what, of) = match (task.event_id, &task.key) {
        (Some(_), _) => ("handler", "type", "key"),
        // Of tasks without an event, only an order's have a key.
        (None, Some(_)) => ("handler", "node", "order"),
        (None, None) => ("source", "collection", "key"),
    };
    let lease = detail.running.as_ref().map(|running| running.lease_until.clone());
    vec![
        ("task", task.id.clone()),
        ("status", format!("{} ({})", task.status, task.state)),
        ("error", task.error.clone().unwrap_or_default()),
        (who, task.handler.clone()),
        (what, task.collection.clone()),
        (of, task.key.clone().unwrap_or_default()),
        ("tenant", task.tenant.clone()),
        ("event", task.event_id.map(|id| id.to_string()).unwrap_or_default()),
        ("priority", task.priority.to_string()),
        ("attempts", attempts(task)),
        ("planned", task.planned_at.clone()),
        ("created", task.created_at.clone()),
        ("not before", task.delay_until.clone()),
        ("started", task.started_at.clone()),
        ("lease until", lease.unwrap_or_default()),
        ("finished", task.finished_at.clone()),
        ("result", detail.result.as_ref().map(|json| json.as_str().to_owned()).unwrap_or_default()),
    ]
}

/// How often it was begun, and what that means for it.
fn attempts(task: &TaskBody) -> String {
    let so_far = task.attempt;
    match (task.status.as_str(), so_far, task.retries) {
        ("SCHEDULED", 0, _) => "none yet".into(),
        ("SCHEDULED", _, _) => format!("{so_far}, and it will be tried again"),
        (_, _, 0) => so_far.to_string(),
        (_, _, retries) => format!("{so_far} ({} used)", counted(retries.into(), "retry", "retries")),
    }
}

fn ended(attempt: &AttemptBody) -> Vec<String> {
    // The wire has one word for each end; reading it from there keeps it the same everywhere.
    let end = serde_json::to_value(attempt.end).ok();
    vec![
        attempt.number.to_string(),
        day_and_time(&attempt.started_at),
        day_and_time(&attempt.ended_at),
        end.as_ref().and_then(|end| end.as_str()).unwrap_or("-").to_owned(),
        clean(attempt.error.as_deref().unwrap_or("")).into_owned(),
    ]
}

fn running(attempt: &RunningBody) -> Vec<String> {
    let started = day_and_time(&attempt.started_at);
    vec![attempt.number.to_string(), started, "-".into(), "running".into(), String::new()]
}
