//! Handlers that are HTTP endpoints.
//!
//! An attempt is one POST: the event as a CloudEvent in binary mode, signed as a Standard Webhook if the
//! handler has a secret. Its answer is the attempt's end:
//!
//! | answer | end |
//! |---|---|
//! | 2xx | done; a JSON reply may carry effects |
//! | 410 | failed, for good |
//! | 429, 503 with `Retry-After` | failed; nothing is sent to this target until then |
//! | 3xx | failed: redirects are not followed, for they could lead to places that nobody allowed |
//! | anything else, or none | failed |
//!
//! Where a request may go is decided on the address it really goes to (see [`NetworkAccess`]), whatever the
//! name in the URL looks like.

mod access;
mod answer;
mod client;
mod request;
mod signature;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use pointsman_core::Timestamp;
use pointsman_core::store::Ended;
use pointsman_core::task::Level;
use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

pub use access::{Allowed, BadAllowed, NetworkAccess, Refused};
pub use signature::{BadSecret, WebhookSecret};

use crate::time::now;
use crate::{Delivery, Outcome, Runner};
use answer::Answer;
use client::Shared;

/// Where and how to deliver.
#[derive(Clone)]
pub struct HttpTarget {
    pub url: Url,
    /// Every one of them signs, so that one can be replaced while the receiver still expects the other.
    pub secrets: Vec<WebhookSecret>,
    /// Sent with every request. They never replace the headers that tell of the event.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub access: NetworkAccess,
}

/// Headers and URLs may hold secrets: only what tells targets apart is shown.
impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpTarget")
            .field("origin", &self.url.origin().ascii_serialization())
            .field("path", &self.url.path())
            .field("secrets", &self.secrets.len())
            .field("headers", &names)
            .field("access", &self.access)
            .finish()
    }
}

/// Why a target can never be delivered to.
#[derive(Debug, thiserror::Error)]
pub enum BadTarget {
    #[error("an HTTP handler's URL begins with http:// or https://, not {0}:")]
    Scheme(String),
    #[error("the HTTP client cannot be made")]
    Client(#[source] reqwest::Error),
}

/// Delivers to one endpoint.
#[derive(Debug)]
pub struct HttpHandler {
    target: HttpTarget,
    client: Arc<Shared>,
    /// Until when the target asked to be left alone, in microseconds since 1970.
    quiet_until: AtomicI64,
}

impl HttpHandler {
    pub fn new(target: HttpTarget) -> Result<Self, BadTarget> {
        if !matches!(target.url.scheme(), "http" | "https") {
            return Err(BadTarget::Scheme(target.url.scheme().into()));
        }
        let client = client::shared(&target.access).map_err(BadTarget::Client)?;
        Ok(Self { target, client, quiet_until: AtomicI64::new(0) })
    }

    /// One request and its answer, or the outcome if there is none.
    async fn exchange(&self, delivery: &Delivery, now: Timestamp) -> Result<Answer, Outcome> {
        self.target.access.check_literal(&self.target.url).map_err(|refused| forbidden(&refused))?;
        let request = self
            .client
            .post(self.target.url.clone())
            .headers(request::headers(&self.target, &delivery.task, now))
            .body(delivery.task.event.value.as_str().to_owned());
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        Answer::read(response).await.map_err(|error| {
            Outcome::failed(format!("the answer of {} broke off: {}", self.origin(), root_cause(&error)))
        })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Outcome {
        match causes(error).find_map(|cause| cause.downcast_ref::<Refused>()) {
            Some(refused) => forbidden(refused),
            None => Outcome::failed(format!("cannot reach {}: {}", self.origin(), root_cause(error))),
        }
    }

    fn origin(&self) -> String {
        self.target.url.origin().ascii_serialization()
    }

    /// A target that asked for a pause gets it from all of its tasks, and it costs them no retry.
    fn quiet(&self, now: Timestamp) -> Option<Outcome> {
        let until = Timestamp::from_micros(self.quiet_until.load(Ordering::Relaxed));
        let ended = Ended::Snoozed { until };
        (now < until).then(|| Outcome { ended, ..Outcome::done() })
    }
}

#[async_trait]
impl Runner for HttpHandler {
    fn kind(&self) -> &'static str {
        "http"
    }

    async fn run(&self, delivery: Delivery) -> Outcome {
        let started = now();
        if let Some(snoozed) = self.quiet(started) {
            let message = "not sent: the target asked to be left alone for a while".to_owned();
            delivery.log.line(started, Level::Info, message).await;
            return snoozed;
        }
        let exchanged = delivery.cancel.run_until_cancelled(self.exchange(&delivery, started)).await;
        let answer = match exchanged {
            None => return Outcome::failed("cancelled before the target had answered"),
            Some(Err(outcome)) => return outcome,
            Some(Ok(answer)) => answer,
        };
        let now = now();
        delivery.log.line(now, answer.level(), answer.told()).await;
        let outcome = answer.judge(&delivery.task.event, now);
        if let Ended::Failed { after: Some(after), .. } = &outcome.ended {
            self.quiet_until.fetch_max(after.micros(), Ordering::Relaxed);
        }
        outcome
    }
}

/// What was refused now will be refused the next time.
fn forbidden(refused: &Refused) -> Outcome {
    let ended = Ended::Failed { error: refused.to_string(), after: None, last: true };
    Outcome { ended, ..Outcome::done() }
}

fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
}

/// What really went wrong: the client's own words say only that something did.
fn root_cause(error: &reqwest::Error) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}
