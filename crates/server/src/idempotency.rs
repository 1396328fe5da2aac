//! `Idempotency-Key` makes a request safe to repeat. The first response is stored under the key, together with a digest
//! of the request, so that a repeat gets the same response and another request under the same key is refused.

use http::HeaderMap;
use pointsman_core::Tenant;
use pointsman_core::store::{IdempotencyError, IdempotencyKey, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;

const HEADER_NAME: &str = "idempotency-key";
/// Maximum length of an idempotency key.
const MAX_KEY_BYTES: usize = 255;

/// Reads the idempotency key of a request, if it has one.
pub(crate) fn read_idempotency_key_header(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let malformed_header = |detail: String| Problem::malformed(detail).with_parameter("Idempotency-Key");
    let mut values = headers.get_all(HEADER_NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(malformed_header("the header is given twice".into()));
    }
    let key = value.as_bytes();
    if key.is_empty() || key.len() > MAX_KEY_BYTES || !key.iter().all(|b| (0x20..0x7f).contains(b)) {
        return Err(malformed_header(format!(
            "an idempotency key has 1 to {MAX_KEY_BYTES} printable ASCII characters"
        )));
    }
    Ok(Some(String::from_utf8_lossy(key).into_owned()))
}

/// Reads the idempotency key of a request, as a key of this tenant, with a digest of the operation and the body.
pub(crate) fn idempotency_key_for_tenant(
    headers: &HeaderMap,
    tenant: Tenant,
    operation: &[&str],
    body: &[u8],
) -> Result<Option<IdempotencyKey>, Problem> {
    let digest = || {
        let mut digest = Sha256::new();
        for part in operation {
            // A length precedes each part, so that two different requests never give the same bytes.
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        digest.update(body);
        digest.finalize().into()
    };
    Ok(read_idempotency_key_header(headers)?.map(|key| IdempotencyKey {
        tenant,
        key,
        request_digest: digest(),
    }))
}

/// Reads the idempotency key of a request, as a key of the tenant that the caller is bound to, or of the default
/// tenant. The digest includes the caller's tenant, so that a token of the default tenant does not get a response meant
/// for a token of all tenants.
pub(crate) fn idempotency_key_for_caller(
    headers: &HeaderMap,
    caller: &Caller,
    operation: &[&str],
    body: &[u8],
) -> Result<Option<IdempotencyKey>, Problem> {
    let scope = caller.bound_tenant.as_ref().map_or("", Tenant::as_str);
    let operation: Vec<&str> = operation.iter().copied().chain([scope]).collect();
    idempotency_key_for_tenant(headers, caller.bound_tenant.clone().unwrap_or_default(), &operation, body)
}

/// Reads the response recorded for an earlier request under this key.
pub(crate) async fn read_recorded_response<A: DeserializeOwned>(
    app: &App,
    idempotency: Option<&IdempotencyKey>,
) -> Result<Option<A>, Problem> {
    let Some(idempotency_key) = idempotency else { return Ok(None) };
    let Some(text) = app.store().find_idempotent_response(idempotency_key.clone()).await?? else {
        return Ok(None);
    };
    parse_recorded_response(idempotency_key, &text).map(Some)
}

/// Records the response to a request under its key. Returns the response to send, and whether an earlier request
/// recorded it.
pub(crate) async fn record_response<A: Serialize + DeserializeOwned>(
    app: &App,
    idempotency: Option<&IdempotencyKey>,
    response: A,
) -> Result<Result<(A, bool), Problem>, StoreError> {
    let Some(idempotency_key) = idempotency else { return Ok(Ok((response, false))) };
    let text = match serde_json::to_string(&response) {
        Ok(text) => text,
        Err(error) => return Ok(Err(Problem::internal_error(error))),
    };
    Ok(match app.store().record_idempotent_response(idempotency_key.clone(), text, app.now()).await? {
        Ok(recorded) if recorded.repeated => {
            parse_recorded_response(idempotency_key, &recorded.response).map(|response| (response, true))
        }
        Ok(_) => Ok((response, false)),
        Err(conflict) => Err(conflict.into()),
    })
}

/// Parses a recorded response. One of another type belongs to another request, which is a conflict.
fn parse_recorded_response<A: DeserializeOwned>(
    idempotency_key: &IdempotencyKey,
    text: &str,
) -> Result<A, Problem> {
    serde_json::from_str(text).map_err(|_| IdempotencyError::Conflict(idempotency_key.key.clone()).into())
}
