//! `Idempotency-Key`: a request that may be repeated. Its first answer is stored under the key, together with a digest of
//! what was asked for, so that a repeat gets that answer and another request under the same key is refused.

use http::HeaderMap;
use pointsman_core::Tenant;
use pointsman_core::store::{Idempotency, Refused, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;

const HEADER: &str = "idempotency-key";
/// The longest idempotency key.
const MAX_KEY: usize = 255;

/// The idempotency key of a request, if it has one.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let bad = |detail: String| Problem::malformed(detail).parameter("Idempotency-Key");
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad("the header is given twice".into()));
    }
    let key = value.as_bytes();
    if key.is_empty() || key.len() > MAX_KEY || !key.iter().all(|b| (0x20..0x7f).contains(b)) {
        return Err(bad(format!("an idempotency key has 1 to {MAX_KEY} printable ASCII characters")));
    }
    Ok(Some(String::from_utf8_lossy(key).into_owned()))
}

/// The idempotency key of a request for an operation on something, with a digest of both and of the body.
pub(crate) fn of_request(
    headers: &HeaderMap,
    tenant: Tenant,
    operation: &[&str],
    body: &[u8],
) -> Result<Option<Idempotency>, Problem> {
    let digest = || {
        let mut digest = Sha256::new();
        for part in operation {
            // Lengths first, so that no two different requests are the same bytes.
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        digest.update(body);
        digest.finalize().into()
    };
    Ok(key(headers)?.map(|key| Idempotency { tenant, key, digest: digest() }))
}

/// The idempotency key of an action. It belongs to the tenant of the caller's token, or to the default one. Which of them
/// is part of the digest, so that a token of the default tenant does not get the answer to a token of all tenants.
pub(crate) fn of_action(
    headers: &HeaderMap,
    caller: &Caller,
    operation: &[&str],
    body: &[u8],
) -> Result<Option<Idempotency>, Problem> {
    let scope = caller.tenant.as_ref().map_or("", Tenant::as_str);
    let operation: Vec<&str> = operation.iter().copied().chain([scope]).collect();
    of_request(headers, caller.tenant.clone().unwrap_or_default(), &operation, body)
}

/// The answer recorded for an earlier request under this key.
pub(crate) async fn recorded<A: DeserializeOwned>(
    app: &App,
    idempotency: Option<&Idempotency>,
) -> Result<Option<A>, Problem> {
    let Some(used) = idempotency else { return Ok(None) };
    let Some(text) = app.store().recorded_answer(used.clone()).await?? else { return Ok(None) };
    read(used, &text).map(Some)
}

/// Records the answer to a request under its key. Answers what the request gets, and whether that was recorded by an
/// earlier one.
pub(crate) async fn record<A: Serialize + DeserializeOwned>(
    app: &App,
    idempotency: Option<&Idempotency>,
    answer: A,
) -> Result<Result<(A, bool), Problem>, StoreError> {
    let Some(used) = idempotency else { return Ok(Ok((answer, false))) };
    let text = match serde_json::to_string(&answer) {
        Ok(text) => text,
        Err(error) => return Ok(Err(Problem::broken(error))),
    };
    Ok(match app.store().record_answer(used.clone(), text, app.now()).await? {
        Ok(recorded) if recorded.repeated => read(used, &recorded.answer).map(|answer| (answer, true)),
        Ok(_) => Ok((answer, false)),
        Err(conflict) => Err(conflict.into()),
    })
}

/// An answer of another type is that of another request.
fn read<A: DeserializeOwned>(used: &Idempotency, text: &str) -> Result<A, Problem> {
    serde_json::from_str(text).map_err(|_| Refused::IdempotencyConflict(used.key.clone()).into())
}
