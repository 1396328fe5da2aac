//! A typed client.
//!
//! ```text
//!  mod      the connection: addresses, tokens, sending, telling refusals from answers
//!  calls, orders, statistics, schedules, worker
//!           one method a call of the API
//!  query    what callers send
//!  stream   the journal as it grows, and a running task's log
//!  sse      server-sent events out of bytes
//!  error    what can go wrong, and whether trying again may help
//! ```
//!
//! A client holds no state but its connections; cloning one is cheap. It never retries by itself: only the
//! caller knows whether a call may be made twice.

mod calls;
mod error;
mod orders;
mod query;
mod schedules;
mod sse;
mod statistics;
mod stream;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use url::Url;

pub use error::ClientError;
pub use orders::OrderName;
pub use query::{EmitBody, EventQuery, LogQuery, OrderQuery, TaskQuery};
pub use sse::Frame;
pub use statistics::OrderCounts;
pub use stream::Frames;

/// The address of a server that was started without any configuration.
pub const DEFAULT_URL: &str = "http://127.0.0.1:7646";

type Result<T> = std::result::Result<T, ClientError>;

/// How long the server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an ordinary call may take. Streams may last for ever.
const CALL: Duration = Duration::from_secs(60);

/// Talks to one server.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<Arc<str>>,
}

/// Shows where it talks to, and not the token.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    /// A client for the server at this address, with this token if there is one. Connects when first used.
    pub fn new(url: &str, token: Option<&str>) -> Result<Self> {
        let base = base(url)?;
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("pointsman/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT)
            .redirect(reqwest::redirect::Policy::none());
        if base.scheme() == "http" {
            // A machine without any certificates must still be able to talk to a server in the clear.
            builder = builder.tls_certs_only([]);
        }
        if is_loopback(&base) {
            builder = builder.no_proxy();
        }
        // Installed already is as good: there is only one provider in the house.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = builder.build().map_err(|e| ClientError::Address(format!("cannot use {url}: {e}")))?;
        Ok(Self { http, base, token: token.map(Into::into) })
    }

    /// The address of the server.
    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The URL of a resource. Each segment is escaped, so that a key may hold slashes. The base is always one
    /// that can have a path: [`base`] sees to it.
    fn at(&self, segments: &[&str]) -> Result<Url> {
        // URLs resolve dots and drop line breaks and tabs, and the address would be that of something else.
        let lost = |s: &&&str| matches!(**s, "" | "." | "..") || s.contains(['\t', '\n', '\r']);
        if let Some(bad) = segments.iter().find(lost) {
            return Err(ClientError::Address(format!("{bad:?} cannot be a part of an address")));
        }
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        Ok(url)
    }

    fn get(&self, segments: &[&str]) -> Result<RequestBuilder> {
        Ok(self.request(Method::GET, self.at(segments)?))
    }

    fn post(&self, segments: &[&str]) -> Result<RequestBuilder> {
        Ok(self.request(Method::POST, self.at(segments)?))
    }

    fn ask(&self, segments: &[&str], pairs: &query::Pairs) -> Result<RequestBuilder> {
        let mut url = self.at(segments)?;
        pairs.append_to(&mut url);
        Ok(self.request(Method::GET, url))
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request; an answer that is a refusal becomes an error.
    async fn send(&self, request: RequestBuilder) -> Result<Response> {
        let response = request.send().await.map_err(|e| self.unreachable(e))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let body = response.bytes().await.unwrap_or_default();
        Err(ClientError::Refused(Box::new(error::problem(status, &body))))
    }

    /// Sends a request and reads its JSON answer.
    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T> {
        self.read(self.send(request.timeout(CALL)).await?).await
    }

    /// Sends a request that may make something; answers whether it did.
    async fn json_created<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<(T, bool)> {
        let response = self.send(request.timeout(CALL)).await?;
        let created = response.status() == StatusCode::CREATED;
        Ok((self.read(response).await?, created))
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T> {
        let body = response.bytes().await.map_err(|e| self.unreachable(e))?;
        serde_json::from_slice(&body)
            .map_err(|e| ClientError::Unreadable { url: self.url().into(), why: e.to_string() })
    }

    fn unreachable(&self, source: reqwest::Error) -> ClientError {
        if source.is_builder() {
            let what =
                "the request cannot be sent: the token or the idempotency key holds what no header can";
            return ClientError::Address(what.into());
        }
        ClientError::Unreachable { url: self.url().into(), source }
    }
}

/// A request with its idempotency key, if it has one.
fn with_idempotency_key(request: RequestBuilder, idempotency_key: Option<&str>) -> RequestBuilder {
    match idempotency_key {
        Some(key) => request.header("idempotency-key", key),
        None => request,
    }
}

fn base(text: &str) -> Result<Url> {
    let wanted = "write one like http://127.0.0.1:7646";
    // What stands before an `@` may be a password.
    let shown = if text.contains('@') { "this".into() } else { format!("{text:?}") };
    let url = Url::parse(text)
        .map_err(|e| ClientError::Address(format!("{shown} is not a URL ({e}); {wanted}")))?;
    let anonymous = url.username().is_empty() && url.password().is_none();
    let plain = url.query().is_none() && url.fragment().is_none() && anonymous;
    if !matches!(url.scheme(), "http" | "https") || !plain {
        return Err(ClientError::Address(format!("{shown} is not the address of a server; {wanted}")));
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
    fn each_segment_is_escaped() {
        let client = Client::new("http://127.0.0.1:7646/behind/a/proxy/", None).unwrap();
        let url = client.at(&["api", "v1", "objects", "a/b?c#ü %"]).unwrap();
        assert_eq!(
            url.as_str(),
            "http://127.0.0.1:7646/behind/a/proxy/api/v1/objects/a%2Fb%3Fc%23%C3%BC%20%25"
        );
        for lost in ["", ".", "..", "a\tb", "a\r\nb"] {
            assert!(client.at(&["objects", lost]).is_err(), "{lost:?}");
        }
    }

    #[test]
    fn only_the_address_of_a_server_is_taken() {
        for bad in ["", "127.0.0.1:7646", "ftp://x", "http://x?y", "http://me@x", "http://:pw@x", "unix:/x"] {
            assert!(Client::new(bad, None).is_err(), "{bad:?}");
        }
        let error = Client::new("http://me:hunter2@x", None).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[tokio::test]
    async fn what_no_header_can_hold_is_not_taken_for_a_server_that_is_away() {
        let client = Client::new(DEFAULT_URL, Some("a\nb")).unwrap();
        assert!(matches!(client.health().await, Err(ClientError::Address(_))));
        let client = Client::new(DEFAULT_URL, None).unwrap();
        assert!(matches!(client.emit(&1, Some("a\nb")).await, Err(ClientError::Address(_))));
    }

    #[test]
    fn the_token_is_never_shown() {
        let client = Client::new(DEFAULT_URL, Some("pm_secret")).unwrap();
        assert!(!format!("{client:?}").contains("secret"));
    }
}
