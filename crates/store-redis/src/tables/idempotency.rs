//! Idempotency records.

use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Tenant, Timestamp};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::tables::IdempotencyTable;

use super::RedisTables;
use super::transaction::idempotency_field;
use crate::codec::{MemberBuilder, RowDecoder, RowEncoder};
use crate::keys::{Index, Table};

impl IdempotencyTable for RedisTables {
    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<([u8; 32], String)>> {
        let Some(row) = self.overlay.read_row(Table::IdempotencyRecords, idempotency_field(tenant, key))?
        else {
            return Ok(None);
        };
        let mut row = RowDecoder::new(&row);
        let digest = row.bytes()?.try_into().map_err(Fault::damaged)?;
        Ok(Some((digest, row.text()?.into())))
    }

    fn write_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        reply: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        let field = idempotency_field(&idempotency.tenant, &idempotency.key);
        let row = RowEncoder::default().bytes(&idempotency.request_digest).text(reply).finish();
        self.overlay.add_member(
            Index::IdempotencyRecordsByAge,
            MemberBuilder::from_i64(now.micros()).push_bytes(&field).finish(),
        );
        self.overlay.write_row(Table::IdempotencyRecords, field, row);
        Ok(())
    }
}
