//! The HTTP request that an event comes from.

use std::net::IpAddr;

use pointsman_core::Context;
use pointsman_core::event::MAX_CONTEXT_STRING_BYTES;

use crate::{Ctx, Extract, HandlerError};

/// The request that an event comes from: client, headers and trace. A web handler fills it in once and passes it to its
/// emits; a handler of the event takes it as an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestContext {
    /// The address of the client.
    pub ip: Option<IpAddr>,
    /// The program of the client.
    pub user_agent: Option<String>,
    /// The page from which the request came.
    pub referer: Option<String>,
    /// The id under which the request is logged.
    pub request_id: Option<String>,
    /// The `traceparent` header of the W3C trace context.
    pub traceparent: Option<String>,
    /// All other entries of the event's context, and an `ip` that is not a valid address.
    pub other_entries: Context,
}

impl RequestContext {
    /// A context without any of its members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the headers of an HTTP request; `header` returns one by its lowercase name. The client's address is not
    /// read from headers: only the server knows which of its proxies to trust.
    ///
    /// ```
    /// # use pointsman::RequestContext;
    /// # let headers = std::collections::HashMap::from([("user-agent", "curl/8")]);
    /// let context = RequestContext::from_headers(|name| headers.get(name).copied());
    /// assert_eq!(context.user_agent.as_deref(), Some("curl/8"));
    /// ```
    pub fn from_headers<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Self {
        let read_header = |name| header(name).map(str::to_owned);
        Self {
            ip: None,
            user_agent: read_header("user-agent"),
            referer: read_header("referer"),
            request_id: read_header("x-request-id"),
            traceparent: read_header("traceparent"),
            other_entries: Context::new(),
        }
    }

    /// Sets the address of the client.
    pub fn ip(self, ip: IpAddr) -> Self {
        Self { ip: Some(ip), ..self }
    }

    /// Sets the program of the client.
    pub fn user_agent(self, user_agent: impl Into<String>) -> Self {
        Self { user_agent: Some(user_agent.into()), ..self }
    }

    /// Sets the page from which the request came.
    pub fn referer(self, referer: impl Into<String>) -> Self {
        Self { referer: Some(referer.into()), ..self }
    }

    /// Sets the id under which the request is logged.
    pub fn request_id(self, request_id: impl Into<String>) -> Self {
        Self { request_id: Some(request_id.into()), ..self }
    }

    /// Sets the trace that the request belongs to, as the header `traceparent` of W3C Trace Context has it.
    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        Self { traceparent: Some(traceparent.into()), ..self }
    }

    /// Adds another entry to the context.
    pub fn with_entry(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.other_entries.insert(name.into(), value.into());
        self
    }
}

impl From<RequestContext> for Context {
    fn from(request: RequestContext) -> Context {
        let mut context = request.other_entries;
        let mut insert = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                context.insert(name.into(), clean_and_truncate_header(value));
            }
        };
        insert("ip", request.ip.map(|ip| ip.to_string()));
        insert("user_agent", request.user_agent);
        insert("referer", request.referer);
        insert("request_id", request.request_id);
        insert("traceparent", request.traceparent);
        context
    }
}

/// Truncates a header to the limit of a context: a client must not be able to prevent an emit by a long user agent.
fn clean_and_truncate_header(mut text: String) -> String {
    text.retain(|c| c != '\0');
    let end =
        (0..=MAX_CONTEXT_STRING_BYTES.min(text.len())).rev().find(|index| text.is_char_boundary(*index));
    text.truncate(end.unwrap_or(0));
    text
}

impl From<Context> for RequestContext {
    fn from(mut context: Context) -> Self {
        let ip = context.get("ip").and_then(|text| text.parse().ok());
        if ip.is_some() {
            context.remove("ip");
        }
        Self {
            ip,
            user_agent: context.remove("user_agent"),
            referer: context.remove("referer"),
            request_id: context.remove("request_id"),
            traceparent: context.remove("traceparent"),
            other_entries: context,
        }
    }
}

impl Extract for RequestContext {
    fn extract(ctx: &Ctx) -> Result<Self, HandlerError> {
        Ok(ctx.event().context.clone().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_context_round_trips_through_the_event_context() {
        let request = RequestContext::new()
            .ip("2001:db8::1".parse().unwrap())
            .user_agent("curl/8")
            .referer("https://example.org/")
            .request_id("r-1")
            .traceparent("00-1-2-01")
            .with_entry("session", "s");
        let context = Context::from(request.clone());
        assert_eq!(context["ip"], "2001:db8::1");
        assert_eq!(context.len(), 6);
        assert_eq!(RequestContext::from(context), request);
    }

    #[test]
    fn invalid_ip_address_is_kept_as_text() {
        let request = RequestContext::from(Context::from([("ip".into(), "unknown".into())]));
        assert_eq!(request.ip, None);
        assert_eq!(request.other_entries["ip"], "unknown");
    }

    #[test]
    fn oversized_header_is_truncated_and_not_rejected() {
        let long = "é".repeat(MAX_CONTEXT_STRING_BYTES) + "\0";
        let context = Context::from(RequestContext::new().user_agent(long));
        assert_eq!(context["user_agent"].len(), MAX_CONTEXT_STRING_BYTES);
    }
}
