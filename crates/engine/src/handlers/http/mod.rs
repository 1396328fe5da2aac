//! Handlers that are HTTP endpoints.
//!
//! An attempt is one POST: the event as a CloudEvent in binary mode, signed as a Standard Webhook if the
//! handler has a secret. The response decides how the attempt ends:
//!
//! | response | end |
//! |---|---|
//! | 2xx | done; a JSON reply may carry effects |
//! | 410 | failed, without a retry |
//! | 429, 503 with `Retry-After` | snoozed until then, which costs no retry |
//! | 3xx | failed: redirects are not followed, because they could lead to addresses that are not allowed |
//! | anything else, or none | failed |
//!
//! The health of the target is stored with the end of the attempt, so that the circuit breaker of the handler opens for
//! a target that asks to wait or keeps failing, on all nodes and for all its tasks: after 5xx or no response the target
//! counts as failing, after 429 and 503 with `Retry-After` as busy, otherwise as healthy.
//!
//! Whether a request is allowed is decided by the address it is sent to (see [`NetworkAccess`]), not by the name in the
//! URL.
//!
//! With the feature `http-config` alone there are only the types that a configuration consists of, so that it can be
//! checked by a program that sends no requests.

#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod handler;
mod network_access;
#[cfg(feature = "http")]
mod reply;
#[cfg(feature = "http")]
mod request;
#[cfg(feature = "http")]
mod resolver;
#[cfg(feature = "http")]
mod response;
mod signature;

#[cfg(feature = "http")]
pub use handler::{BadHttpTarget, HttpHandler, HttpTarget};
pub use network_access::{AllowedDestination, BadAllowedDestination, ForbiddenAddressError, NetworkAccess};
pub use signature::{BadSecret, WebhookSecret};
