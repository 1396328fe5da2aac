//! The runner of HTTP handlers.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::limit::TargetHealth;
use pointsman_core::store::AttemptResult;
use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::client::{self, SharedClient};
use super::network_access::{ForbiddenAddressError, NetworkAccess};
use super::request;
use super::response::TargetResponse;
use super::signature::WebhookSecret;
use crate::{Delivery, HandlerOutcome, Runner};

/// An HTTP endpoint, and how requests are sent to it.
#[derive(Clone)]
pub struct HttpTarget {
    /// The URL that attempts are posted to.
    pub url: Url,
    /// Each secret signs every request, so that a secret can be rotated while the receiver still expects the old one.
    pub webhook_secrets: Vec<WebhookSecret>,
    /// Headers that are sent with every request. They never replace the headers that describe the event.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The networks that the handler may connect to.
    pub network_access: NetworkAccess,
}

impl HttpTarget {
    /// A target without secrets and headers of its own, which is only reached at a public address.
    pub fn new(url: &str) -> Result<Self, BadHttpTarget> {
        Ok(Self {
            url: url.parse().map_err(BadHttpTarget::InvalidUrl)?,
            webhook_secrets: vec![],
            headers: vec![],
            network_access: NetworkAccess::default(),
        })
    }
}

/// Headers and URLs may contain secrets, so only the origin of the URL is printed.
impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpTarget")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("secrets", &self.webhook_secrets.len())
            .field("headers", &names)
            .field("access", &self.network_access)
            .finish()
    }
}

/// Why a target is invalid.
#[derive(Debug, thiserror::Error)]
pub enum BadHttpTarget {
    /// The text is not a URL.
    #[error("this is not the URL of an HTTP handler")]
    InvalidUrl(#[source] url::ParseError),
    /// The URL is neither `http` nor `https`.
    #[error("an HTTP handler's URL begins with http:// or https://, not {0}:")]
    UnsupportedScheme(String),
    /// The HTTP client could not be created.
    #[error("cannot create the HTTP client")]
    ClientCreation(#[source] reqwest::Error),
}

/// Runs attempts by requests to one HTTP endpoint.
#[derive(Debug)]
pub struct HttpHandler {
    target: HttpTarget,
    client: Arc<SharedClient>,
}

impl HttpHandler {
    /// A handler that posts attempts to this target.
    pub fn new(target: HttpTarget) -> Result<Self, BadHttpTarget> {
        if !matches!(target.url.scheme(), "http" | "https") {
            return Err(BadHttpTarget::UnsupportedScheme(target.url.scheme().into()));
        }
        let client =
            client::find_or_build_client(&target.network_access).map_err(BadHttpTarget::ClientCreation)?;
        Ok(Self { target, client })
    }

    /// Sends the request and reads the response; without a response, the error is the outcome.
    async fn send_request(
        &self,
        delivery: &Delivery,
        now: Timestamp,
    ) -> Result<TargetResponse, HandlerOutcome> {
        self.target
            .network_access
            .check_url_address(&self.target.url)
            .map_err(|forbidden| refused_address_outcome(&forbidden))?;
        let body = request::build_body(&delivery.task);
        let headers = request::build_headers(&self.target, &delivery.task, &body, now);
        let request = self.client.post(self.target.url.clone()).headers(headers).body(body);
        // The client's errors contain the whole URL, which may have secrets.
        let response =
            request.send().await.map_err(|error| self.unreachable_outcome(&error.without_url()))?;
        TargetResponse::read(response).await.map_err(|error| {
            let cause = root_cause_text(&error.without_url());
            failing_target_outcome(format!("the response of {} broke off: {cause}", self.origin()))
        })
    }

    fn unreachable_outcome(&self, error: &reqwest::Error) -> HandlerOutcome {
        match error_chain(error).find_map(|cause| cause.downcast_ref::<ForbiddenAddressError>()) {
            Some(forbidden) => refused_address_outcome(forbidden),
            None => {
                failing_target_outcome(format!("cannot reach {}: {}", self.origin(), root_cause_text(error)))
            }
        }
    }

    fn origin(&self) -> String {
        self.target.url.origin().ascii_serialization()
    }
}

#[async_trait]
impl Runner for HttpHandler {
    fn handler_kind(&self) -> &'static str {
        "http"
    }

    /// The label is only the origin of the URL: path and query may contain a secret.
    fn target_label(&self) -> Option<String> {
        Some(self.origin())
    }

    async fn run(&self, delivery: Delivery) -> HandlerOutcome {
        let result = delivery
            .cancel_token
            .run_until_cancelled(self.send_request(&delivery, delivery.log_sink.now()))
            .await;
        let response = match result {
            // The worker knows whether a timeout caused the cancellation.
            None => return failing_target_outcome("cancelled before the target responded"),
            Some(Err(outcome)) => return outcome,
            Some(Ok(response)) => response,
        };
        let now = delivery.log_sink.now();
        delivery.log_sink.write_line(now, response.log_level(), response.to_log_line()).await;
        response.to_outcome(delivery.task.subject.tenant(), now)
    }
}

/// The outcome for a target that is unreachable or failing.
fn failing_target_outcome(error: impl Into<String>) -> HandlerOutcome {
    HandlerOutcome { target_health: Some(TargetHealth::Failing), ..HandlerOutcome::failed(error) }
}

/// The outcome for an address that is not allowed. It is not retried, because a retry would be refused again.
fn refused_address_outcome(forbidden: &ForbiddenAddressError) -> HandlerOutcome {
    let result = AttemptResult::Failed {
        error: forbidden.to_string(),
        return_code: 1,
        retry_at: None,
        permanent: true,
    };
    HandlerOutcome { result, ..HandlerOutcome::succeeded() }
}

fn error_chain<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
}

/// The root cause of an error; the client's own message only says that something failed.
fn root_cause_text(error: &reqwest::Error) -> String {
    error_chain(error).last().map(ToString::to_string).unwrap_or_default()
}
