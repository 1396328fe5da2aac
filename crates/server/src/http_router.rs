//! All routes, and the middleware before each call.
//!
//! ```text
//!  request ─▶ catch panics ─▶ address check, body drain ─▶ token, connection reserve ─▶ the call: role ─▶ query, path ─▶ body
//! ```

use std::any::Any;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, Uri, header};
use tokio::time::Instant;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app_state::App;
use crate::auth::{Identity, Role};
use crate::limits::reserve_response_memory;
use crate::listen::{ConnectionHandle, ConnectionShortage, RequestAdmission, RequestPurpose};
use crate::problem::Problem;
use crate::request_body::{DrainableBody, expects_continue};
use crate::{console, docs_page, events, health, openapi, percent_decoding};

/// Maximum length of an address: path and query.
const MAX_URI_BYTES: usize = 8 << 10;

/// Builds the router with all routes and middleware.
pub(crate) fn build_http_router(app: App) -> Router {
    let (api, _) = openapi::build_api_router_and_document();
    api.merge(docs_page::http_routes(openapi::document_json()))
        .merge(console::http_routes())
        .fallback(not_found_response)
        .method_not_allowed_fallback(method_not_allowed_response)
        .layer(middleware::from_fn_with_state(app.clone(), authenticate_and_admit))
        .layer(middleware::from_fn(check_uri_and_drain_body))
        .layer(CatchPanicLayer::custom(panic_response))
        .with_state(app)
}

async fn not_found_response(uri: Uri) -> Problem {
    Problem::not_found(format!("no resource at {}", uri.path()))
}

async fn method_not_allowed_response(method: Method, uri: Uri) -> Problem {
    Problem::method_not_allowed(format!("{method} is not allowed for {}; see the `Allow` header", uri.path()))
}

fn panic_response(_: Box<dyn Any + Send + 'static>) -> Response {
    // The panic hook has logged the panic itself.
    Problem::internal_error("the call panicked; see the server's log").into_response()
}

/// Checks the address, and drains the part of the body that the call did not read.
async fn check_uri_and_drain_body(request: Request, next: Next) -> Response {
    let awaits_continue = expects_continue(&request);
    let (parts, body) = request.into_parts();
    let body = DrainableBody::new(body);
    let mut response = match check_uri(&parts.uri) {
        Ok(()) => next.run(Request::from_parts(parts, Body::new(body.clone()))).await,
        Err(problem) => problem.into_response(),
    };
    body.spawn_drain(awaits_continue);
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// Authenticates the request, refuses it if its connection of the reserve is for other purposes, and reserves
/// memory for the response from the share of the token.
async fn authenticate_and_admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let identity = Identity::from_headers(request.headers(), &app.accepted_tokens.borrow());
    let connection = request.extensions().get::<ConnectionHandle>().cloned();
    let admission = connection.map_or(RequestAdmission::Served, |connection| {
        connection.admit_request(&identity, classify_request_purpose(&request, &identity), Instant::now())
    });
    let method = request.method().clone();
    let mut response = if let RequestAdmission::Refused(shortage) = admission {
        connection_shortage_problem(shortage).into_response()
    } else {
        request.extensions_mut().insert(identity.clone());
        next.run(request).await
    };
    if let Some(caller) = identity.caller() {
        response = reserve_response_memory(&app.response_memory_budget, caller, &method, response);
    }
    if admission != RequestAdmission::Served {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn classify_request_purpose(request: &Request, identity: &Identity) -> RequestPurpose {
    let path = request.uri().path();
    let is_emit = request.method() == Method::POST && path == events::EVENTS_PATH;
    let is_producer = identity.caller().is_some_and(|caller| caller.role.includes(Role::Producer));
    if health::HEALTH_PATHS.contains(&path) {
        RequestPurpose::HealthCheck
    } else if is_emit && is_producer {
        RequestPurpose::Emit
    } else {
        RequestPurpose::Other
    }
}

/// The response to a request whose connection may not be used for it.
fn connection_shortage_problem(shortage: ConnectionShortage) -> Problem {
    Problem::unavailable(match shortage {
        ConnectionShortage::OrdinaryConnectionsInUse => {
            "all connections except the reserve for health checks and producers are in use; try again, or raise \
             `server.max_connections`"
        }
        ConnectionShortage::TokenShareUsedUp => {
            "this token has its share of connections open; close some of them, or raise \
             `server.limits.connections_per_client`"
        }
        ConnectionShortage::TooManyReserveEmits => {
            "all connections are in use, and so is the reserve for producers; try again, or raise \
             `server.max_connections`"
        }
    })
}

fn check_uri(uri: &Uri) -> Result<(), Problem> {
    let length = uri.path_and_query().map_or(0, |address| address.as_str().len());
    if length > MAX_URI_BYTES {
        return Err(Problem::uri_too_long(format!("an address has at most {MAX_URI_BYTES} bytes")));
    }
    let decoded = percent_decoding::decode_percent_encoded(uri.path());
    decoded.map(|_| ()).ok_or_else(|| Problem::malformed("the path is not percent-encoded UTF-8"))
}
