//! The table of audit entries.

use pointsman_core::store::AuditEntry;

use crate::error::TableResult;

/// The audit log.
pub trait AuditTable {
    fn insert_audit_entry(&mut self, entry: &AuditEntry) -> TableResult<()>;
}
