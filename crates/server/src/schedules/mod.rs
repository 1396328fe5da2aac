//! `/api/v1/schedules`: schedules with their planned times and ledgers, pausing and blocking them, and running them
//! now.

mod rule_target;
mod schedule_bodies;

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode, Uri};
use pointsman_api::{FireBody, FireList, RunScheduleResponse, ScheduleDetail, ScheduleList};
use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Rule, RuleKind, ScheduleName, Timestamp};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::{Caller, Operator, Role, Viewer};
use crate::idempotency;
use crate::json_body::EmptyRequest;
use crate::path_segment::PathSegment;
use crate::problem::Problem;
use crate::request_query::RequestQuery;
use crate::rules;
use schedule_bodies::{
    PlannedTimesQuery, find_schedule, find_schedule_with_times, read_schedule_page, require_defined_schedule,
};

/// Maximum number of schedules or ledger rows in a response.
const MAX_LIMIT: usize = 1000;
/// Default number of ledger rows in a response.
const DEFAULT_FIRES_LIMIT: usize = 100;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_schedules))
        .routes(routes!(show_schedule))
        .routes(routes!(list_fires))
        .routes(routes!(run_schedule))
        .merge(rules::http_routes::<ScheduleName>())
}

/// The schedules, by name.
#[utoipa::path(
    get,
    path = "/api/v1/schedules",
    operation_id = "list_schedules",
    tag = "schedules",
    params(
        ("limit" = Option<u16>, Query, description = "1 to 1000, 1000 if not given; a page with more than 10,000 \
            planned times ends earlier"),
        ("cursor" = Option<String>, Query, description = "the `next` of the previous response"),
        ("times" = Option<u16>, Query, description = "number of planned times of each schedule: 0 to 1000, 5 if not given"),
        ("after" = Option<String>, Query, description = "planned times after this one (RFC 3339), now if not given"),
        ("until" = Option<String>, Query, description = "planned times up to this one (RFC 3339)"),
    ),
    responses((status = 200, description = "The schedules", body = ScheduleList)),
)]
pub(crate) async fn list_schedules(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ScheduleList>, Problem> {
    let [times, after, until] = PlannedTimesQuery::PARAMETERS;
    let query = RequestQuery::from_uri(&uri, &["limit", "cursor", times, after, until])?;
    let limit = query.parse_limit(MAX_LIMIT, MAX_LIMIT)?;
    read_schedule_page(
        &app,
        &caller,
        query.parse_parameter("cursor")?,
        limit,
        PlannedTimesQuery::from_query(&query, app.now())?,
    )
    .await
    .map(Json)
}

/// One schedule: when it fires, what it creates, and its rules.
#[utoipa::path(
    get,
    path = "/api/v1/schedules/{name}",
    operation_id = "show_schedule",
    tag = "schedules",
    params(
        ("name" = String, Path, description = "a schedule's name, or `source%2Fcollection`"),
        ("times" = Option<u16>, Query, description = "number of planned times: 0 to 1000, 5 if not given"),
        ("after" = Option<String>, Query, description = "planned times after this one (RFC 3339), now if not given"),
        ("until" = Option<String>, Query, description = "planned times up to this one (RFC 3339)"),
    ),
    responses((status = 200, description = "The schedule", body = ScheduleDetail)),
)]
pub(crate) async fn show_schedule(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(name): PathSegment<ScheduleName>,
    uri: Uri,
) -> Result<Json<ScheduleDetail>, Problem> {
    let query = RequestQuery::from_uri(&uri, &PlannedTimesQuery::PARAMETERS)?;
    find_schedule_with_times(&app, &caller, &name, PlannedTimesQuery::from_query(&query, app.now())?)
        .await
        .map(Json)
}

/// The ledger of a schedule: the outcome of each planned time, latest first.
#[utoipa::path(
    get,
    path = "/api/v1/schedules/{name}/fires",
    operation_id = "read_fires",
    tag = "schedules",
    params(
        ("name" = String, Path, description = "a schedule's name, or `source%2Fcollection`"),
        ("limit" = Option<u16>, Query, description = "1 to 1000, 100 if not given"),
        ("before" = Option<String>, Query, description = "times planned before this one (RFC 3339)"),
    ),
    responses((status = 200, description = "One row per planned time", body = FireList)),
)]
pub(crate) async fn list_fires(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(name): PathSegment<ScheduleName>,
    uri: Uri,
) -> Result<Json<FireList>, Problem> {
    let query = RequestQuery::from_uri(&uri, &["limit", "before"])?;
    let limit = query.parse_limit(DEFAULT_FIRES_LIMIT, MAX_LIMIT)?;
    let before: Option<Timestamp> = query.parse_parameter("before")?;
    find_schedule(&app, &caller, &name).await?;
    let page = app.store().list_fires(&name, before, limit).await?;
    let next =
        page.fires.last().map(|fire| fire.planned_at.to_string()).filter(|_| page.fires.len() == limit);
    let fires = page.fires.iter().map(FireBody::from).collect();
    Ok(Json(FireList { newest_event_id: page.journal_range.newest_event_id.get(), fires, next }))
}

