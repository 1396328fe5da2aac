//! `/tasks`: tasks of sources. Every task can be read here; for the task of an event, the source is its handler and the
//! collection is the type of the event.

mod list;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, StatusCode, Uri};
use pointsman_api::{CollectionRunResponse, SourceTaskLogs, TaskBody};
use pointsman_core::store::{
    CollectionRunError, CollectionRunReceipt, IdempotencyKey, NewCollectionRun, Registration,
};
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{CollectionName, HandlerName, SourceCollection, SourceDef};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::{Caller, Operator, Viewer};
use crate::idempotency;
use crate::json_body::EmptyBodyWithQuery;
use crate::path_segment::{PathSegment, TaskIdSegment};
use crate::problem::Problem;
use crate::request_query::RequestQuery;
use crate::tasks::{LogJsonPrefix, LogReader, find_visible_task, stream_whole_log};

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_source_tasks, run_collection))
        .routes(routes!(show_source_task))
        .routes(routes!(read_source_task_logs))
        // The path is accepted with and without the trailing slash.
        .route("/tasks/", get(list::list_source_tasks).post(run_collection))
}

/// One task.
#[utoipa::path(
    get,
    path = "/tasks/{id}",
    operation_id = "show_source_task",
    tag = "sources",
    params(("id" = String, Path, description = "a task's id")),
    responses((status = 200, description = "The task", body = TaskBody)),
)]
pub(crate) async fn show_source_task(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    uri: Uri,
) -> Result<Json<TaskBody>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    let (task, _) = find_visible_task(&app, &caller, &id).await?;
    Ok(Json(TaskBody::from(&task)))
}

/// The log of a task.
#[utoipa::path(
    get,
    path = "/tasks/{id}/logs",
    operation_id = "read_source_logs",
    tag = "sources",
    params(
        ("id" = String, Path, description = "a task's id"),
        ("start" = Option<String>, Query, description = "lines at or after this time (RFC 3339)"),
        ("end" = Option<String>, Query, description = "lines before this time (RFC 3339)"),
    ),
    responses((status = 200, description = "The lines, in order", body = SourceTaskLogs)),
)]
pub(crate) async fn read_source_task_logs(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(TaskIdSegment(id)): PathSegment<TaskIdSegment>,
    uri: Uri,
) -> Result<Response, Problem> {
    let period = RequestQuery::from_uri(&uri, &["start", "end"])?.parse_period()?;
    find_visible_task(&app, &caller, &id).await?;
    stream_whole_log(LogReader::new(app, id, period), &caller, LogJsonPrefix::LinesOnly).await
}

/// Runs a collection of a source, unless it is queued or running already.
#[utoipa::path(
    post,
    path = "/tasks",
    operation_id = "run_source",
    tag = "sources",
    params(
        ("source" = String, Query, description = "a source's name"),
        ("collection" = String, Query, description = "one of its collections"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "1 to 255 printable ASCII characters; a repeat gets the same response"),
    ),
    responses(
        (status = 201, description = "The created task", body = CollectionRunResponse),
        (status = 200, description = "The task that is queued or running already, or the response to the first request \
            under this idempotency key", body = CollectionRunResponse),
        (status = 409, description = "The idempotency key was used for another request",
            body = pointsman_api::ProblemDetails, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn run_collection(
    Operator(caller): Operator,
    State(app): State<App>,
    headers: HeaderMap,
    uri: Uri,
    _: EmptyBodyWithQuery,
) -> Result<(StatusCode, Json<CollectionRunResponse>), Problem> {
    let query = RequestQuery::from_uri(&uri, &["source", "collection"])?;
    let source: HandlerName = query.require_parameter("source", query.parse_parameter("source")?)?;
    let collection: CollectionName =
        query.require_parameter("collection", query.parse_parameter("collection")?)?;
    let source_collection = SourceCollection { source, collection };
    let operation = ["run collection", &source_collection.to_string()];
    let idempotency = idempotency::idempotency_key_for_caller(&headers, &caller, &operation, &[])?;
    // A repeat gets its response also when the collection is gone.
    if let Some(receipt) =
        idempotency::read_recorded_response::<CollectionRunReceipt>(&app, idempotency.as_ref()).await?
    {
        return Ok((StatusCode::OK, Json(CollectionRunResponse { task_id: receipt.task.to_string() })));
    }
    let registration = app.store().read_merged_registration().await?;
    require_collection(&registration, &caller, &source_collection)?;
    let inner = app.clone();
    let receipt = app
        .run_change_to_completion(async move {
            run_and_audit_collection(&inner, &caller, source_collection, idempotency).await
        })
        .await?;
    let status = if receipt.created && !receipt.repeated { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(CollectionRunResponse { task_id: receipt.task.to_string() })))
}

async fn run_and_audit_collection(
    app: &App,
    caller: &Caller,
    source_collection: SourceCollection,
    idempotency: Option<IdempotencyKey>,
) -> Result<CollectionRunReceipt, Problem> {
    let receipt = app
        .engine
        .run_collection(
            NewCollectionRun { source_collection: source_collection.clone(), priority: None },
            idempotency,
        )
        .await?;
    let receipt = receipt.map_err(|refused| match refused {
        // It may have been removed since it was checked.
        CollectionRunError::NoSuchCollection(gone) => Problem::not_found(gone).with_parameter("collection"),
        CollectionRunError::Idempotency(conflict) => conflict.into(),
    })?;
    if receipt.created && !receipt.repeated {
        app.record_audit_entry(caller, "run", format!("collection {source_collection}"), &receipt.task).await;
    }
    Ok(receipt)
}

/// The sources that a caller may see.
fn visible_sources<'a>(
    registration: &'a Registration,
    caller: &'a Caller,
) -> impl Iterator<Item = (&'a HandlerName, &'a SourceDef)> {
    let sources = registration.handlers.iter().filter_map(|def| Some((&def.name, def.source.as_ref()?)));
    sources.filter(|(_, source)| caller.can_see_tenant(&source.tenant))
}

/// Requires that the source and its collection exist.
fn require_collection(
    registration: &Registration,
    caller: &Caller,
    source_collection: &SourceCollection,
) -> Result<(), Problem> {
    let Some((_, source)) =
        visible_sources(registration, caller).find(|(name, _)| **name == source_collection.source)
    else {
        let names = visible_sources(registration, caller).map(|(name, _)| name.as_str());
        let hint = did_you_mean_suffix(source_collection.source.as_str(), names);
        return Err(Problem::not_found(format!("there is no source {}{hint}", source_collection.source))
            .with_parameter("source"));
    };
    if source.collections.contains_key(&source_collection.collection) {
        return Ok(());
    }
    let hint = did_you_mean_suffix(
        source_collection.collection.as_str(),
        source.collections.keys().map(CollectionName::as_str),
    );
    let detail = format!(
        "the source {} has no collection {}{hint}",
        source_collection.source, source_collection.collection
    );
    Err(Problem::not_found(detail).with_parameter("collection"))
}
