//! `/api/v1/tasks`: tasks and their logs, retrying and cancelling.

mod list;
mod logs;
mod single_task;
mod why;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;

pub(crate) use list::StatusFilter;
pub(crate) use logs::{LogJsonPrefix, LogReader, stream_whole_log};
pub(crate) use single_task::find_visible_task;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list_tasks))
        .routes(routes!(single_task::show_task))
        .routes(routes!(single_task::retry_task))
        .routes(routes!(single_task::cancel_task))
        .routes(routes!(logs::read_logs))
        .routes(routes!(why::explain_task))
}
