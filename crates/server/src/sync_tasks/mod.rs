//! `/tasks`: synchronisation tasks as their own document has them. Every task can be read here; for an event's
//! task the source is its handler and the collection its event's type.

mod list;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use http::{HeaderMap, StatusCode, Uri};
use pointsman_api::{SourceLogs, SourceRun, TaskBody};
use pointsman_core::store::{Idempotency, NewRun, Registration, RunRefused, RunTask};
use pointsman_core::{CollectionName, HandlerName, Pair, SourceDef};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::action::NoBody;
use crate::app::App;
use crate::auth::{Caller, Operator, Viewer};
use crate::config::nearest::hint;
use crate::idempotency;
use crate::problem::Problem;
use crate::query::Query;
use crate::segment::{Segment, TaskName};
use crate::tasks::{Opening, Reader, visible, whole};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list, run))
        .routes(routes!(task))
        .routes(routes!(logs))
        // Its document writes the path both ways.
        .route("/tasks/", get(list::list).post(run))
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
pub(crate) async fn task(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Segment(TaskName(id)): Segment<TaskName>,
    uri: Uri,
) -> Result<Json<TaskBody>, Problem> {
    Query::of(&uri, &[])?;
    let (task, _) = visible(&app, &caller, &id).await?;
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
    responses((status = 200, description = "The lines, in order", body = SourceLogs)),
)]
pub(crate) async fn logs(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Segment(TaskName(id)): Segment<TaskName>,
    uri: Uri,
) -> Result<Response, Problem> {
    let period = Query::of(&uri, &["start", "end"])?.period()?;
    visible(&app, &caller, &id).await?;
    whole(Reader::new(app, id, period), &caller, Opening::Plain).await
}

/// Synchronises a collection of a source, unless it is being synchronised already.
#[utoipa::path(
    post,
    path = "/tasks",
    operation_id = "run_source",
    tag = "sources",
    params(
        ("source" = String, Query, description = "a source's name"),
        ("collection" = String, Query, description = "one of its collections"),
        ("Idempotency-Key" = Option<String>, Header,
            description = "1 to 255 printable ASCII characters; a repeat gets the same answer"),
    ),
    responses(
        (status = 201, description = "The task that was made", body = SourceRun),
        (status = 200, description = "The task that is queued or running already, or the answer to the first request \
            under this idempotency key", body = SourceRun),
        (status = 409, description = "The idempotency key was used for another request",
            body = pointsman_api::Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn run(
    Operator(caller): Operator,
    State(app): State<App>,
    headers: HeaderMap,
    uri: Uri,
    _: NoBody,
) -> Result<(StatusCode, Json<SourceRun>), Problem> {
    let query = Query::of(&uri, &["source", "collection"])?;
    let source: HandlerName = query.required("source", query.parse("source")?)?;
    let collection: CollectionName = query.required("collection", query.parse("collection")?)?;
    let pair = Pair { source, collection };
    let operation = ["run collection", &pair.to_string()];
    let idempotency = idempotency::of_action(&headers, &caller, &operation, &[])?;
    // A repeat gets its answer also when the collection is gone.
    if let Some(ran) = idempotency::recorded::<RunTask>(&app, idempotency.as_ref()).await? {
        return Ok((StatusCode::OK, Json(SourceRun { task_id: ran.task.to_string() })));
    }
    let registration = app.store().registration().await?;
    check(&registration, &caller, &pair)?;
    let inner = app.clone();
    let ran = app.deed(async move { begin(&inner, &caller, pair, idempotency).await }).await?;
    let status = if ran.created && !ran.repeated { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(SourceRun { task_id: ran.task.to_string() })))
}

async fn begin(
    app: &App,
    caller: &Caller,
    pair: Pair,
    idempotency: Option<Idempotency>,
) -> Result<RunTask, Problem> {
    let ran = app.engine.run(NewRun { pair: pair.clone(), priority: None }, idempotency).await?;
    let ran = ran.map_err(|refused| match refused {
        // It may have gone since it was looked for.
        RunRefused::NoSuchPair(gone) => Problem::not_found(gone).parameter("collection"),
        RunRefused::Idempotency(conflict) => conflict.into(),
    })?;
    if ran.created && !ran.repeated {
        app.note(caller, "run", format!("collection {pair}"), &ran.task).await;
    }
    Ok(ran)
}

/// The sources that a caller may see.
fn sources<'a>(
    registration: &'a Registration,
    caller: &'a Caller,
) -> impl Iterator<Item = (&'a HandlerName, &'a SourceDef)> {
    let sources = registration.handlers.iter().filter_map(|def| Some((&def.name, def.source.as_ref()?)));
    sources.filter(|(_, source)| caller.sees(&source.tenant))
}

/// Makes sure that there is such a source with such a collection.
fn check(registration: &Registration, caller: &Caller, pair: &Pair) -> Result<(), Problem> {
    let Some((_, source)) = sources(registration, caller).find(|(name, _)| **name == pair.source) else {
        let names = sources(registration, caller).map(|(name, _)| name.as_str());
        let hint = hint(pair.source.as_str(), names);
        return Err(
            Problem::not_found(format!("there is no source {}{hint}", pair.source)).parameter("source")
        );
    };
    if source.collections.contains_key(&pair.collection) {
        return Ok(());
    }
    let hint = hint(pair.collection.as_str(), source.collections.keys().map(CollectionName::as_str));
    let detail = format!("the source {} has no collection {}{hint}", pair.source, pair.collection);
    Err(Problem::not_found(detail).parameter("collection"))
}
