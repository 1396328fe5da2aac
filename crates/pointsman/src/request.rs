//! The request that an event comes from.

use std::net::IpAddr;

use pointsman_core::Context;
use pointsman_core::event::MAX_CONTEXT_BYTES;

use crate::{Ctx, Extract, HandlerError};

/// Who asked, from where, and in which trace. A web handler fills it in once and gives it to what it emits; a
/// handler of the event takes it as an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestContext {
    pub ip: Option<IpAddr>,
    pub user_agent: Option<String>,
    pub referer: Option<String>,
    pub request_id: Option<String>,
    /// The W3C trace context.
    pub traceparent: Option<String>,
    /// Everything else that came with the event. An `ip` that is no address stands here too.
    pub other: Context,
}

impl RequestContext {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what an HTTP request's headers say; `header` looks one up by its lowercase name. The address is
    /// not among them: only the server knows which of its proxies to believe.
    ///
    /// ```
    /// # use pointsman::RequestContext;
    /// # let headers = std::collections::HashMap::from([("user-agent", "curl/8")]);
    /// let context = RequestContext::from_headers(|name| headers.get(name).copied());
    /// assert_eq!(context.user_agent.as_deref(), Some("curl/8"));
    /// ```
    pub fn from_headers<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Self {
        let text = |name| header(name).map(str::to_owned);
        Self {
            ip: None,
            user_agent: text("user-agent"),
            referer: text("referer"),
            request_id: text("x-request-id"),
            traceparent: text("traceparent"),
            other: Context::new(),
        }
    }

    pub fn ip(self, ip: IpAddr) -> Self {
        Self { ip: Some(ip), ..self }
    }

    pub fn user_agent(self, user_agent: impl Into<String>) -> Self {
        Self { user_agent: Some(user_agent.into()), ..self }
    }

    pub fn referer(self, referer: impl Into<String>) -> Self {
        Self { referer: Some(referer.into()), ..self }
    }

    pub fn request_id(self, request_id: impl Into<String>) -> Self {
        Self { request_id: Some(request_id.into()), ..self }
    }

    pub fn traceparent(self, traceparent: impl Into<String>) -> Self {
        Self { traceparent: Some(traceparent.into()), ..self }
    }

    /// Anything else worth keeping.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.other.insert(name.into(), value.into());
        self
    }
}

impl From<RequestContext> for Context {
    fn from(request: RequestContext) -> Context {
        let mut context = request.other;
        let mut put = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                context.insert(name.into(), header_text(value));
            }
        };
        put("ip", request.ip.map(|ip| ip.to_string()));
        put("user_agent", request.user_agent);
        put("referer", request.referer);
        put("request_id", request.request_id);
        put("traceparent", request.traceparent);
        context
    }
}

/// What a stranger wrote into a header, cut to what a context holds: nobody shall be able to keep an event from
/// being emitted by the length of a user agent.
fn header_text(mut text: String) -> String {
    text.retain(|c| c != '\0');
    let end = (0..=MAX_CONTEXT_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
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
            other: context,
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
    fn what_goes_in_comes_out() {
        let request = RequestContext::new()
            .ip("2001:db8::1".parse().unwrap())
            .user_agent("curl/8")
            .referer("https://example.org/")
            .request_id("r-1")
            .traceparent("00-1-2-01")
            .with("session", "s");
        let context = Context::from(request.clone());
        assert_eq!(context["ip"], "2001:db8::1");
        assert_eq!(context.len(), 6);
        assert_eq!(RequestContext::from(context), request);
    }

    #[test]
    fn what_is_no_address_is_kept_as_text() {
        let request = RequestContext::from(Context::from([("ip".into(), "unknown".into())]));
        assert_eq!(request.ip, None);
        assert_eq!(request.other["ip"], "unknown");
    }

    #[test]
    fn a_hostile_header_is_cut_and_not_refused() {
        let long = "é".repeat(MAX_CONTEXT_BYTES) + "\0";
        let context = Context::from(RequestContext::new().user_agent(long));
        assert_eq!(context["user_agent"].len(), MAX_CONTEXT_BYTES);
    }
}
