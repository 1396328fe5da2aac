//! Reports of how a worker's attempt ended. The whole body is validated first: with a fault nothing changes, and the
//! worker can send a corrected report.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use pointsman_api::worker::{AttemptEndResponse as AttemptEndBody, DoneBody, FailBody, SnoozeBody};
use pointsman_core::event_json_parser::{
    JsonError, check_result_size, parse_duration, parse_member, parse_string,
};
use pointsman_core::store::AttemptResult;
use pointsman_core::{Json as Value, NewEvent, TaskId, Tenant, Timestamp};
use pointsman_engine::{HandlerOutcome, LeasedTaskInfo};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::log_lines::parse_log_lines;
use super::{find_tenant_and_result_limit_of_task, lease_lost_problem, parse_fence};
use crate::app_state::App;
use crate::auth::Worker;
use crate::events::parse_event_at_pointer;
use crate::json_body::OptionalJsonBody;
use crate::path_segment::{PathSegment, TaskIdSegment};
use crate::problem::Problem;

/// Maximum number of events that an attempt emits.
const MAX_EMITTED_EVENTS: usize = 1000;
/// Maximum length of an error.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Duration of a snooze if the request has neither `for` nor `until`.
const DEFAULT_SNOOZE_DURATION: Duration = Duration::from_secs(300);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct CompleteTaskRequest {
    fence: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    emit: Option<Box<RawValue>>,
    log: Option<Box<RawValue>>,
}

