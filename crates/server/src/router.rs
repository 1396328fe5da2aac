//! All calls, and what stands before each of them.
//!
//! ```text
//!  request ─▶ catch panics ─▶ address check, body drain ─▶ whose token, reserve ─▶ the call: role ─▶ query, path ─▶ body
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

use crate::app::App;
use crate::auth::{Identity, Role};
use crate::body::{SharedBody, waits_for_continue};
use crate::limits::charge_response;
use crate::listen::{Connection, Slot};
use crate::problem::Problem;
use crate::{console, events, health, openapi, pages, percent};

/// The longest address: path and query.
const MAX_ADDRESS: usize = 8 << 10;

/// Everything this server answers to.
pub(crate) fn router(app: App) -> Router {
    let (api, _) = openapi::api();
    api.merge(pages::routes(openapi::document()))
        .merge(console::routes())
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(app.clone(), admit))
        .layer(middleware::from_fn(front))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(app)
}

async fn not_found(uri: Uri) -> Problem {
    Problem::not_found(format!("there is nothing at {}", uri.path()))
}

async fn not_allowed(method: Method, uri: Uri) -> Problem {
    Problem::method_not_allowed(format!("{method} cannot be done to {}; see `Allow`", uri.path()))
}

fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    // The panic itself has been written to the log by the hook.
    Problem::broken("the server made a mistake; its log says which").into_response()
}

/// Checks the address, and drains what the call did not read of its body.
async fn front(request: Request, next: Next) -> Response {
    let waits = waits_for_continue(&request);
    let (parts, body) = request.into_parts();
    let body = SharedBody::new(body);
    let mut response = match check(&parts.uri) {
        Ok(()) => next.run(Request::from_parts(parts, Body::new(body.clone()))).await,
        Err(problem) => problem.into_response(),
    };
    body.drain(waits);
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// Finds out whose token a request carries, keeps connections of the reserve for what they are for, and counts the
/// memory of the answer.
async fn admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let identity = Identity::of(request.headers(), &app.tokens.borrow());
    let connection = request.extensions().get::<Connection>().cloned();
    let slot = connection.map(|connection| connection.record_request(identity.is_valid(), Instant::now()));
    let is_reserve = slot == Some(Slot::Reserve);
    let method = request.method().clone();
    let mut response = if is_reserve && !may_use_reserve(&request, &identity) {
        app.connections.count_refusal();
        Problem::unavailable(
            "all connections except the reserve for health checks and producers are in use; try again, or raise \
             `server.max_connections`",
        )
        .into_response()
    } else {
        request.extensions_mut().insert(identity.clone());
        next.run(request).await
    };
    if let Some(caller) = identity.caller() {
        response = charge_response(&app.responses, caller, &method, response);
    }
    if is_reserve {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether a request is a health check or an emit.
fn may_use_reserve(request: &Request, identity: &Identity) -> bool {
    let path = request.uri().path();
    let is_emit = request.method() == Method::POST && path == events::PATH;
    let is_producer = identity.caller().is_some_and(|caller| caller.role.includes(Role::Producer));
    health::PATHS.contains(&path) || (is_emit && is_producer)
}

fn check(uri: &Uri) -> Result<(), Problem> {
    let length = uri.path_and_query().map_or(0, |address| address.as_str().len());
    if length > MAX_ADDRESS {
        return Err(Problem::address_too_long(format!("an address has at most {MAX_ADDRESS} bytes")));
    }
    let decoded = percent::decode(uri.path());
    decoded.map(|_| ()).ok_or_else(|| Problem::malformed("the path is not percent-encoded UTF-8"))
}
