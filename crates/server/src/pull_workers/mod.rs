//! `/api/v1/worker`: the pull API. Workers claim tasks, renew their leases, and report how the attempts ended.
//!
//! ```text
//!  claim               POST: leases tasks, waiting for the first one
//!  heartbeat_and_logs  POST: heartbeats and log lines of a leased task
//!  attempt_end         POST: done (with emitted events), failed, snoozed
//!  log_lines           parsing of log lines
//! ```
//!
//! The fence of a claim identifies the lease. A worker whose lease expired, or whose task was cancelled, gets 409 and
//! must stop: its reports are refused.

mod attempt_end;
mod claim;
mod heartbeat_and_logs;
mod log_lines;

use pointsman_core::TaskId;
use pointsman_core::event_json_parser::{JsonError, parse_member};
use pointsman_core::task::TaskCommandError;
use pointsman_engine::LeasedTaskInfo;
use serde_json::value::RawValue;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::tasks::find_visible_task;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(claim::claim_tasks))
        .routes(routes!(heartbeat_and_logs::renew_lease))
        .routes(routes!(heartbeat_and_logs::add_logs))
        .routes(routes!(attempt_end::complete_task))
        .routes(routes!(attempt_end::fail_task))
        .routes(routes!(attempt_end::snooze_task))
}

/// Parses the fence, which every report about a task has.
fn parse_fence(raw: Option<Box<RawValue>>) -> Result<i64, JsonError> {
    let raw = raw.ok_or_else(|| JsonError::new("/fence", "`fence` is required: the fence of the claim"))?;
    parse_member("/fence", &raw, "a fence, as a whole number")
}

/// Finds the tenant and the result limit of a task; 404 for tasks of other tenants. If the task is not leased with this
/// fence, the task itself is read, and the operation that follows reports the stale fence.
async fn find_tenant_and_result_limit_of_task(
    app: &App,
    caller: &Caller,
    id: &TaskId,
    fence: i64,
) -> Result<LeasedTaskInfo, Problem> {
    match app.engine.find_leased_task(id, fence).await? {
        Ok(leased) if caller.can_see_tenant(&leased.tenant) => Ok(leased),
        Ok(_) | Err(_) => {
            let (task, _) = find_visible_task(app, caller, id).await?;
            Ok(LeasedTaskInfo { max_result_bytes: task.max_result_bytes(), tenant: task.tenant })
        }
    }
}

/// The problem for a worker that has lost its lease.
fn lease_lost_problem(rejected: TaskCommandError) -> Problem {
    match rejected {
        TaskCommandError::NoSuchTask => rejected.into(),
        TaskCommandError::StaleFence => {
            Problem::conflict("the fence is stale: the lease ran out, and another attempt may have the task")
                .with_pointer("/fence")
        }
        TaskCommandError::WrongState(status) => Problem::conflict(format!(
            "the task is `{}` and no longer leased to this worker: it has ended, or its lease ran out",
            status.as_str()
        ))
        .with_pointer("/fence"),
        TaskCommandError::EventExpired | TaskCommandError::IsOrderStep | TaskCommandError::CollectionBusy => {
            Problem::conflict(rejected)
        }
    }
}
