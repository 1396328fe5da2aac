//! Formats server-sent events and streams them as a response.

use std::fmt::Display;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::Stream;
use http::header;

/// Interval of keep-alive comments on an idle stream.
pub(crate) const KEEP_ALIVE_INTERVAL: std::time::Duration = std::time::Duration::from_secs(15);

/// Formats a frame. Data with line breaks (raw JSON may have them between tokens) becomes one `data` field per line.
pub(crate) fn format_frame(id: Option<u64>, event_type: impl Display, data: &str) -> String {
    let mut text = String::with_capacity(data.len() + 64);
    if let Some(id) = id {
        text.push_str(&format!("id: {id}\n"));
    }
    text.push_str(&format!("event: {event_type}\n"));
    for line in data.split(['\n', '\r']) {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Formats a comment that keeps the connection open. With an id it also moves the client's cursor past events that its
/// filter skipped; otherwise the cursor of a filter that rarely matches would expire.
pub(crate) fn format_keep_alive(id: Option<u64>) -> String {
    match id {
        Some(id) => format!(": keep-alive\nid: {id}\n\n"),
        None => ": keep-alive\n\n".into(),
    }
}

/// A response that streams frames.
pub(crate) fn stream_response(frames: impl Stream<Item = String> + Send + 'static) -> Response {
    use futures::StreamExt;
    let body = Body::from_stream(frames.map(|text| Ok::<_, std::convert::Infallible>(Bytes::from(text))));
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that buffer responses would delay the frames.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_data_is_sent_as_a_data_field() {
        assert_eq!(format_frame(Some(7), "a.b", "{\n1}"), "id: 7\nevent: a.b\ndata: {\ndata: 1}\n\n");
        assert_eq!(format_frame(None, "task", "{\r\n}"), "event: task\ndata: {\ndata: \ndata: }\n\n");
    }
}
