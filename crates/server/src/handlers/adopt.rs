//! Adopting the `missing` tasks, which wait because their handler was not defined, and replaying past events to a new
//! handler.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use pointsman_api::{AdoptMissingTasksBody, AdoptMissingTasksResponse};
use pointsman_core::event_json_parser::parse_member;
use pointsman_core::{EventId, HandlerName};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::handler_bodies::find_handler;
use crate::app_state::App;
use crate::auth::Operator;
use crate::idempotency;
use crate::json_body::IdempotentBody;
use crate::path_segment::PathSegment;
use crate::problem::Problem;

/// Maximum time that one request replays events. Another request continues with the rest.
const MAX_REPLAY_TIME: Duration = Duration::from_secs(10);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
pub(crate) struct AdoptRequest {
    /// The first of the past events that are replayed.
    #[serde(rename = "from")]
    replay_from: Option<Box<RawValue>>,
}

/// Adopts the `missing` tasks of a handler that is defined again; with `from`, also replays past events to it.
#[utoipa::path(
    post,
    path = "/api/v1/handlers/{name}/adopt",
    operation_id = "adopt_tasks",
    tag = "handlers",
    params(
        ("name" = String, Path, description = "a handler's name"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "1 to 255 printable ASCII characters; a repeat with the same content gets the same response"),
    ),
    request_body(content = Option<AdoptMissingTasksBody>),
    responses(
        (status = 200, description = "The numbers of adopted tasks and replayed events; while `more` is true, repeat the call to \
            continue, under another idempotency key if it has one", body = AdoptMissingTasksResponse),
        (status = 409, description = "The handler is not defined, or the idempotency key was used with other content",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn adopt_tasks(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(name): PathSegment<HandlerName>,
    request: IdempotentBody<AdoptRequest>,
) -> Result<Json<AdoptMissingTasksResponse>, Problem> {
    caller.require_access_to_all_tenants("adopting reaches every tenant")?;
    let (members, idempotency) = request.into_members_and_key(&caller, &["adopt", name.as_str()])?;
    let from: Option<EventId> = members
        .replay_from
        .map(|raw| parse_member("/from", &raw, "an EventId, as a whole number"))
        .transpose()?;
    // A repeat gets its response also when the handler is gone.
    if let Some(done) = idempotency::read_recorded_response(&app, idempotency.as_ref()).await? {
        return Ok(Json(done));
    }
    let handler = find_handler(&app, &caller, &name).await?.handler;
    if !handler.defined {
        let detail = format!("the handler {name} is not defined, so no node could run its tasks");
        return Err(Problem::conflict(detail));
    }
    if from.is_some() && handler.source.is_some() {
        let detail = format!("{name} is a source, and a source gets no events; run its collections instead");
        return Err(Problem::unprocessable(detail).with_pointer("/from"));
    }
    let inner = app.clone();
    app.run_change_to_completion(async move {
        let mut done = AdoptMissingTasksResponse {
            adopted_task_count: inner.engine.adopt_missing_tasks(&name).await?,
            replayed_task_count: 0,
            has_more: false,
        };
        let replayed = match from {
            Some(from) => replay_past_events(&inner, &name, from, &mut done).await,
            None => Ok(()),
        };
        // A replay that failed midway has replayed a part, which the audit records.
        let detail = format!("{} adopted, {} replayed", done.adopted_task_count, done.replayed_task_count);
        inner.record_audit_entry(&caller, "adopt", format!("handler {name}"), detail).await;
        replayed?;
        // Adopting and replaying are idempotent, so the record is needed only for the response.
        idempotency::record_response(&inner, idempotency.as_ref(), done).await?.map(|(done, _)| Json(done))
    })
    .await
}

async fn replay_past_events(
    app: &App,
    name: &HandlerName,
    from: EventId,
    done: &mut AdoptMissingTasksResponse,
) -> Result<(), Problem> {
    let started_at = Instant::now();
    loop {
        let batch = app.store().replay_events(name, from, app.now()).await?;
        done.replayed_task_count += batch.created_task_count;
        done.has_more = batch.has_more;
        app.engine.wake_services();
        if !done.has_more || started_at.elapsed() > MAX_REPLAY_TIME || app.stop_signal.is_cancelled() {
            return Ok(());
        }
    }
}
