//! A real HTTP server on loopback, and handlers that deliver to it.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response};
use pointsman_engine::handlers::http::{HttpHandler, HttpTarget, NetworkAccess};
use url::Url;

/// The requests that a server received.
#[derive(Clone, Default)]
pub(crate) struct ReceivedRequests(Arc<Mutex<Vec<(HeaderMap, Bytes)>>>);

impl ReceivedRequests {
    pub(crate) fn take(&self) -> Vec<(HeaderMap, Bytes)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Starts a server on a port of its own that answers every request with the response of `respond`.
pub(crate) async fn start_server(
    respond: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static,
) -> (Url, ReceivedRequests) {
    let received_requests = ReceivedRequests::default();
    let request_log = received_requests.clone();
    let app = Router::new().fallback(move |headers: HeaderMap, body: Bytes| {
        request_log.0.lock().unwrap().push((headers, body));
        let response = respond();
        async move { response }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook?x=1", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, received_requests)
}

pub(crate) fn http_target(url: Url) -> HttpTarget {
    let access = NetworkAccess { allows_loopback: true, allowed_destinations: vec![] };
    HttpTarget { url, webhook_secrets: vec![], headers: vec![], network_access: access }
}

pub(crate) fn http_handler(url: Url) -> HttpHandler {
    HttpHandler::new(http_target(url)).unwrap()
}

pub(crate) fn build_response(status: u16, headers: &[(&str, &str)], body: &str) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(Body::from(body.to_owned())).unwrap()
}
