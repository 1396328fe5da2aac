//! Serves the web console at `/`. Its files are in the crate `pointsman-console`.
//!
//! ```text
//!  GET /                            index.html for browsers, a short text for other programs; revalidated each time
//!  GET /console/VERSION/FILE        all files that it loads; cached forever, since VERSION changes with any of them
//! ```
//!
//! The console uses only the public API, so that nothing here depends on events or tasks.

mod accept_encoding;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use pointsman_console::Asset;

use crate::app_state::App;
use crate::problem::Problem;

/// Only this server's own files are loaded and run, data is sent only to this server, and the page cannot be framed.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// `Cache-Control` of the page: it must be revalidated, since it names the version of the other files.
const REVALIDATE_CACHE_CONTROL: &str = "no-cache";
/// `Cache-Control` of the other files, whose URLs change with their content.
const IMMUTABLE_CACHE_CONTROL: &str = "public, max-age=31536000, immutable";

/// The response of `/` to programs that do not accept HTML.
const PLAIN_TEXT_ROOT_RESPONSE: &str = concat!(
    "Pointsman ",
    env!("CARGO_PKG_VERSION"),
    " runs. Opened in a browser, this address shows its console.\n",
    "The API: /docs; its description: /openapi.json; its health: /healthz\n"
);

pub(crate) fn http_routes() -> Router<App> {
    Router::new().route("/", get(serve_root)).route("/console/{version}/{*file}", get(serve_file))
}

async fn serve_root(headers: HeaderMap) -> Response {
    let mut response = match accepts_html(&headers) {
        true => asset_response(&pointsman_console::index_page(), &headers, REVALIDATE_CACHE_CONTROL),
        false => {
            ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], PLAIN_TEXT_ROOT_RESPONSE).into_response()
        }
    };
    let head = response.headers_mut();
    head.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    head.append(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Serves a file. A page of an older version gets 404 for its files, and not those of another version.
async fn serve_file(
    Path((version, file)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let asset = (version == pointsman_console::files_version())
        .then(|| pointsman_console::find_asset(&file))
        .flatten();
    let asset = asset.ok_or_else(|| Problem::not_found("the console has no such file in this version"))?;
    Ok(asset_response(
        &asset,
        &headers,
        if pointsman_console::READS_FROM_DISK { REVALIDATE_CACHE_CONTROL } else { IMMUTABLE_CACHE_CONTROL },
    ))
}

/// Whether the client accepts HTML by name, as browsers do.
fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|list| list.split(',')).any(|media| {
        let essence = media.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/html") || essence.eq_ignore_ascii_case("application/xhtml+xml")
    })
}

fn asset_response(asset: &Asset, headers: &HeaderMap, cache_control: &'static str) -> Response {
    let mut response = if matches_etag(headers, &asset.etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if let Some(gzip) = asset.gzip_body.clone().filter(|_| accept_encoding::accepts_gzip(headers)) {
        ([(header::CONTENT_ENCODING, "gzip")], gzip).into_response()
    } else {
        asset.body.clone().into_response()
    };
    let head = response.headers_mut();
    let mut set_header =
        |name: HeaderName, value: &'static str| head.insert(name, HeaderValue::from_static(value));
    set_header(header::CONTENT_TYPE, asset.media_type);
    set_header(header::CACHE_CONTROL, cache_control);
    set_header(header::VARY, "accept-encoding");
    set_header(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    set_header(header::REFERRER_POLICY, "no-referrer");
    set_header(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set_header(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    if let Ok(tag) = HeaderValue::from_str(&asset.etag) {
        head.insert(header::ETAG, tag);
    }
    response
}

/// Whether `If-None-Match` has this tag, so that the client has the file already.
fn matches_etag(headers: &HeaderMap, tag: &str) -> bool {
    let presented_tags =
        headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    presented_tags
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|one| one == "*" || one.trim_start_matches("W/") == tag.trim_start_matches("W/"))
}
