//! Audit entries.

use pointsman_core::store::AuditEntry;
use pointsman_store::tables::AuditTable;

use super::SqliteTables;
use crate::error::TableResult;

impl AuditTable for SqliteTables {
    fn insert_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()> {
        let sql =
            "INSERT INTO pointsman_audit_entry (at, by, action, what, detail) VALUES (?1, ?2, ?3, ?4, ?5)";
        let row = (entry.at.micros(), &entry.actor, &entry.action, &entry.target, &entry.detail);
        self.conn.prepare_cached(sql)?.execute(row)?;
        Ok(())
    }
}
