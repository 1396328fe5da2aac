//! Idempotency records.

use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Tenant, Timestamp};
use pointsman_store::columns::IdempotencyRecordColumns;
use pointsman_store::error::TableResult;
use pointsman_store::tables::IdempotencyTable;

use super::PgTables;
use super::cache::IdempotencyRecord;
use crate::rows::read_columns;
use crate::session::query;
use crate::writer_connection::params;

impl IdempotencyTable for PgTables {
    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<IdempotencyRecord>> {
        let tenant_and_key = (tenant.clone(), key.to_string());
        if let Some(cached) = self.cache.idempotency_records.get(&tenant_and_key) {
            return Ok(cached.clone());
        }
        let query = query!("idempotency/list_idempotency_records", TEXT_ARRAY, TEXT_ARRAY);
        let params = params![vec![tenant_and_key.0.to_string()], vec![tenant_and_key.1.clone()]];
        let found = self.query_and_decode_first(query, params, |row| {
            read_columns::<IdempotencyRecordColumns<'_>>(row, 0)?.into_digest_and_response()
        })?;
        self.cache.idempotency_records.insert(tenant_and_key, found.clone());
        Ok(found)
    }

    fn write_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        response: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        self.write_batch.insert_idempotency_record(idempotency, response, now);
        let IdempotencyKey { tenant, key, request_digest } = idempotency;
        let record = Some((*request_digest, response.to_string()));
        self.cache.idempotency_records.insert((tenant.clone(), key.clone()), record);
        Ok(())
    }
}
