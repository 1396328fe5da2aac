//! Media types of request bodies.

use http::{HeaderMap, header};

use crate::problem::Problem;

/// What a `Content-Type` says, in lower case and without its parameters; empty if there is none.
pub(crate) fn essence(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(String::new()) };
    let text = value.to_str().map_err(|_| not_taken("this one"))?.to_ascii_lowercase();
    let mut parts = text.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_owned();
    let charset = parts.find_map(|part| part.strip_prefix("charset="));
    match charset.map(|name| name.trim_matches('"')) {
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(essence),
        Some(_) => Err(Problem::media_type("bodies are UTF-8").parameter("Content-Type")),
    }
}

pub(crate) fn not_taken(what: &str) -> Problem {
    let detail = format!("bodies are application/json, {what} is not taken");
    Problem::media_type(detail).parameter("Content-Type")
}

/// Requires JSON, or a body without any type.
pub(crate) fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    match essence(headers)?.as_str() {
        "" | "application/json" => Ok(()),
        other => Err(not_taken(other)),
    }
}

/// The body as text.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(bytes).map_err(|e| {
        Problem::malformed(format!("the body is not UTF-8 from byte {} on", e.valid_up_to())).pointer("")
    })
}
