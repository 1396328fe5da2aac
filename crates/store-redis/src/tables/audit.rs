//! Audit entries.

use pointsman_core::store::AuditEntry;
use pointsman_store::error::TableResult;
use pointsman_store::tables::AuditTable;

use super::RedisTables;
use crate::keys::Table;
use crate::rows;

impl AuditTable for RedisTables {
    fn insert_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()> {
        let number = self.assign_next_number(|store_state| &mut store_state.last_audit_entry_number);
        self.overlay.write_row(Table::AuditEntries, number.to_string(), rows::encode_audit_entry(entry));
        Ok(())
    }
}
