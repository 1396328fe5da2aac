//! JSON bodies of the audit log.

use pointsman_core::store::AuditEntry;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The audit log, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The entries, newest first.
    pub entries: Vec<AuditEntryBody>,
    /// Pass it as `before` to read the next page; null at the end.
    pub next: Option<i64>,
}

/// An audit entry: who changed what, when and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntryBody {
    /// The entry's number; a later entry has a larger one.
    pub number: i64,
    /// When the change was made.
    pub time: String,
    /// The name of the token.
    #[serde(rename = "by")]
    pub actor: String,
    /// `pause`, `unpause`, `block`, `unblock`, `retry`, `cancel`, `redrive`, `stop_redrive`, `adopt` or `run`.
    pub action: String,
    /// The handler, task, order and so on that was changed.
    pub target: String,
    /// The reason, or the extent of the change.
    pub detail: String,
}

impl From<&(i64, AuditEntry)> for AuditEntryBody {
    fn from((number, entry): &(i64, AuditEntry)) -> Self {
        Self {
            number: *number,
            time: entry.at.to_string(),
            actor: entry.actor.clone(),
            action: entry.action.clone(),
            target: entry.target.clone(),
            detail: entry.detail.clone(),
        }
    }
}
