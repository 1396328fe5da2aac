//! `/api/v1/events` and `/api/v1/objects`: emitting events, and reading the journal.
//!
//! ```text
//!  emit                POST: events as JSON or CloudEvents, with idempotency keys
//!  cloudevents         conversion of CloudEvents to events
//!  event_query         filter and cursor of a request that reads the journal
//!  event_seq_response  GET: an EventSeq, streamed
//!  event_detail        one event
//!  object              one object, streamed
//!  causal_tree         the events that an event caused
//! ```

mod causal_tree;
mod cloudevents;
mod emit;
mod event_detail;
mod event_query;
pub(crate) mod event_seq_response;
mod object;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;

pub(crate) use emit::parse_event_at_pointer;
pub(crate) use event_query::EventQuery;

/// Path for emitting and reading events.
pub(crate) const EVENTS_PATH: &str = "/api/v1/events";

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(emit::emit_events, event_seq_response::read_events))
        .routes(routes!(event_detail::show_event))
        .routes(routes!(object::show_object))
}
