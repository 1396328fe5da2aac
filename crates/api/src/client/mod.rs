//! A typed client of the HTTP API, with one method for each call.
//!
//! ```text
//!  mod          the connection: URLs, tokens, sending requests, turning error responses into errors
//!  events, tasks, redrives, handlers, schedules, orders, order_statistics, chains, nodes, audit, server_config, current_token,
//!  health, workers
//!               one method for each call of the API
//!  queries      filters and other parameters that callers send
//!  streams      the event stream and a running task's log
//!  sse_parser   splits bytes into server-sent events
//!  error        why a call failed, and whether a retry may help
//! ```
//!
//! A client has no state but its connections; cloning one is cheap. It never retries by itself: only the
//! caller knows whether a call may be repeated.

mod audit;
mod chains;
mod current_token;
mod error;
mod events;
mod handlers;
mod health;
mod nodes;
mod order_statistics;
mod orders;
mod queries;
mod redrives;
mod schedules;
mod server_config;
mod sse_parser;
mod streams;
mod tasks;
mod workers;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

pub use error::ClientError;
pub use order_statistics::OrderStatisticsBody;
pub use orders::TenantOrderKey;
pub use queries::{EmitBody, EventQuery, LogQuery, OrderQuery, TaskQuery};
pub use sse_parser::SseFrame;
pub use streams::SseFrameStream;

/// The address of a server that was started without any configuration.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7646";

/// The result of an API call.
type ClientResult<T> = Result<T, ClientError>;

/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an ordinary call may take. Streams and long polls have no such limit.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends requests to one server.
#[derive(Clone)]
pub struct Client {
    http_client: reqwest::Client,
    base_url: Url,
    token: Option<Arc<str>>,
}

/// Shows the server's URL, and never the token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base_url", &self.base_url.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    /// Creates a client for the server at this URL, which sends this token if there is one. Connects when first used.
    pub fn new(url: &str, token: Option<&str>) -> ClientResult<Self> {
        let base_url = parse_base_url(url)?;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("pointsman/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if base_url.scheme() == "http" {
            // A machine without any certificates must still be able to use plain HTTP.
            builder = builder.tls_certs_only([]);
        }
        if is_loopback(&base_url) {
            builder = builder.no_proxy();
        }
        // An error means that a provider is installed already, and Pointsman only ever installs this one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = builder.build().map_err(ClientError::ClientCreation)?;
        Ok(Self { http_client: http, base_url, token: token.map(Into::into) })
    }

    /// The URL of the server, without a trailing slash.
    pub fn url(&self) -> &str {
        self.base_url.as_str().trim_end_matches('/')
    }

    /// The URL of a resource. Each segment is escaped, so that a key may contain slashes. The base URL can always have
    /// a path: [`parse_base_url`] checks that.
    fn resource_url(&self, segments: &[&str]) -> ClientResult<Url> {
        // URLs resolve dots and drop line breaks and tabs: the request would go to another resource.
        let is_rewritten = |s: &&&str| matches!(**s, "" | "." | "..") || s.contains(['\t', '\n', '\r']);
        if let Some(bad) = segments.iter().find(is_rewritten) {
            return Err(ClientError::InvalidRequest(format!("{bad:?} cannot be a segment of a URL path")));
        }
        let mut url = self.base_url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        Ok(url)
    }

    fn build_get_request(&self, segments: &[&str]) -> ClientResult<RequestBuilder> {
        Ok(self.build_request(Method::GET, self.resource_url(segments)?))
    }

    fn build_post_request(&self, segments: &[&str]) -> ClientResult<RequestBuilder> {
        Ok(self.build_request(Method::POST, self.resource_url(segments)?))
    }

    fn build_get_request_with_parameters(
        &self,
        segments: &[&str],
        parameters: &queries::QueryParameters,
    ) -> ClientResult<RequestBuilder> {
        let mut url = self.resource_url(segments)?;
        parameters.append_to(&mut url);
        Ok(self.build_request(Method::GET, url))
    }

    /// The URL of an order or a chain. The slashes of its absolute path are not escaped.
    fn order_or_chain_url(
        &self,
        collection: &str,
        path: &str,
        trailing_segments: &[&str],
    ) -> ClientResult<Url> {
        let mut segments = vec!["api", "v1", collection];
        segments.extend(path.trim_start_matches('/').split('/'));
        segments.extend(trailing_segments);
        self.resource_url(&segments)
    }

    fn build_request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.http_client.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request; an error response becomes an error.
    async fn send(&self, request: RequestBuilder) -> ClientResult<Response> {
        let response = request.send().await.map_err(|e| self.convert_reqwest_error(e))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = response.bytes().await.unwrap_or_default();
        Err(ClientError::ErrorResponse(Box::new(error::parse_problem(status, &body))))
    }

    /// Sends a request and parses the JSON of its response.
    async fn send_for_json<T: DeserializeOwned>(&self, request: RequestBuilder) -> ClientResult<T> {
        self.read_json(self.send(request.timeout(CALL_TIMEOUT)).await?).await
    }

    /// Sends a request that may create something and parses the JSON of its response; also returns whether something
    /// was created (201).
    async fn send_for_json_and_created_flag<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> ClientResult<(T, bool)> {
        let response = self.send(request.timeout(CALL_TIMEOUT)).await?;
        let created = response.status() == StatusCode::CREATED;
        Ok((self.read_json(response).await?, created))
    }

    async fn read_json<T: DeserializeOwned>(&self, response: Response) -> ClientResult<T> {
        let body = response.bytes().await.map_err(|e| self.convert_reqwest_error(e))?;
        serde_json::from_slice(&body)
            .map_err(|e| ClientError::InvalidResponse { url: self.url().into(), source: e.into() })
    }

    /// Converts an error of a request that got no complete response.
    fn convert_reqwest_error(&self, source: reqwest::Error) -> ClientError {
        if source.is_builder() {
            let message =
                "the token or the idempotency key contains a character that an HTTP header cannot carry";
            return ClientError::InvalidRequest(message.into());
        }
        ClientError::Unreachable { url: self.url().into(), source }
    }
}

