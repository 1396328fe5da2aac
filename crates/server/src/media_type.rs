//! Media types of request bodies.

use http::{HeaderMap, header};

use crate::problem::Problem;

/// Reads the media type of a body, in lower case and without parameters; empty if there is no `Content-Type`.
pub(crate) fn read_media_type(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(String::new()) };
    let text = value.to_str().map_err(|_| unsupported_media_type_problem("this one"))?.to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_owned();
    let charset = parts.find_map(|part| part.strip_prefix("charset="));
    match charset.map(|name| name.trim_matches('"')) {
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(media_type),
        Some(_) => Err(Problem::unsupported_media_type("bodies are UTF-8").with_parameter("Content-Type")),
    }
}

pub(crate) fn unsupported_media_type_problem(media_type: &str) -> Problem {
    let detail = format!("the media type {media_type} is not supported; send application/json");
    Problem::unsupported_media_type(detail).with_parameter("Content-Type")
}

/// Requires `application/json`, or no media type.
pub(crate) fn require_json_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    match read_media_type(headers)?.as_str() {
        "" | "application/json" => Ok(()),
        other => Err(unsupported_media_type_problem(other)),
    }
}

/// The problem of a body that is not valid JSON.
pub(crate) fn malformed_json_problem(error: serde_json::Error) -> Problem {
    Problem::malformed(format!("the body is not valid JSON: {error}")).with_pointer("")
}

/// Decodes a body as UTF-8.
pub(crate) fn decode_body_utf8(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|e| {
        Problem::malformed(format!("the body is not UTF-8 from byte {} on", e.valid_up_to())).with_pointer("")
    })
}
