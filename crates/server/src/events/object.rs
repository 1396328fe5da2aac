//! One object. Its events can be large: they are written as they are sent, within the budget for answers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use http::{Uri, header};
use pointsman_api::{EventSnapshot, LaneBody, ObjectDetail};
use pointsman_core::{Event, ObjectKey};

use crate::app::App;
use crate::auth::Viewer;
use crate::limits::{SMALL_RESPONSE, keep_permit};
use crate::paging::{page_bytes, piece};
use crate::problem::Problem;
use crate::query::Query;
use crate::segment::Segment;

/// The most events of an object that are shown.
const MOST_EVENTS: usize = 1000;

/// An object's chain of events, newest first, and the state of its lanes.
#[utoipa::path(
    get,
    path = "/api/v1/objects/{key}",
    operation_id = "show_object",
    tag = "events",
    params(
        ("key" = String, Path, description = "the object's key, percent-encoded"),
        ("tenant" = Option<String>, Query, description = "whose object; `default` if not given"),
        ("limit" = Option<u16>, Query, description = "how many events at most: 1 to 1000, 1000 if not given"),
    ),
    responses((status = 200, description = "The object", body = ObjectDetail)),
)]
pub(crate) async fn object(
    Viewer(caller): Viewer,
    State(app): State<App>,
    Segment(key): Segment<ObjectKey>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::of(&uri, &["tenant", "limit"])?;
    let tenant = caller.tenant(query.parse("tenant")?)?.unwrap_or_default();
    let limit = query.limit(MOST_EVENTS, MOST_EVENTS)?;
    let object = app.store().object(&tenant, &key, limit).await?;
    let object = object.ok_or_else(|| {
        Problem::not_found(format!("nothing has happened to {:?} of the tenant {tenant}", key.as_str()))
    })?;
    let frame = ObjectDetail {
        event_id: object.extent.head.get(),
        key: key.to_string(),
        tenant: tenant.to_string(),
        last: object.last.get(),
        events: vec![],
        lanes: object.lanes.iter().map(LaneBody::from).collect(),
        more_lanes: object.more_lanes,
    };
    let bytes = page_bytes(&object.events);
    let memory = (bytes > SMALL_RESPONSE).then(|| app.responses.reserve(&caller, bytes)).transpose()?;
    let pieces = Pieces::new(&frame, object.events).map(Ok::<_, Infallible>);
    let body = Body::from_stream(keep_permit(stream::iter(pieces), memory));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// The text of an object, written as it is sent.
struct Pieces {
    events: VecDeque<Arc<Event>>,
    /// What comes before the next event, and after the last one.
    before: String,
    after: Option<String>,
}

impl Pieces {
    /// Puts the events into the frame, whose own list of them is empty.
    fn new(frame: &ObjectDetail, events: Vec<Arc<Event>>) -> Self {
        const EVENTS: &str = "\"events\":[";
        let text = serde_json::to_string(frame).unwrap_or_default();
        // In text that a client chose, quotes are escaped: the first place that looks like the list is the list.
        let split = text.find(EVENTS).map_or(text.len(), |at| at + EVENTS.len());
        let (before, after) = text.split_at(split);
        Self { events: events.into(), before: before.into(), after: Some(after.into()) }
    }
}

impl Iterator for Pieces {
    type Item = Bytes;
    fn next(&mut self) -> Option<Bytes> {
        if self.events.is_empty() {
            let after = self.after.take()?;
            return Some((std::mem::take(&mut self.before) + &after).into());
        }
        let before = &mut self.before;
        let text = piece(&mut self.events, |event, text| {
            text.push_str(&std::mem::replace(before, ",".into()));
            text.push_str(&serde_json::to_string(&EventSnapshot::from(event)).unwrap_or_default());
        });
        if self.events.is_empty() {
            self.before.clear();
        }
        Some(text.into())
    }
}
