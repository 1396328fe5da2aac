//! Idempotency records.

use std::borrow::Cow;

use pointsman_core::Timestamp;
use pointsman_core::store::IdempotencyKey;

use super::columns;
use crate::error::{Fault, TableResult};

columns! {
    /// The columns of an idempotency record: the response that is stored for a key.
    IdempotencyRecordColumns<'a> key(tenant, key) {
        tenant: Cow<'a, str>,
        key: Cow<'a, str>,
        /// The digest of the request.
        digest: Cow<'a, [u8]>,
        response: Cow<'a, str>,
        at: i64,
    }
}

impl<'a> IdempotencyRecordColumns<'a> {
    pub fn from_record(idempotency: &'a IdempotencyKey, response: &'a str, at: Timestamp) -> Self {
        let IdempotencyKey { tenant, key, request_digest } = idempotency;
        Self {
            tenant: tenant.as_str().into(),
            key: key.as_str().into(),
            digest: request_digest.as_slice().into(),
            response: response.into(),
            at: at.micros(),
        }
    }

    /// Returns the digest of the request, and its response.
    pub fn into_digest_and_response(self) -> TableResult<([u8; 32], String)> {
        let digest = <[u8; 32]>::try_from(&*self.digest);
        Ok((digest.map_err(|error| Fault::undecodable("a digest", error))?, self.response.into()))
    }
}
