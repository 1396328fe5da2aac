//! Audit entries.

use pointsman_core::store::AuditEntry;
use pointsman_store::columns::AuditEntryColumns;
use pointsman_store::error::TableResult;
use pointsman_store::tables::AuditTable;

use super::PgTables;
use crate::session::query;
use crate::writer_connection::SqlCommand;

impl AuditTable for PgTables {
    fn insert_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()> {
        let query = query!("audit/insert_audit_entry", ..AuditEntryColumns);
        // The database numbers the entries.
        let row = AuditEntryColumns::from_entry(0, entry);
        self.add_to_batch(SqlCommand::query_with_rows(query, vec![], [row]));
        Ok(())
    }
}
