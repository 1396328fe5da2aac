//! Retention: deletes old events from the journal and old tasks from the history.
//!
//! The journal has one low-water mark. Observers see nothing at or below it; rows are deleted once no unfinished task
//! needs them. Work is done in batches, so that emits do not wait long.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::store::PruneReport;
use pointsman_core::{EventId, Timestamp};

use crate::error::TableResult;
use crate::tables::Tables;
use crate::writer::Txn;

/// Precision, in events, with which an event is found by its number.
const EVENT_NUMBER_PRECISION: i64 = 1000;
/// Retention of idempotency records and of the ids of ended orders.
const IDEMPOTENCY_AND_ORDER_ID_RETENTION: Duration = Duration::from_secs(24 * 3600);

impl<T: Tables> Txn<'_, T> {
    /// Deletes a batch of expired rows of each kind.
    pub(crate) fn prune_store_batch(
        &mut self,
        journal: Retention,
        history: Retention,
        object_retention: Duration,
        now: Timestamp,
    ) -> TableResult<PruneReport> {
        self.advance_low_water_mark(journal, now)?;
        let (events, more_events) = self.delete_expired_events()?;
        let (tasks, more_tasks) = self.delete_expired_archived_tasks(history, now)?;
        let more_records =
            self.tables.delete_expired_idempotency_records(now.minus(IDEMPOTENCY_AND_ORDER_ID_RETENTION))?;
        let more_orders =
            self.tables.delete_expired_ended_orders(now.minus(IDEMPOTENCY_AND_ORDER_ID_RETENTION))?;
        let more_ledger_rows = self.tables.delete_expired_fires_nodes_audit(now.minus(history.max_age))?;
        // While expired events remain, a round over the objects would visit events that no task needs.
        let (objects, more_objects) =
            if more_events { (0, false) } else { self.prune_objects(object_retention, now)? };
        let has_more =
            more_events || more_tasks || more_records || more_orders || more_ledger_rows || more_objects;
        Ok(PruneReport {
            deleted_event_count: events,
            deleted_task_count: tasks,
            deleted_object_count: objects,
            has_more,
        })
    }

    /// Deletes expired events that no unfinished task needs. `pruned_up_to` is the cursor of this round, so that events
    /// kept for their tasks are visited once per round.
    fn delete_expired_events(&mut self) -> TableResult<(u64, bool)> {
        let (deleted, reached) =
            self.tables.delete_expired_events(self.state.pruned_up_to, self.state.counters.expired_up_to)?;
        self.state.pruned_up_to = reached.unwrap_or(EventId::ZERO);
        Ok((deleted, reached.is_some()))
    }

    /// Deletes archived tasks beyond the maximum count or age.
    fn delete_expired_archived_tasks(
        &mut self,
        retention: Retention,
        now: Timestamp,
    ) -> TableResult<(u64, bool)> {
        let surplus = count_above_retention(self.state.counters.archived_task_count, retention);
        let (deleted, has_more) =
            self.tables.delete_expired_archived_tasks(surplus, now.minus(retention.max_age))?;
        self.state.counters.archived_task_count -= deleted as i64;
        Ok((deleted, has_more))
    }

    /// Moves the low-water mark of the journal up to the last event that exceeds the maximum age or count.
    fn advance_low_water_mark(&mut self, retention: Retention, now: Timestamp) -> TableResult<()> {
        let expired_by_age =
            EventId::from_i64(now.minus(retention.max_age).millis().max(0).saturating_mul(1000));
        let mut low_water_mark = expired_by_age.min(self.state.event_id_generator.last_id());
        let surplus = count_above_retention(self.state.counters.journaled_event_count, retention);
        if surplus >= EVENT_NUMBER_PRECISION {
            low_water_mark =
                low_water_mark.max(self.tables.find_event_near_number(surplus)?.unwrap_or(EventId::ZERO));
        }
        // The mark is the id of an event, so that a cursor after which nothing has expired stays valid.
        let low_water_mark = self.tables.find_last_event_up_to(low_water_mark)?;
        self.state.counters.expired_up_to = self.state.counters.expired_up_to.max(low_water_mark);
        Ok(())
    }
}

/// Returns by how many rows a count exceeds the retained number.
fn count_above_retention(count: i64, retention: Retention) -> i64 {
    count - i64::try_from(retention.max_count).unwrap_or(i64::MAX)
}
