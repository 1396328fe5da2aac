//! The tasks of a source: all of them, however many, streamed page by page. A complete answer has all that match;
//! should the store fail in the middle, the connection breaks off.

use std::io;

use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::Uri;
use pointsman_api::{SourceTasks, TaskBody};
use pointsman_core::HandlerName;
use pointsman_core::store::{TaskFilter, TaskPage};

use crate::app::App;
use crate::auth::Viewer;
use crate::known;
use crate::limits::answer_in_pieces;
use crate::problem::Problem;
use crate::query::{Period, Query};
use crate::tasks::Wanted;

/// How many tasks are read at a time.
const PAGE: usize = 200;

/// The tasks of a source that were created in a period, the newest first, unpaged.
#[utoipa::path(
    get,
    path = "/tasks",
    operation_id = "list_source_tasks",
    tag = "sources",
    params(
        ("source" = String, Query, description = "a source's or a handler's name"),
        ("start" = String, Query, description = "created at or after this time (RFC 3339)"),
        ("end" = String, Query, description = "created before this time (RFC 3339)"),
        ("status" = Option<String>, Query, description = "SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED"),
        ("collection" = Option<String>, Query, description = "a collection, or an event's type"),
    ),
    responses((status = 200, description = "The tasks", body = SourceTasks)),
)]
pub(crate) async fn list(
    Viewer(caller): Viewer,
    State(app): State<App>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::of(&uri, &["source", "start", "end", "status", "collection"])?;
    let source: HandlerName = query.required("source", query.parse("source")?)?;
    let Period { start, end } = query.period()?;
    let (start, end) = (query.required("start", start)?, query.required("end", end)?);
    let Wanted { statuses, reasons } = query.read("status", status)?.unwrap_or_default();
    known::handler(&app, &caller, &source, "source").await.map_err(|problem| problem.parameter("source"))?;
    let filter = TaskFilter {
        statuses,
        reasons,
        handler: Some(source),
        collection: query.get("collection").map(Into::into),
        tenant: caller.tenant.clone(),
        start: Some(start),
        end: Some(end),
        ..TaskFilter::default()
    };
    let page = app.store().tasks(filter.clone(), None, PAGE).await?;
    let budget = app.responses.clone();
    let rest = Rest { app, filter, page, opening: "{\"tasks\":[", begun: false };
    answer_in_pieces(&budget, &caller, stream::unfold(Some(rest), piece)).await
}

fn status(text: &str) -> Result<Wanted, String> {
    Wanted::public(text).ok_or_else(|| {
        format!("{text:?} is not a status; there are SCHEDULED, RUNNING, SUCCESS, FAILED and CANCELED")
    })
}

/// What is still to be told.
struct Rest {
    app: App,
    filter: TaskFilter,
    page: TaskPage,
    /// Written before the first piece.
    opening: &'static str,
    begun: bool,
}

/// Writes a page and reads the next one.
async fn piece(rest: Option<Rest>) -> Option<(io::Result<Bytes>, Option<Rest>)> {
    let mut rest = rest?;
    let mut text = std::mem::take(&mut rest.opening).to_owned();
    for task in rest.page.tasks.drain(..) {
        if rest.begun {
            text.push(',');
        }
        rest.begun = true;
        text.push_str(&serde_json::to_string(&TaskBody::from(&task)).unwrap_or_default());
    }
    let Some(before) = rest.page.next else {
        text.push_str("]}");
        return Some((Ok(text.into()), None));
    };
    match rest.app.store().tasks(rest.filter.clone(), Some(before), PAGE).await {
        Ok(page) => Some((Ok(text.into()), Some(Rest { page, ..rest }))),
        Err(error) => Some((Err(io::Error::other(error)), None)),
    }
}
