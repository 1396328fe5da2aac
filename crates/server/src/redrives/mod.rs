//! `/api/v1/tasks/redrive` and `/api/v1/redrives`: retrying many tasks in `error`, at a limited rate.
//!
//! A redrive runs on the node that received the request, and only that node knows it.

mod request;

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, Uri};
use pointsman_api::{RedriveBody, RedriveDryRunResponse, RedriveFilter, RedriveJob, RedriveList};
use pointsman_core::ErrorChain;
use pointsman_core::store::{IdempotencyKey, StoreError, TaskFilter};
use pointsman_core::task::ErrorReason;
use pointsman_engine::{PreparedRedrive, RedriveRequest, RedriveState, RedriveStatus};
use tokio::time::sleep;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::{Caller, Operator, Viewer};
use crate::handler_lookup;
use crate::idempotency;
use crate::json_body::{EmptyRequest, IdempotentBody};
use crate::path_segment::PathSegment;
use crate::problem::Problem;
use crate::request_query::RequestQuery;
use request::{RedriveParameters, StartRedriveRequest};

/// Maximum number of tasks that a dry run counts.
const MAX_TASKS_COUNTED_IN_DRY_RUN: u64 = 1_000_000;
/// The wait before an unavailable store is queried again for the first time. The wait doubles with each query.
const MIN_STORE_RETRY_WAIT: Duration = Duration::from_millis(50);
/// The longest wait before an unavailable store is queried again.
const MAX_STORE_RETRY_WAIT: Duration = Duration::from_secs(5);

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(start_redrive))
        .routes(routes!(list_redrives))
        .routes(routes!(show_redrive, stop_redrive))
}