/// Completes a task. Its emitted events are committed together with its end.
#[utoipa::path(
    post,
    path = "/api/v1/worker/{id}/done",
    operation_id = "end_task",
    tag = "worker",
    params(("id" = String, Path, description = "a task's id")),
    request_body(content = DoneBody),
    responses(
        (status = 200, description = "The task after the report", body = AttemptEndBody),
        (status = 409, description = "The task is no longer leased to this worker; nothing was emitted",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn complete_task(
    Worker(caller): Worker,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    OptionalJsonBody(members): OptionalJsonBody<CompleteTaskRequest>,
) -> Result<Json<AttemptEndBody>, Problem> {
    let fence = parse_fence(members.fence)?;
    let LeasedTaskInfo { tenant, max_result_bytes: max_result } =
        find_tenant_and_result_limit_of_task(&app, &caller, &id, fence).await?;
    let result = members.result.map(|raw| parse_result_value(&raw, max_result)).transpose()?;
    let emits = members
        .emit
        .map(|raw| parse_emitted_events(&raw, &tenant, app.now()))
        .transpose()?
        .unwrap_or_default();
    let logs =
        members.log.map(|raw| parse_log_lines("/log", &raw, app.now())).transpose()?.unwrap_or_default();
    let outcome = HandlerOutcome {
        result: AttemptResult::Succeeded { result },
        target_health: None,
        emitted_events: emits,
        log_lines: logs,
    };
    end_attempt(&app, &id, fence, outcome).await
}

fn parse_result_value(raw: &RawValue, max_bytes: usize) -> Result<Value, JsonError> {
    let fault = |detail| JsonError::new("/result", detail);
    check_result_size(raw.get().len(), max_bytes).map_err(fault)?;
    Value::parse(raw.get()).map_err(|e| fault(e.to_string()))
}

/// Parses the emitted events, which must belong to the tenant of the task.
fn parse_emitted_events(raw: &RawValue, tenant: &Tenant, now: Timestamp) -> Result<Vec<NewEvent>, Problem> {
    let list: Vec<Box<RawValue>> = parse_member("/emit", raw, "a list of events")?;
    if list.len() > MAX_EMITTED_EVENTS {
        let detail =
            format!("an attempt emits at most {MAX_EMITTED_EVENTS} events, these are {}", list.len());
        return Err(JsonError::new("/emit", detail).into());
    }
    let parse_event = |(index, raw): (usize, &RawValue)| {
        let at = format!("/emit/{index}");
        let event = parse_event_at_pointer(raw, &at, tenant, now)?;
        if event.tenant != *tenant {
            let detail = format!("a task of the tenant {tenant} can emit only for {tenant}");
            return Err(Problem::unprocessable(detail).with_pointer(format!("{at}/tenant")));
        }
        Ok(event)
    };
    list.iter().map(|raw| &**raw).enumerate().map(parse_event).collect()
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct FailTaskRequest {
    fence: Option<Box<RawValue>>,
    error: Option<Box<RawValue>>,
    #[serde(rename = "code")]
    return_code: Option<Box<RawValue>>,
    retry: Option<Box<RawValue>>,
    #[serde(rename = "after")]
    retry_after: Option<Box<RawValue>>,
}

/// Fails an attempt. It is retried by the handler's retry policy, unless `retry` is false.
#[utoipa::path(
    post,
    path = "/api/v1/worker/{id}/fail",
    operation_id = "fail_task",
    tag = "worker",
    params(("id" = String, Path, description = "a task's id")),
    request_body(content = FailBody),
    responses(
        (status = 200, description = "The task after the report", body = AttemptEndBody),
        (status = 409, description = "The task is no longer leased to this worker",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn fail_task(
    Worker(caller): Worker,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    OptionalJsonBody(members): OptionalJsonBody<FailTaskRequest>,
) -> Result<Json<AttemptEndBody>, Problem> {
    let fence = parse_fence(members.fence)?;
    let error = members
        .error
        .ok_or_else(|| JsonError::new("/error", "`error` is required: a text that says what failed"))?;
    let error = parse_string("/error", &error)?;
    if error.len() > MAX_ERROR_BYTES {
        return Err(JsonError::new("/error", format!("an error has at most {MAX_ERROR_BYTES} bytes")).into());
    }
    let code = members
        .return_code
        .map(|raw| parse_member("/code", &raw, "a whole number"))
        .transpose()?
        .unwrap_or(1);
    let retry =
        members.retry.map(|raw| parse_member("/retry", &raw, "true or false")).transpose()?.unwrap_or(true);
    let retry_after = members.retry_after.map(|raw| parse_duration("/after", &raw)).transpose()?;
    find_tenant_and_result_limit_of_task(&app, &caller, &id, fence).await?;
    let retry_at = retry_after.map(|delay| app.now().plus(delay));
    let ended = AttemptResult::Failed { error, return_code: code, retry_at, permanent: !retry };
    end_attempt(&app, &id, fence, HandlerOutcome { result: ended, ..HandlerOutcome::succeeded() }).await
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct SnoozeTaskRequest {
    fence: Option<Box<RawValue>>,
    #[serde(rename = "for")]
    duration: Option<Box<RawValue>>,
    until: Option<Box<RawValue>>,
}

/// Snoozes a task by at least a second. It costs no retry.
#[utoipa::path(
    post,
    path = "/api/v1/worker/{id}/snooze",
    operation_id = "snooze_task",
    tag = "worker",
    params(("id" = String, Path, description = "a task's id")),
    request_body(content = SnoozeBody),
    responses(
        (status = 200, description = "The task after the report", body = AttemptEndBody),
        (status = 409, description = "The task is no longer leased to this worker",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn snooze_task(
    Worker(caller): Worker,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    OptionalJsonBody(members): OptionalJsonBody<SnoozeTaskRequest>,
) -> Result<Json<AttemptEndBody>, Problem> {
    let fence = parse_fence(members.fence)?;
    let until = parse_snooze_until(members.duration.as_deref(), members.until.as_deref(), app.now())?;
    find_tenant_and_result_limit_of_task(&app, &caller, &id, fence).await?;
    end_attempt(
        &app,
        &id,
        fence,
        HandlerOutcome { result: AttemptResult::Snoozed { until }, ..HandlerOutcome::succeeded() },
    )
    .await
}

fn parse_snooze_until(
    length: Option<&RawValue>,
    until: Option<&RawValue>,
    now: Timestamp,
) -> Result<Timestamp, JsonError> {
    match (length, until) {
        (None, None) => Ok(now.plus(DEFAULT_SNOOZE_DURATION)),
        (Some(length), None) => parse_duration("/for", length).map(|length| now.plus(length)),
        (None, Some(until)) => parse_member("/until", until, "a time like 2026-01-31T12:00:00Z"),
        (Some(_), Some(_)) => Err(JsonError::new("/until", "`for` and `until` exclude each other")),
    }
}

async fn end_attempt(
    app: &App,
    id: &TaskId,
    fence: i64,
    outcome: HandlerOutcome,
) -> Result<Json<AttemptEndBody>, Problem> {
    let (inner, task) = (app.clone(), id.clone());
    // The end is stored and its waiters are notified even if the worker disconnects.
    let ended = app.run_change_to_completion(async move {
        Ok(inner.engine.end_leased_task(&task, fence, outcome).await?)
    });
    let finished = ended.await?.map_err(lease_lost_problem)?;
    Ok(Json(AttemptEndBody {
        id: id.to_string(),
        status: finished.status.public_name(None).into(),
        state: finished.status.as_str().into(),
        delay_until: finished.next_attempt_due_at.map(|due| due.to_string()).unwrap_or_default(),
        emitted_event_ids: finished.emitted_events.iter().map(|event| event.id.get()).collect(),
    }))
}
