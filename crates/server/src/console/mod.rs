//! The console: what browsers get at `/`. Its files lie in `console/` at the root of the repository and are part of
//! the binary; a debug build reads them from there, so that they can be worked on while it runs.
//!
//! ```text
//!  GET /                            index.html for browsers, a few words for other programs; asked for anew each time
//!  GET /console/VERSION/FILE        everything that it loads; kept by browsers, since VERSION changes with any of them
//! ```
//!
//! It uses the public API alone, so that nothing here knows of events or tasks.

mod assets;
mod encoding;
mod imports;
mod lean;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::app::App;
use crate::problem::Problem;
use assets::Asset;

/// Nothing but this server's own files is loaded or run, nothing is sent elsewhere, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The page itself tells which version of the other files it goes with.
const ASK_AGAIN: &str = "no-cache";
const KEEP: &str = "public, max-age=31536000, immutable";

/// What `/` says to programs that do not ask for a page.
const GREETING: &str = concat!(
    "Pointsman ",
    env!("CARGO_PKG_VERSION"),
    " runs. Opened in a browser, this address shows its console.\n",
    "The API: /docs; its description: /openapi.json; its health: /healthz\n"
);

pub(crate) fn routes() -> Router<App> {
    Router::new().route("/", get(home)).route("/console/{version}/{*file}", get(file))
}

async fn home(headers: HeaderMap) -> Response {
    let mut response = match wants_page(&headers) {
        true => answer(&assets::index(), &headers, ASK_AGAIN),
        false => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], GREETING).into_response(),
    };
    let head = response.headers_mut();
    head.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    head.append(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// A page of an older version may still ask for its files: it is told that they are gone, and not given others.
async fn file(
    Path((version, file)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let asset = (version == assets::version()).then(|| assets::find(&file)).flatten();
    let asset = asset.ok_or_else(|| Problem::not_found("the console has no such file in this version"))?;
    Ok(answer(&asset, &headers, if assets::MAY_CHANGE { ASK_AGAIN } else { KEEP }))
}

/// Browsers name `text/html`, other programs take whatever comes.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|list| list.split(',')).any(|media| {
        let essence = media.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/html") || essence.eq_ignore_ascii_case("application/xhtml+xml")
    })
}

fn answer(asset: &Asset, headers: &HeaderMap, keep: &'static str) -> Response {
    let mut response = if known(headers, &asset.tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if let Some(gzip) = asset.gzip.clone().filter(|_| encoding::takes_gzip(headers)) {
        ([(header::CONTENT_ENCODING, "gzip")], gzip).into_response()
    } else {
        asset.plain.clone().into_response()
    };
    let head = response.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| head.insert(name, HeaderValue::from_static(value));
    say(header::CONTENT_TYPE, asset.media);
    say(header::CACHE_CONTROL, keep);
    say(header::VARY, "accept-encoding");
    say(header::CONTENT_SECURITY_POLICY, POLICY);
    say(header::REFERRER_POLICY, "no-referrer");
    say(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    say(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    if let Ok(tag) = HeaderValue::from_str(&asset.tag) {
        head.insert(header::ETAG, tag);
    }
    response
}

/// Whether the client says that it has this already.
fn known(headers: &HeaderMap, tag: &str) -> bool {
    let told = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    told.flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|one| one == "*" || one.trim_start_matches("W/") == tag.trim_start_matches("W/"))
}