/// Retries all matching tasks in `error`, oldest first, each at the end of its lane.
#[utoipa::path(
    post,
    path = "/api/v1/tasks/redrive",
    operation_id = "redrive_tasks",
    tag = "tasks",
    params(("Idempotency-Key" = Option<String>, Header,
        description = "1 to 255 printable ASCII characters; a repeat with the same content gets the same response")),
    request_body(content = RedriveBody),
    responses(
        (status = 200, description = "With `dry_run`: what it would do. A repeat under the same idempotency key: the \
            redrive as it was started", body = RedriveDryRunResponse),
        (status = 202, description = "The redrive that was started", body = RedriveJob),
        (status = 404, description = "The handler is not defined and has no tasks",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
        (status = 409, description = "Too many redrives are running, or one for the same tasks; or the idempotency key was used with \
            other content",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
        (status = 422, description = "No filter and no `all`, or a status whose tasks cannot be retried",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn start_redrive(
    Operator(caller): Operator,
    State(app): State<App>,
    request: IdempotentBody<StartRedriveRequest>,
) -> Result<Response, Problem> {
    let (members, idempotency) = request.into_members_and_key(&caller, &["redrive"])?;
    let RedriveParameters {
        filter,
        handler_pointer,
        dry_run,
        rate,
        canary_count,
        audit_description: description,
    } = members.validate(&caller)?;
    // A repeat gets its response also when the handler is gone. A dry run is never recorded.
    let record = idempotency.as_ref().filter(|_| !dry_run);
    if let Some(recorded_job) = idempotency::read_recorded_response::<RedriveJob>(&app, record).await? {
        return Ok(Json(recorded_job).into_response());
    }
    if let Some(handler) = &filter.handler {
        handler_lookup::check_handler_exists_or_has_tasks(&app, &caller, handler, "handler")
            .await
            .map_err(|problem| problem.with_pointer(handler_pointer))?;
    }
    if dry_run {
        let (matched, sample) =
            app.engine.count_and_sample_failed_tasks(filter, MAX_TASKS_COUNTED_IN_DRY_RUN).await?;
        let sample = sample.iter().map(|task| task.id.to_string()).collect();
        let count = RedriveDryRunResponse {
            matched,
            has_more: matched >= MAX_TASKS_COUNTED_IN_DRY_RUN,
            sample_task_ids: sample,
            dry_run,
        };
        return Ok(Json(count).into_response());
    }
    let request = RedriveRequest { filter, rate, canary_count, requested_by: caller.token_name.clone() };
    let inner = app.clone();
    let start = app.run_change_to_completion(async move {
        record_and_start_redrive(&inner, &caller, request, description, idempotency).await
    });
    let (job, repeated) = start.await?;
    let status = if repeated { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(job)).into_response())
}

/// Starts a redrive. The response is recorded first, so that of concurrent requests with the same idempotency key only
/// one starts the redrive.
async fn record_and_start_redrive(
    app: &App,
    caller: &Caller,
    request: RedriveRequest,
    description: String,
    idempotency: Option<IdempotencyKey>,
) -> Result<(RedriveJob, bool), Problem> {
    let prepared = app.engine.prepare_redrive(request).map_err(Problem::conflict)?;
    let recorded =
        idempotency::record_response(app, idempotency.as_ref(), redrive_body(&prepared.status())).await;
    if let (Err(StoreError::Unavailable(_)), Some(idempotency)) = (&recorded, idempotency) {
        // A repeat of the request that starts the redrive must find its slot free.
        prepared.release_reservation();
        app.changes_in_flight.spawn(start_redrive_if_recorded(
            app.clone(),
            caller.clone(),
            prepared,
            description,
            idempotency,
        ));
    } else if let Ok(Ok((_, false))) = recorded {
        start_and_audit_redrive(app, caller, prepared, description).await;
    }
    recorded?
}

/// Starts a prepared redrive and records an audit entry.
async fn start_and_audit_redrive(app: &App, caller: &Caller, prepared: PreparedRedrive, description: String) {
    let id = prepared.start();
    app.record_audit_entry(caller, "redrive", format!("redrive {id}"), description).await;
}

/// Waits for a store that did not confirm whether it recorded a redrive, and starts the redrive if it did, because
/// repeats of the request, on any node, get the response that it runs.
async fn start_redrive_if_recorded(
    app: App,
    caller: Caller,
    prepared: PreparedRedrive,
    description: String,
    idempotency: IdempotencyKey,
) {
    let id = prepared.status().id;
    let is_recorded = async {
        let mut wait = MIN_STORE_RETRY_WAIT;
        loop {
            sleep(wait).await;
            wait = (wait * 2).min(MAX_STORE_RETRY_WAIT);
            match app.store().find_idempotent_response(idempotency.clone()).await {
                Ok(Ok(Some(text))) if is_response_for_redrive(&text, &id) => match prepared.reserve_again() {
                    Ok(()) => return true,
                    Err(error) => {
                        tracing::warn!(
                            redrive = id,
                            error = %ErrorChain(&error),
                            "a recorded redrive cannot start yet, because other redrives are running; retrying. If \
                             this persists, stop other redrives"
                        )
                    }
                },
                Ok(_) | Err(StoreError::Closed) => return false,
                Err(error) => {
                    tracing::debug!(
                        redrive = id,
                        error = %ErrorChain(&error),
                        "cannot read whether the store recorded this redrive; retrying. The redrive starts if the \
                         store recorded it"
                    )
                }
            }
        }
    };
    match app.stop_signal.run_until_cancelled(is_recorded).await {
        Some(true) => start_and_audit_redrive(&app, &caller, prepared, description).await,
        Some(false) => {}
        None => tracing::warn!(
            redrive = id,
            "the server stops before the store confirmed whether a redrive is recorded; the redrive is not started. If a repeat \
             under its idempotency key says that it runs, send it under another key"
        ),
    }
}

/// Whether a recorded response belongs to this redrive.
fn is_response_for_redrive(text: &str, id: &str) -> bool {
    serde_json::from_str::<RedriveJob>(text).is_ok_and(|job| job.id == id)
}

/// The redrives of this node: running ones, and the latest that have ended.
#[utoipa::path(
    get,
    path = "/api/v1/redrives",
    operation_id = "list_redrives",
    tag = "tasks",
    responses((status = 200, description = "The redrives, newest first", body = RedriveList)),
)]
pub(crate) async fn list_redrives(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<RedriveList>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    let jobs = app.engine.list_redrives();
    let redrives = jobs.iter().filter(|job| can_see_redrive(&caller, job)).map(redrive_body).collect();
    Ok(Json(RedriveList { redrives }))
}

/// The current state of a redrive.
#[utoipa::path(
    get,
    path = "/api/v1/redrives/{id}",
    operation_id = "show_redrive",
    tag = "tasks",
    params(("id" = String, Path, description = "a redrive's id")),
    responses((status = 200, description = "The redrive", body = RedriveJob)),
)]
pub(crate) async fn show_redrive(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(id): PathSegment<String>,
    uri: Uri,
) -> Result<Json<RedriveJob>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    find_redrive(&app, &caller, &id).map(|job| Json(redrive_body(&job)))
}

