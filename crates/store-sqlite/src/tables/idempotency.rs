//! Idempotency records.

use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Tenant, Timestamp};
use pointsman_store::columns::IdempotencyRecordColumns;
use pointsman_store::expand_sql;
use pointsman_store::tables::IdempotencyTable;

use super::SqliteTables;
use super::queries::{query_first, read_columns, write_columns};
use crate::error::TableResult;

impl IdempotencyTable for SqliteTables {
    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<([u8; 32], String)>> {
        let sql = expand_sql!(
            "SELECT :idempotency_record_columns FROM pointsman_idempotency_record
             WHERE tenant = ?1 AND key = ?2"
        );
        query_first(&self.conn, sql, (tenant.as_str(), key), |row| {
            read_columns::<IdempotencyRecordColumns>(row)?.into_digest_and_response()
        })
    }

    fn write_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        answer: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        let sql = expand_sql!(
            "INSERT INTO pointsman_idempotency_record (:idempotency_record_columns)
             VALUES (:idempotency_record_parameters)"
        );
        write_columns(&self.conn, sql, &IdempotencyRecordColumns::from_record(idempotency, answer, now))
    }
}
