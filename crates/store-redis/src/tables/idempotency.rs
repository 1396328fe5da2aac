//! Idempotency records.

use pointsman_core::store::IdempotencyKey;
use pointsman_core::{Tenant, Timestamp};
use pointsman_store::columns::IdempotencyRecordColumns;
use pointsman_store::error::TableResult;
use pointsman_store::tables::IdempotencyTable;

use super::RedisTables;
use crate::cells::encode_row;
use crate::codec::MemberBuilder;
use crate::keys::{Index, Table};
use crate::overlay::Bytes;
use crate::rows::{self, decode_row_at};

impl IdempotencyTable for RedisTables {
    fn read_idempotency_record(
        &mut self,
        tenant: &Tenant,
        key: &str,
    ) -> TableResult<Option<([u8; 32], String)>> {
        let field = rows::encode_key_field(&[tenant.as_str(), key]);
        let row = self.overlay.read_row(Table::IdempotencyRecords, &field)?;
        let decode = |row: Bytes| {
            decode_row_at::<IdempotencyRecordColumns<'_>>(&field, &row)?.into_digest_and_response()
        };
        row.map(decode).transpose()
    }

    fn write_idempotency_record(
        &mut self,
        idempotency: &IdempotencyKey,
        reply: &str,
        now: Timestamp,
    ) -> TableResult<()> {
        self.write_idempotency_record_columns(&IdempotencyRecordColumns::from_record(
            idempotency,
            reply,
            now,
        ));
        Ok(())
    }
}

impl RedisTables {
    pub(crate) fn write_idempotency_record_columns(&mut self, record: &IdempotencyRecordColumns<'_>) {
        let field = rows::encode_key_field(&[&record.tenant, &record.key]);
        self.overlay.add_member(
            Index::IdempotencyRecordsByAge,
            MemberBuilder::from_i64(record.at).push_bytes(&field).finish(),
        );
        self.overlay.write_row(Table::IdempotencyRecords, field, encode_row(record));
    }
}