/// Stops a redrive. Tasks that it has retried stay retried. Succeeds if it has already ended.
#[utoipa::path(
    delete,
    path = "/api/v1/redrives/{id}",
    operation_id = "stop_redrive",
    tag = "tasks",
    params(("id" = String, Path, description = "a redrive's id")),
    responses((status = 200, description = "The redrive, which is stopping", body = RedriveJob)),
)]
pub(crate) async fn stop_redrive(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(id): PathSegment<String>,
    _: EmptyRequest,
) -> Result<Json<RedriveJob>, Problem> {
    find_redrive(&app, &caller, &id)?;
    let inner = app.clone();
    app.run_change_to_completion(async move {
        if inner.engine.stop_redrive(&id) {
            inner.record_audit_entry(&caller, "stop_redrive", format!("redrive {id}"), "").await;
        }
        find_redrive(&inner, &caller, &id).map(|job| Json(redrive_body(&job)))
    })
    .await
}

fn find_redrive(app: &App, caller: &Caller, id: &str) -> Result<RedriveStatus, Problem> {
    let job = app.engine.find_redrive(id).filter(|job| can_see_redrive(caller, job));
    job.ok_or_else(|| {
        Problem::not_found(format!("this node has no redrive {id:?}; only the latest are kept"))
    })
}

/// Whether the caller may see a redrive. A caller bound to a tenant sees only redrives of that tenant.
fn can_see_redrive(caller: &Caller, job: &RedriveStatus) -> bool {
    match &job.filter.tenant {
        Some(tenant) => caller.can_see_tenant(tenant),
        None => caller.bound_tenant.is_none(),
    }
}

fn redrive_body(job: &RedriveStatus) -> RedriveJob {
    RedriveJob {
        id: job.id.clone(),
        state: job.state.as_str().into(),
        stop_reason: match &job.state {
            RedriveState::Stopped(reason) => Some(reason.clone()),
            RedriveState::Running | RedriveState::WaitingForCanaries | RedriveState::Done => None,
        },
        requested_by: job.requested_by.clone(),
        filter: redrive_filter_body(&job.filter),
        rate: job.rate.map(|rate| rate.to_string()),
        canary_count: job.canary_count.and_then(|count| count.try_into().ok()),
        started_at: job.started_at.to_string(),
        ended_at: job.ended_at.map(|at| at.to_string()).unwrap_or_default(),
        matched: job.matched_count,
        retried: job.retried_count,
        refused: job.refused_count,
    }
}

/// The filter as the request gave it.
fn redrive_filter_body(filter: &TaskFilter) -> RedriveFilter {
    let failed = filter.error_reasons.contains(&ErrorReason::Failed);
    let status = match (failed, filter.error_reasons.contains(&ErrorReason::Canceled)) {
        (true, true) => "error",
        (false, true) => "CANCELED",
        (_, false) => "FAILED",
    };
    RedriveFilter {
        handler: filter.handler.as_ref().map(ToString::to_string),
        subject_name: filter.subject_name.clone(),
        tenant: filter.tenant.as_ref().map(ToString::to_string),
        key: filter.key.as_ref().map(ToString::to_string),
        status: status.into(),
        created_from: filter.created_from.map(|time| time.to_string()),
        created_before: filter.created_before.map(|time| time.to_string()),
    }
}
