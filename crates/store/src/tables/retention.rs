//! Retention, which spans several tables.

use pointsman_core::{EventId, Timestamp};

use crate::error::TableResult;

/// Retention: deletes expired rows of several tables, a limited number in each transaction.
pub trait RetentionTables {
    /// Deletes some expired events after `after` that no unfinished task needs. Returns how many, and after which event
    /// to continue if there may be more.
    fn delete_expired_events(
        &mut self,
        after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)>;

    /// Lists events after `after`, up to `up_to`, that unfinished tasks need, in order of id, and the event after which
    /// to continue if there may be more.
    fn list_events_of_unfinished_tasks(
        &mut self,
        after: EventId,
        up_to: EventId,
        limit: usize,
    ) -> TableResult<(Vec<EventId>, Option<EventId>)>;

    /// Deletes some archived tasks with their attempts and logs: the `surplus` oldest ones, and those that ended before
    /// `before`. Returns how many, and whether there may be more.
    fn delete_expired_archived_tasks(&mut self, surplus: i64, before: Timestamp) -> TableResult<(u64, bool)>;

    /// Deletes some idempotency records older than `before`; returns whether there may be more.
    fn delete_expired_idempotency_records(&mut self, before: Timestamp) -> TableResult<bool>;

    /// Deletes some outcomes of orders that ended before `before`; returns whether there may be more.
    fn delete_expired_ended_orders(&mut self, before: Timestamp) -> TableResult<bool>;

    /// Deletes some rows older than `before` of the fire ledger, of former nodes and of the audit; returns whether
    /// there may be more.
    fn delete_expired_fires_nodes_audit(&mut self, before: Timestamp) -> TableResult<bool>;
}
