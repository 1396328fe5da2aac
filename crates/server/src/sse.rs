//! Server-sent events.

use std::fmt::Display;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use http::header;

/// How often a quiet stream shows that it lives.
pub(crate) const KEEP_ALIVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(15);

/// A frame. Its data may hold line breaks (raw payloads do, between their tokens): each line is a field of
/// its own.
pub(crate) fn format_frame(id: Option<u64>, event: impl Display, data: &str) -> String {
    let mut text = String::with_capacity(data.len() + 64);
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    text.push_str(&format!("event: {event}\n"));
    for line in data.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

/// A comment that keeps the connection open, and moves the reader's cursor if it lags behind what was looked
/// at: without it a quiet filter would tear in the end.
pub(crate) fn format_keep_alive(id: Option<u64>) -> String {
    match id {
        Some(id) => format!(": keep-alive\nid: {id}\n\n"),
        None => ": keep-alive\n\n".into(),
    }
}

/// An answer that streams frames.
pub(crate) fn stream_response(frames: impl Stream<Item = String> + Send + 'static) -> Response {
    use futures::StreamExt;
    let body = Body::from_stream(frames.map(|text| Ok::<_, std::convert::Infallible>(Bytes::from(text))));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that gather answers would hold the frames back.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_data_is_a_field() {
        assert_eq!(format_frame(Some(7), "a.b", "{\n1}"), "id: 7\nevent: a.b\ndata: {\ndata: 1}\n\n");
        assert_eq!(format_frame(None, "task", "{\r\n}"), "event: task\ndata: {\ndata: \ndata: }\n\n");
    }
}