/// Runs a schedule now: creates what it creates at a planned time. It writes no row in the ledger.
#[utoipa::path(
    post,
    path = "/api/v1/schedules/{name}/run",
    operation_id = "run_schedule",
    tag = "schedules",
    params(
        ("name" = String, Path, description = "a schedule's name, or `source%2Fcollection`"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "1 to 255 printable ASCII characters; a repeat gets the same response"),
    ),
    responses(
        (status = 201, description = "The event, the task or the order", body = RunScheduleResponse),
        (status = 200, description = "The task that is queued or running already, or the response to the first request \
            under this idempotency key", body = RunScheduleResponse),
        (status = 409, description = "An admin has blocked it and the caller is not an admin; its order is still running; or the \
            idempotency key was used for another request",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn run_schedule(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(name): PathSegment<ScheduleName>,
    headers: HeaderMap,
    _: EmptyRequest,
) -> Result<(StatusCode, Json<RunScheduleResponse>), Problem> {
    let idempotency =
        idempotency::idempotency_key_for_caller(&headers, &caller, &["run schedule", name.as_str()], &[])?;
    // A repeat gets its response also when the schedule is gone, blocked, or creates something else now.
    if let Some(result) = app.engine.find_recorded_schedule_run(idempotency.as_ref()).await? {
        return Ok((StatusCode::OK, Json(run_schedule_response(result)?)));
    }
    require_defined_schedule(&app, &caller, &name)?;
    require_not_blocked(&app, &caller, &name).await?;
    let inner = app.clone();
    let run = app.run_change_to_completion(async move {
        run_and_audit_schedule(&inner, &caller, &name, idempotency).await
    });
    let (response, repeated) = run.await?;
    let status = if response.created && !repeated { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(response)))
}

/// Rejects running a blocked schedule, unless the caller is an admin. A pause does not prevent it.
async fn require_not_blocked(app: &App, caller: &Caller, name: &ScheduleName) -> Result<(), Problem> {
    if caller.role.includes(Role::Admin) {
        return Ok(());
    }
    let rules = app.store().list_rules().await?;
    let block = rules.iter().find(|rule| rule.kind == RuleKind::Block && rule.applies_to_schedule(name));
    let Some(Rule { set_by: by, since, reason, .. }) = block else { return Ok(()) };
    let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    let detail = format!("{name} is blocked by {by} since {since}{why}; an admin can run or unblock it");
    Err(Problem::conflict(detail))
}

/// Runs a schedule and audits it. Returns what it created, and whether an earlier request with the same key did.
async fn run_and_audit_schedule(
    app: &App,
    caller: &Caller,
    name: &ScheduleName,
    idempotency: Option<IdempotencyKey>,
) -> Result<(RunScheduleResponse, bool), Problem> {
    let result = app.engine.run_schedule_idempotent(name, idempotency).await?;
    let (result, repeated) =
        result.ok_or_else(|| Problem::not_found(format!("the schedule {name} no longer exists")))?;
    let response = run_schedule_response(result)?;
    if repeated {
        return Ok((response, true));
    }
    let order = response.order_path.as_ref().map(|path| format!("order {path}"));
    let created =
        response.task_id.clone().or(order).or_else(|| response.event_id.map(|id| format!("event {id}")));
    app.record_audit_entry(caller, "run", format!("schedule {name}"), created.unwrap_or_default()).await;
    Ok((response, false))
}

fn run_schedule_response(
    result: pointsman_engine::ScheduleRunResult,
) -> Result<RunScheduleResponse, Problem> {
    Ok(match result {
        pointsman_engine::ScheduleRunResult::Event(id) => {
            RunScheduleResponse { event_id: Some(id.get()), task_id: None, order_path: None, created: true }
        }
        pointsman_engine::ScheduleRunResult::Task(task) => {
            let task_id = Some(task.task.to_string());
            RunScheduleResponse { event_id: None, task_id, order_path: None, created: task.created }
        }
        pointsman_engine::ScheduleRunResult::Order(added) => {
            let added = added.map_err(Problem::conflict)?;
            let order_path = Some(added.order.to_string());
            RunScheduleResponse {
                event_id: Some(added.event.get()),
                task_id: None,
                order_path,
                created: true,
            }
        }
    })
}
