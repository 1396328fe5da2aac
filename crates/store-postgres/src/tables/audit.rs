//! Audit entries.

use pointsman_core::store::AuditEntry;
use pointsman_store::error::TableResult;
use pointsman_store::tables::AuditTable;

use super::PgTables;
use super::columns::replace_nul_chars;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl AuditTable for PgTables {
    fn insert_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()> {
        let AuditEntry { at, actor, action, target, detail } = entry.clone();
        let params = params![
            at.micros(),
            replace_nul_chars(actor),
            replace_nul_chars(action),
            replace_nul_chars(target),
            replace_nul_chars(detail)
        ];
        self.add_to_batch(SqlCommand::Query(
            query!("audit/insert_audit_entry", INT8, TEXT, TEXT, TEXT, TEXT),
            params,
        ));
        Ok(())
    }
}
