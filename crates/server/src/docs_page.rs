//! The page `/docs`, which describes the API. It is rendered here, without scripts and external resources.

use axum::Router;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use bytes::Bytes;
use http::header;
use serde_json::Value;

use crate::app_state::App;

/// Allows only this server's own stylesheet, and no scripts.
const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLESHEET: &str = "\
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code { font-family: ui-monospace, monospace; }
h2 { margin-top: 2rem; border-bottom: 1px solid #999; }
dt { font-family: ui-monospace, monospace; margin-top: 1rem; }
dt b { text-transform: uppercase; }
@media (prefers-color-scheme: dark) { body { background: #16181d; color: #ddd; } a { color: #8ab4f8; } }
";

/// Routes of the page, its stylesheet and the OpenAPI document.
pub(crate) fn http_routes(document: String) -> Router<App> {
    let docs = wrap_in_html_page(&render_api_docs(&serde_json::from_str(&document).unwrap_or_default()));
    // The bytes are shared by all responses.
    let (docs, document) = (Bytes::from(docs), Bytes::from(document));
    Router::new()
        .route("/docs", get(move || async move { html_response(docs) }))
        .route(
            "/style.css",
            get(|| async { ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLESHEET) }),
        )
        .route(
            "/openapi.json",
            get(move || async move { ([(header::CONTENT_TYPE, "application/json")], document) }),
        )
}

fn html_response(text: Bytes) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, Html(text))
}

fn wrap_in_html_page(body: &str) -> String {
    let head = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Pointsman</title>\
                <meta name=\"viewport\" content=\"width=device-width\">\
                <link rel=\"stylesheet\" href=\"/style.css\"></head><body>";
    format!("{head}{body}</body></html>\n")
}

/// Renders the calls of the API, grouped by tag.
fn render_api_docs(document: &Value) -> String {
    let mut html =
        "<h1>The API</h1><p>Described in full by <a href=\"/openapi.json\">openapi.json</a>.</p>".to_owned();
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = tag["name"].as_str().unwrap_or_default();
        html.push_str(&format!("<h2>{}</h2><dl>", escape_html(tag["description"].as_str().unwrap_or(name))));
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                if operation["tags"].as_array().is_some_and(|tags| tags.iter().any(|tag| tag == name)) {
                    html.push_str(&render_operation(path, method, operation));
                }
            }
        }
        html.push_str("</dl>");
    }
    html
}

fn render_operation(path: &str, method: &str, operation: &Value) -> String {
    let mut html = format!("<dt><b>{}</b> {}</dt>", escape_html(method), escape_html(path));
    html.push_str(&format!("<dd>{}", escape_html(operation["summary"].as_str().unwrap_or_default())));
    let parameters: Vec<String> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| {
            let text = |member: &str| escape_html(parameter[member].as_str().unwrap_or_default());
            format!("<li><code>{}</code>: {}</li>", text("name"), text("description"))
        })
        .collect();
    if !parameters.is_empty() {
        html.push_str(&format!("<ul>{}</ul>", parameters.concat()));
    }
    html.push_str("</dd>");
    html
}

fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
