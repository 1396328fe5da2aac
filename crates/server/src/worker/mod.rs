//! `/api/v1/worker`: tasks for workers elsewhere, who fetch them, keep them for a while, and tell how it went.
//!
//! ```text
//!  claim    POST: leases tasks, waiting for the first one
//!  keep     POST: heartbeats and log lines of a task that is held
//!  end      POST: done with what it emits, failed, snoozed
//!  lines    log lines as workers write them
//! ```
//!
//! Whoever has the fence of a claim has the task. A worker whose lease ran out, or whose task a person ended, is
//! told so by 409 and stops: nothing that it says counts any more.

mod claim;
mod end;
mod heartbeat;
mod log_lines;

use pointsman_core::TaskId;
use pointsman_core::task::Rejected;
use pointsman_core::wire::{Fault, read};
use pointsman_engine::Leased;
use serde_json::value::RawValue;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::tasks::find_visible_task;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(claim::claim_tasks))
        .routes(routes!(heartbeat::heartbeat))
        .routes(routes!(heartbeat::add_logs))
        .routes(routes!(end::complete_task))
        .routes(routes!(end::fail_task))
        .routes(routes!(end::snooze_task))
}

/// The fence that every word about a task carries.
fn parse_fence(raw: Option<Box<RawValue>>) -> Result<i64, Fault> {
    let raw = raw.ok_or_else(|| Fault::new("/fence", "the `fence` of the claim is needed"))?;
    read("/fence", &raw, "a fence, as a whole number")
}

/// The task that a worker speaks of. A worker of one tenant does not learn of others' tasks. The task itself
/// is read only where it is not held under this fence; then the worker is told so by what it came for.
async fn require_visible_lease(
    app: &App,
    caller: &Caller,
    id: &TaskId,
    fence: i64,
) -> Result<Leased, Problem> {
    match app.engine.leased(id, fence).await? {
        Ok(leased) if caller.sees(&leased.tenant) => Ok(leased),
        Ok(_) | Err(_) => {
            let (task, _) = find_visible_task(app, caller, id).await?;
            Ok(Leased { max_result: task.max_result(), tenant: task.tenant })
        }
    }
}

/// What a worker is told that no longer has its task.
fn lease_lost_problem(rejected: Rejected) -> Problem {
    match rejected {
        Rejected::NoSuchTask => rejected.into(),
        Rejected::StaleFence => {
            Problem::conflict("the fence is stale: the lease ran out, and another attempt may hold the task")
                .pointer("/fence")
        }
        Rejected::WrongState(status) => Problem::conflict(format!(
            "the task is `{}` and no longer this worker's: it was ended, or its lease ran out",
            status.as_str()
        ))
        .pointer("/fence"),
        Rejected::Forgotten | Rejected::ResumeItsOrder | Rejected::PairIsBusy => Problem::conflict(rejected),
    }
}
