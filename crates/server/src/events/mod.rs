//! `/api/v1/events` and `/api/v1/objects`: emitting events, and reading the journal.
//!
//! ```text
//!  emit         POST: in the house's own form or as CloudEvents, with idempotency keys
//!  cloudevents  what a CloudEvent is to us
//!  watch        what a reader wants to see: filter and cursor, from the query
//!  seq          GET: an EventSeq, streamed
//!  one          one event
//!  object       one object, streamed
//!  caused       what an event caused, as a tree
//! ```

mod caused;
mod cloudevents;
mod emit;
mod object;
mod one;
pub(crate) mod seq;
mod watch;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(crate) use emit::event_at;
pub(crate) use watch::Watch;

/// Where events are emitted and read.
pub(crate) const PATH: &str = "/api/v1/events";

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(emit::emit, seq::read))
        .routes(routes!(one::event))
        .routes(routes!(object::object))
}
