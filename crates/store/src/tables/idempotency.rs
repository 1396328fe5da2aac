//! The table of idempotency records.

use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Tenant, Timestamp};

use crate::error::TableResult;

/// Answers to requests, recorded under their idempotency keys.
pub trait IdempotencyTable {
    /// Reads the answer recorded under an idempotency key, with the digest of the request.
    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<([u8; 32], String)>>;

    fn write_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        answer: &str,
        now: Timestamp,
    ) -> TableResult<()>;
}
