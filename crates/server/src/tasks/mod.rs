//! `/api/v1/tasks`: reading tasks and their logs, and steering single ones.

mod list;
mod logs;
mod one;
mod why;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(crate) use list::Wanted;
pub(crate) use logs::{Opening, Reader, whole};
pub(crate) use one::visible;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(one::task))
        .routes(routes!(one::retry))
        .routes(routes!(one::cancel))
        .routes(routes!(logs::logs))
        .routes(routes!(why::why))
}
