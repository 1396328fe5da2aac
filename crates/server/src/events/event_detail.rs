//! `GET /api/v1/events/{eventId}`: one event, with its cause, its tasks and the events that it caused.

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{EventBody, EventCauseBody, EventDetail, TaskBody};
use pointsman_core::EventId;
use pointsman_core::event::Cause;
use pointsman_core::store::StoreError;

use super::causal_tree;
use crate::app_state::App;
use crate::auth::{Caller, Viewer};
use crate::path_segment::PathSegment;
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// One event with its tasks, its cause, and the tree of events that it caused.
#[utoipa::path(
    get,
    path = "/api/v1/events/{eventId}",
    operation_id = "show_event",
    tag = "events",
    params(("eventId" = u64, Path, description = "an EventId")),
    responses((status = 200, description = "The event", body = EventDetail)),
)]
pub(crate) async fn show_event(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(id): PathSegment<EventId>,
    uri: Uri,
) -> Result<Json<EventDetail>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    let view = app.store().read_event(id).await?.filter(|view| caller.can_see_tenant(&view.event.tenant));
    let view = view.ok_or_else(|| Problem::not_found(format!("there is no event {id}")))?;
    let cause = match view.event.cause {
        Some(cause) => Some(cause_body(&app, &caller, cause).await?),
        None => None,
    };
    let tree = causal_tree::build_causal_tree(&app, &caller, &view).await?;
    Ok(Json(EventDetail {
        newest_event_id: view.journal_range.newest_event_id.get(),
        event: EventBody::from(&*view.event),
        cause,
        tasks: view.tasks.iter().map(TaskBody::from).collect(),
        caused_events: tree.caused_events,
        are_caused_events_truncated: tree.is_truncated,
    }))
}

/// The event and the task that caused an event, if they are retained. If they belong to a tenant that the caller may
/// not see, only the depth is shown.
async fn cause_body(app: &App, caller: &Caller, cause: Cause) -> Result<EventCauseBody, StoreError> {
    let task = causal_tree::find_task_by_seq(app, cause.task).await?;
    let hidden = match (&task, cause.event) {
        (Some(task), _) => !caller.can_see_tenant(&task.tenant),
        (None, Some(id)) => {
            app.store().read_event(id).await?.is_some_and(|view| !caller.can_see_tenant(&view.event.tenant))
        }
        (None, None) => false,
    };
    let (event, task) = if hidden { (None, None) } else { (cause.event, task) };
    let task = task.map(|task| task.id.to_string());
    Ok(EventCauseBody { event_id: event.map(EventId::get), task, depth: cause.depth })
}
