//! Claiming tasks: leasing them to a worker.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use pointsman_api::worker::{ClaimBody, ClaimedTaskBody, ClaimedTaskList};
use pointsman_core::event_json_parser::{JsonError, parse_duration, parse_member, parse_string};
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{HandlerDef, HandlerName};
use pointsman_engine::PullRequest;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::app_state::App;
use crate::auth::{Caller, Worker};
use crate::json_body::OptionalJsonBody;
use crate::limits::ClaimResponseMarker;
use crate::problem::Problem;

/// Maximum number of handlers and of tasks in a claim.
const MAX_HANDLERS_OR_TASKS_PER_CLAIM: usize = 256;
/// Memory that must be free for each task of a claim.
const EXPECTED_TASK_BYTES: usize = 16 << 10;
/// Maximum time that a claim waits for its first task.
const MAX_CLAIM_WAIT: Duration = Duration::from_secs(300);
const DEFAULT_LEASE: Duration = Duration::from_secs(60);
const MIN_LEASE: Duration = Duration::from_secs(1);
const MAX_LEASE: Duration = Duration::from_secs(3600);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct ClaimTasksRequest {
    handlers: Option<Box<RawValue>>,
    #[serde(rename = "max")]
    max_tasks: Option<Box<RawValue>>,
    #[serde(rename = "wait")]
    max_wait: Option<Box<RawValue>>,
    lease: Option<Box<RawValue>>,
}

/// Claims tasks of pull handlers and sources, waiting for the first one.
#[utoipa::path(
    post,
    path = "/api/v1/worker/claim",
    operation_id = "claim_tasks",
    tag = "worker",
    request_body(content = ClaimBody),
    responses(
        (status = 200, description = "The tasks; empty if there were none in time", body = ClaimedTaskList),
        (status = 422, description = "A handler is not defined, or has no `run: pull`",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn claim_tasks(
    Worker(caller): Worker,
    State(app): State<App>,
    OptionalJsonBody(members): OptionalJsonBody<ClaimTasksRequest>,
) -> Result<impl IntoResponse, Problem> {
    let names = parse_handler_names(members.handlers)?;
    let max = members.max_tasks.map(|raw| parse_max_tasks(&raw)).transpose()?.unwrap_or(1);
    let wait = members.max_wait.map(|raw| parse_max_wait(&raw)).transpose()?.unwrap_or_default();
    let lease = members.lease.as_deref().map(parse_lease).transpose()?.unwrap_or(DEFAULT_LEASE);
    require_pull_handlers(&app, &caller, &names).await?;
    // Leased tasks must be delivered, so memory for the response is checked before.
    app.response_memory_budget.check_claim_capacity(&caller, max * EXPECTED_TASK_BYTES)?;
    let request = PullRequest {
        handlers: names.into_iter().collect(),
        max_tasks: max,
        max_wait: wait,
        lease_duration: lease,
        tenant: caller.bound_tenant.clone(),
    };
    let tasks = tokio::select! {
        biased;
        tasks = app.engine.pull_tasks(request) => tasks?,
        () = app.stop_signal.cancelled() => vec![],
        () = app.wait_until_token_revoked(&caller) => vec![],
    };
    let list = ClaimedTaskList { tasks: tasks.iter().map(ClaimedTaskBody::new).collect() };
    Ok((Extension(ClaimResponseMarker), Json(list)))
}

fn parse_handler_names(raw: Option<Box<RawValue>>) -> Result<Vec<HandlerName>, Problem> {
    const HANDLERS_POINTER: &str = "/handlers";
    let raw = raw.ok_or_else(|| {
        JsonError::new(HANDLERS_POINTER, "a claim names the handlers that the worker can run")
    })?;
    let list: Vec<Box<RawValue>> = parse_member(HANDLERS_POINTER, &raw, "a list of handlers' names")?;
    if list.is_empty() || list.len() > MAX_HANDLERS_OR_TASKS_PER_CLAIM {
        return Err(JsonError::new(
            HANDLERS_POINTER,
            format!("a claim names 1 to {MAX_HANDLERS_OR_TASKS_PER_CLAIM} handlers, this one {}", list.len()),
        )
        .into());
    }
    let name = |(index, raw): (usize, &RawValue)| {
        let at = format!("{HANDLERS_POINTER}/{index}");
        HandlerName::new(parse_string(&at, raw)?).map_err(|e| JsonError::new(at, e))
    };
    Ok(list.iter().map(|raw| &**raw).enumerate().map(name).collect::<Result<_, JsonError>>()?)
}

fn parse_max_tasks(raw: &RawValue) -> Result<usize, JsonError> {
    let expectation = format!("a whole number from 1 to {MAX_HANDLERS_OR_TASKS_PER_CLAIM}");
    let max: usize = parse_member("/max", raw, &expectation)?;
    let valid = (1..=MAX_HANDLERS_OR_TASKS_PER_CLAIM).contains(&max).then_some(max);
    valid.ok_or_else(|| JsonError::new("/max", format!("this is not {expectation}")))
}

fn parse_max_wait(raw: &RawValue) -> Result<Duration, JsonError> {
    let wait = parse_duration("/wait", raw)?;
    let valid = (wait <= MAX_CLAIM_WAIT).then_some(wait);
    valid.ok_or_else(|| {
        JsonError::new("/wait", "a claim waits for at most 5 minutes; repeat it to wait longer")
    })
}

/// Parses a lease: how long a worker may be without a heartbeat.
pub(super) fn parse_lease(raw: &RawValue) -> Result<Duration, JsonError> {
    let lease = parse_duration("/lease", raw)?;
    let valid = (MIN_LEASE..=MAX_LEASE).contains(&lease).then_some(lease);
    valid
        .ok_or_else(|| JsonError::new("/lease", "a lease lasts from 1 second to 1 hour; heartbeats renew it"))
}

/// Requires that all handlers are defined and have `run: pull`. The setup of this node is checked first, then the
/// registration in the store, which may be newer.
async fn require_pull_handlers(app: &App, caller: &Caller, names: &[HandlerName]) -> Result<(), Problem> {
    let setup = app.engine.current_setup();
    if unclaimable_handler_problem(setup.handlers.iter().map(|spec| &spec.def), caller, names).is_none() {
        return Ok(());
    }
    let registration = app.store().read_merged_registration().await?;
    unclaimable_handler_problem(&registration.handlers, caller, names).map_or(Ok(()), Err)
}

fn unclaimable_handler_problem<'a>(
    defs: impl IntoIterator<Item = &'a HandlerDef>,
    caller: &Caller,
    names: &[HandlerName],
) -> Option<Problem> {
    let visible =
        |def: &&HandlerDef| def.source.as_ref().is_none_or(|source| caller.can_see_tenant(&source.tenant));
    let defs = defs.into_iter().filter(visible).map(|def| (&def.name, def.pull));
    let defs: BTreeMap<&HandlerName, bool> = defs.collect();
    let (index, name) = names.iter().enumerate().find(|(_, name)| defs.get(name) != Some(&true))?;
    let detail = match defs.get(name) {
        Some(_) => format!("{name} is run by the server; only handlers with `run: pull` can be claimed"),
        None => {
            let pulled: BTreeSet<_> =
                defs.iter().filter(|(_, pull)| **pull).map(|(name, _)| name.as_str()).collect();
            format!("there is no handler {name}{}", did_you_mean_suffix(name.as_str(), pulled))
        }
    };
    Some(Problem::unprocessable(detail).with_pointer(format!("/handlers/{index}")))
}
