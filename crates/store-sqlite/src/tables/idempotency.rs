//! Idempotency records.

use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Tenant, Timestamp};
use pointsman_store::tables::IdempotencyTable;

use super::SqliteTables;
use super::row::query_first;
use crate::error::TableResult;

impl IdempotencyTable for SqliteTables {
    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<([u8; 32], String)>> {
        let sql = "SELECT digest, response FROM pointsman_idempotency_record WHERE tenant = ?1 AND key = ?2";
        query_first(&self.conn, sql, (tenant.as_str(), key), |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn write_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        answer: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        let sql = "INSERT INTO pointsman_idempotency_record (tenant, key, digest, response, at)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        let IdempotencyKey { tenant, key, request_digest: digest, .. } = idempotency;
        self.conn.prepare_cached(sql)?.execute((tenant.as_str(), key, digest, answer, now.micros()))?;
        Ok(())
    }
}
