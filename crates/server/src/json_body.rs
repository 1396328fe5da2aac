//! JSON bodies of actions: objects whose members stay raw until each is parsed, so that a fault points at its member.
//! Bodies of actions are optional; each call checks for the members it requires.

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::HeaderMap;
use pointsman_core::Tenant;
use pointsman_core::event_json_parser::{JsonError, parse_json_object, parse_string};
use pointsman_core::store::IdempotencyKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::app_state::App;
use crate::auth::Caller;
use crate::idempotency;
use crate::media_type;
use crate::problem::Problem;
use crate::request_body::ReceivedBody;
use crate::request_query::RequestQuery;

/// Maximum length of the reason for a rule.
const MAX_REASON_BYTES: usize = 1024;

/// The members of a body, all missing if there is no body. The request takes no query parameters.
pub(crate) struct OptionalJsonBody<T>(pub(crate) T);

impl<T: Default + DeserializeOwned> FromRequest<App> for OptionalJsonBody<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        RequestQuery::from_uri(request.uri(), &[])?;
        read_json_body(request, app).await.map(Self)
    }
}

/// The members of a body, all missing if there is no body. The call parses the query parameters itself.
pub(crate) struct OptionalJsonBodyWithQuery<T>(pub(crate) T);

impl<T: Default + DeserializeOwned> FromRequest<App> for OptionalJsonBodyWithQuery<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        read_json_body(request, app).await.map(Self)
    }
}

/// The members of a body, with the headers and bytes that an idempotency record needs. The request takes no query
/// parameters.
pub(crate) struct IdempotentBody<T> {
    pub(crate) members: T,
    headers: HeaderMap,
    body: Bytes,
}

impl<T> IdempotentBody<T> {
    /// Splits into the members and the idempotency key for an operation.
    pub(crate) fn into_members_and_key(
        self,
        caller: &Caller,
        operation: &[&str],
    ) -> Result<(T, Option<IdempotencyKey>), Problem> {
        let idempotency =
            idempotency::idempotency_key_for_caller(&self.headers, caller, operation, &self.body)?;
        Ok((self.members, idempotency))
    }
}

impl<T: Default + DeserializeOwned> FromRequest<App> for IdempotentBody<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        RequestQuery::from_uri(request.uri(), &[])?;
        let headers = request.headers().clone();
        let body = ReceivedBody::from_request(request, app).await?.bytes;
        Ok(Self { members: parse_json_body(&headers, &body)?, headers, body })
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an empty JSON object, or nothing at all")]
struct EmptyObject {}

/// The request of an action that takes neither query parameters nor members: no body, or an empty object.
pub(crate) struct EmptyRequest;

impl FromRequest<App> for EmptyRequest {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let OptionalJsonBody(EmptyObject {}) = OptionalJsonBody::from_request(request, app).await?;
        Ok(Self)
    }
}

/// The body of an action that takes only query parameters: none, or an empty object.
pub(crate) struct EmptyBodyWithQuery;

impl FromRequest<App> for EmptyBodyWithQuery {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let EmptyObject {} = read_json_body(request, app).await?;
        Ok(Self)
    }
}

/// The body of a request that sets or lifts a pause or a block.
pub(crate) struct RuleRequest {
    pub(crate) tenant: Option<Tenant>,
    pub(crate) reason: String,
}

impl FromRequest<App> for RuleRequest {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a JSON object")]
        struct RuleRequestMembers {
            tenant: Option<Box<RawValue>>,
            reason: Option<Box<RawValue>>,
        }
        let OptionalJsonBody(members): OptionalJsonBody<RuleRequestMembers> =
            OptionalJsonBody::from_request(request, app).await?;
        let tenant = members.tenant.map(|raw| parse_string("/tenant", &raw)).transpose()?;
        let tenant = tenant.map(Tenant::new).transpose().map_err(|e| JsonError::new("/tenant", e))?;
        let reason = members.reason.map(|raw| parse_string("/reason", &raw)).transpose()?.unwrap_or_default();
        if reason.len() > MAX_REASON_BYTES {
            return Err(
                JsonError::new("/reason", format!("a reason has at most {MAX_REASON_BYTES} bytes")).into()
            );
        }
        Ok(Self { tenant, reason })
    }
}

/// Reads the members of a body; all are missing if there is no body.
pub(crate) async fn read_json_body<T: Default + DeserializeOwned>(
    request: Request,
    app: &App,
) -> Result<T, Problem> {
    let headers = request.headers().clone();
    let body = ReceivedBody::from_request(request, app).await?;
    parse_json_body(&headers, &body.bytes)
}

fn parse_json_body<T: Default + DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Ok(T::default());
    }
    media_type::require_json_media_type(headers)?;
    let text = media_type::decode_body_utf8(body)?;
    serde_json::from_str::<&RawValue>(text).map_err(media_type::malformed_json_problem)?;
    parse_json_object(text).map_err(|fault| {
        let detail = format!("the body is not what was expected: {}", fault.detail);
        Problem::malformed(detail).with_pointer(fault.pointer)
    })
}
