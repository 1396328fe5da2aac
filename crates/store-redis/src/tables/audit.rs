//! Audit entries.

use pointsman_core::store::AuditEntry;
use pointsman_store::columns::AuditEntryColumns;
use pointsman_store::error::TableResult;
use pointsman_store::tables::AuditTable;

use super::RedisTables;
use crate::cells::encode_row;
use crate::keys::Table;

impl AuditTable for RedisTables {
    fn insert_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()> {
        let number = self.assign_next_number(|store_state| &mut store_state.last_audit_entry_number);
        let row = encode_row(&AuditEntryColumns::from_entry(number, entry));
        self.overlay.write_row(Table::AuditEntries, number.to_string(), row);
        Ok(())
    }
}
