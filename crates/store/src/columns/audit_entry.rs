//! Audit entries.

use std::borrow::Cow;

use pointsman_core::Timestamp;
use pointsman_core::store::AuditEntry;

use super::columns;

columns! {
    /// The columns of an audit entry.
    AuditEntryColumns<'a> key(n) {
        n: i64,
        at: i64,
        by: Cow<'a, str>,
        action: Cow<'a, str>,
        /// The name or id of the handler, task, order or the like that was changed.
        what: Cow<'a, str>,
        detail: Cow<'a, str>,
    }
}

impl<'a> AuditEntryColumns<'a> {
    pub fn from_entry(number: i64, entry: &'a AuditEntry) -> Self {
        let AuditEntry { at, actor, action, target, detail } = entry;
        Self {
            n: number,
            at: at.micros(),
            by: actor.into(),
            action: action.into(),
            what: target.into(),
            detail: detail.into(),
        }
    }

    pub fn into_entry(self) -> AuditEntry {
        AuditEntry {
            at: Timestamp::from_micros(self.at),
            actor: self.by.into(),
            action: self.action.into(),
            target: self.what.into(),
            detail: self.detail.into(),
        }
    }
}
