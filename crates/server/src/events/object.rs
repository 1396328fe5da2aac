//! `GET /api/v1/objects/{key}`: one object. Its events can be large: they are encoded while they are sent, within the
//! memory budget for responses.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::{Uri, header};
use pointsman_api::{EventBody, ObjectDetail, ObjectLaneBody};
use pointsman_core::{Event, ObjectKey};

use crate::app_state::App;
use crate::auth::Viewer;
use crate::journal_paging::{encode_event_chunk, page_memory_bytes};
use crate::limits::{MAX_UNCOUNTED_RESPONSE_BYTES, keep_permit_until_stream_end};
use crate::path_segment::PathSegment;
use crate::problem::Problem;
use crate::request_query::RequestQuery;

/// Maximum number of events of an object in a response.
const MAX_OBJECT_EVENTS: usize = 1000;

/// The events of an object, newest first, and the state of its lanes.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{key}",
    operation_id = "show_object",
    tag = "events",
    params(
        ("key" = String, Path, description = "the object's key, percent-encoded"),
        ("tenant" = Option<String>, Query, description = "tenant of the object; `default` if not given"),
        ("limit" = Option<u16>, Query, description = "maximum number of events: 1 to 1000, 1000 if not given"),
    ),
    responses((status = 200, description = "The object", body = ObjectDetail)),
)]
pub(crate) async fn show_object(
    Viewer(caller): Viewer,
    State(app): State<App>,
    PathSegment(key): PathSegment<ObjectKey>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = RequestQuery::from_uri(&uri, &["tenant", "limit"])?;
    let tenant = caller.resolve_requested_tenant(query.parse_parameter("tenant")?)?.unwrap_or_default();
    let limit = query.parse_limit(MAX_OBJECT_EVENTS, MAX_OBJECT_EVENTS)?;
    let object = app.store().read_object(&tenant, &key, limit).await?;
    let object = object.ok_or_else(|| {
        Problem::not_found(format!("there is no object {:?} of the tenant {tenant}", key.as_str()))
    })?;
    let skeleton = ObjectDetail {
        newest_event_id: object.journal_range.newest_event_id.get(),
        key: key.to_string(),
        tenant: tenant.to_string(),
        last_event_id: object.last_event_id.get(),
        events: vec![],
        lanes: object.lanes.iter().map(ObjectLaneBody::from).collect(),
        has_more_lanes: object.has_more_lanes,
    };
    let bytes = page_memory_bytes(&object.events);
    let memory = (bytes > MAX_UNCOUNTED_RESPONSE_BYTES)
        .then(|| app.response_memory_budget.reserve(&caller, bytes))
        .transpose()?;
    let chunks = ObjectChunks::new(&skeleton, object.events).map(Ok::<_, Infallible>);
    let body = Body::from_stream(keep_permit_until_stream_end(stream::iter(chunks), memory));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// The chunks of an object's JSON, encoded while they are sent.
struct ObjectChunks {
    events: VecDeque<Arc<Event>>,
    /// The JSON before the next event.
    prefix: String,
    /// The JSON after the last event, until it is sent.
    suffix: Option<String>,
}

impl ObjectChunks {
    /// Inserts the events into the skeleton, whose own list of events is empty.
    fn new(skeleton: &ObjectDetail, events: Vec<Arc<Event>>) -> Self {
        const EVENTS_MEMBER: &str = "\"events\":[";
        let text = serde_json::to_string(skeleton).unwrap_or_default();
        // Quotes in values that clients chose are escaped, so that the first match is the member itself.
        let split = text.find(EVENTS_MEMBER).map_or(text.len(), |at| at + EVENTS_MEMBER.len());
        let (prefix, suffix) = text.split_at(split);
        Self { events: events.into(), prefix: prefix.into(), suffix: Some(suffix.into()) }
    }
}

impl Iterator for ObjectChunks {
    type Item = Bytes;
    fn next(&mut self) -> Option<Bytes> {
        if self.events.is_empty() {
            let suffix = self.suffix.take()?;
            return Some((std::mem::take(&mut self.prefix) + &suffix).into());
        }
        let prefix = &mut self.prefix;
        let text = encode_event_chunk(&mut self.events, |event, text| {
            text.push_str(&std::mem::replace(prefix, ",".into()));
            text.push_str(&serde_json::to_string(&EventBody::from(event)).unwrap_or_default());
        });
        if self.events.is_empty() {
            self.prefix.clear();
        }
        Some(text.into())
    }
}