/// Adds the idempotency key to a request, if there is one.
fn with_idempotency_key(request: RequestBuilder, idempotency_key: Option<&str>) -> RequestBuilder {
    match idempotency_key {
        Some(key) => request.header("idempotency-key", key),
        None => request,
    }
}

/// Parses the URL of a server. Errors do not repeat a URL that may contain a password.
fn parse_base_url(text: &str) -> ClientResult<Url> {
    let hint = "write one like http://127.0.0.1:7646";
    let quoted_url = if text.contains('@') { "this".into() } else { format!("{text:?}") };
    let url = Url::parse(text)
        .map_err(|e| ClientError::InvalidRequest(format!("{quoted_url} is not a URL ({e}); {hint}")))?;
    let has_no_login = url.username().is_empty() && url.password().is_none();
    let is_plain_address = url.query().is_none() && url.fragment().is_none() && has_no_login;
    if !matches!(url.scheme(), "http" | "https") || !is_plain_address {
        return Err(ClientError::InvalidRequest(format!(
            "{quoted_url} is not the address of a server; {hint}"
        )));
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_segments_are_escaped_or_rejected() {
        let client = Client::new("http://127.0.0.1:7646/behind/a/proxy/", None).unwrap();
        let url = client.resource_url(&["api", "v1", "objects", "a/b?c#ü %"]).unwrap();
        assert_eq!(
            url.as_str(),
            "http://127.0.0.1:7646/behind/a/proxy/api/v1/objects/a%2Fb%3Fc%23%C3%BC%20%25"
        );
        for rewritten in ["", ".", "..", "a\tb", "a\r\nb"] {
            assert!(client.resource_url(&["objects", rewritten]).is_err(), "{rewritten:?}");
        }
    }

    #[test]
    fn invalid_server_urls_are_rejected_without_repeating_the_password() {
        for bad in ["", "127.0.0.1:7646", "ftp://x", "http://x?y", "http://me@x", "http://:pw@x", "unix:/x"] {
            assert!(Client::new(bad, None).is_err(), "{bad:?}");
        }
        let error = Client::new("http://me:hunter2@x", None).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[tokio::test]
    async fn a_header_with_a_line_break_is_reported_as_an_invalid_request() {
        let client = Client::new(DEFAULT_URL, Some("a\nb")).unwrap();
        assert!(matches!(client.read_health().await, Err(ClientError::InvalidRequest(_))));
        let client = Client::new(DEFAULT_URL, None).unwrap();
        assert!(matches!(client.emit(&1, Some("a\nb")).await, Err(ClientError::InvalidRequest(_))));
    }

    #[test]
    fn debug_output_hides_the_token() {
        let client = Client::new(DEFAULT_URL, Some("pm_secret")).unwrap();
        assert!(!format!("{client:?}").contains("secret"));
    }
}
