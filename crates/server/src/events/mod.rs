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

mod causal_tree;
mod cloudevents;
mod emit;
mod event_detail;
mod event_query;
pub(crate) mod event_seq;
mod object;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(crate) use emit::parse_event_at;
pub(crate) use event_query::EventQuery;

/// Where events are emitted and read.
pub(crate) const EVENTS_PATH: &str = "/api/v1/events";

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(emit::emit_events, event_seq::read_events))
        .routes(routes!(event_detail::show_event))
        .routes(routes!(object::show_object))
}
