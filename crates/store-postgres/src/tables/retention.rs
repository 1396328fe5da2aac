//! Retention: advances the expiry positions of the journal and the history, whose expired partitions `expired_partitions.rs`
//! drops later; deletes expired rows of other tables.

use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::TableResult;
use pointsman_store::tables::RetentionTables;

use super::PgTables;
use super::commit_version::CommitVersionRow;
use crate::rows::read_column;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

/// Limit of events that one transaction visits to find those that unfinished tasks need: all other expired events are
/// in the journal too, until their partition is dropped.
const MAX_EVENTS_VISITED: usize = 5000;

/// Limit of archived tasks checked in one transaction, because emits wait for that transaction.
const MAX_ARCHIVED_TASKS_CHECKED: i64 = 20_000;

/// Limit of rows that one statement deletes from a small table.
const MAX_ROWS_DELETED: i64 = 500;

impl RetentionTables for PgTables {
    /// Expires events up to this one; unfinished tasks can still read the events that they need. Returns how many more
    /// events have expired.
    fn delete_expired_events(
        &mut self,
        _after: EventId,
        expired_up_to: EventId,
    ) -> TableResult<(u64, Option<EventId>)> {
        let query = query!("journal/read_event_number", INT8);
        let number: Option<i64> =
            self.query_and_decode_first(query, params![expired_up_to.as_i64()], |row| read_column(row, 0))?;
        let before = self.commit_version_row.expired_event_number;
        let Some(number) = number.filter(|number| *number > before) else { return Ok((0, None)) };
        self.commit_version_row.expired_event_number = number;
        self.add_to_batch(SqlCommand::Query(
            query!("journal/delete_expired_sparse_index_entries", INT8),
            params![expired_up_to.as_i64()],
        ));
        Ok(((number - before) as u64, None))
    }

    fn list_events_of_unfinished_tasks(
        &mut self,
        after: EventId,
        up_to: EventId,
        limit: usize,
    ) -> TableResult<(Vec<EventId>, Option<EventId>)> {
        let params = params![after.as_i64(), up_to.as_i64(), MAX_EVENTS_VISITED as i64];
        let visited = self.query_and_decode_rows(
            query!("journal/list_events_of_unfinished_tasks", INT8, INT8, INT8),
            params,
            |row| Ok((EventId::from_i64(read_column(row, 0)?), read_column::<bool>(row, 1)?)),
        )?;
        let last_visited = visited.last().filter(|_| visited.len() >= MAX_EVENTS_VISITED).map(|(id, _)| *id);
        let mut in_use: Vec<EventId> =
            visited.iter().filter(|(_, is_needed)| *is_needed).map(|(id, _)| *id).collect();
        let has_more = in_use.len() > limit;
        in_use.truncate(limit);
        let continue_after = if has_more { in_use.last().copied() } else { last_visited };
        Ok((in_use, continue_after))
    }

    /// Expires archived tasks: the first `surplus` ones, and those that ended before a time. A task that stays although
    /// a later one expires gets a new archive number. Returns how many expired, and whether more may follow.
    fn delete_expired_archived_tasks(&mut self, surplus: i64, before: Timestamp) -> TableResult<(u64, bool)> {
        let CommitVersionRow { expired_archive_number, last_archive_number, .. } = self.commit_version_row;
        let params = params![
            expired_archive_number,
            expired_archive_number + MAX_ARCHIVED_TASKS_CHECKED,
            before.micros()
        ];
        let query = query!("history/list_archive_numbers_with_expiry", INT8, INT8, INT8);
        let rows = self.query_and_decode_rows(query, params, |row| {
            Ok((read_column::<i64>(row, 0)?, read_column::<bool>(row, 1)?))
        })?;
        let surplus = usize::try_from(surplus).unwrap_or(0);
        let is_expired = |(index, (_, is_too_old)): &(usize, &(i64, bool))| *index < surplus || *is_too_old;
        let has_rows_beyond = expired_archive_number + MAX_ARCHIVED_TASKS_CHECKED < last_archive_number;
        let Some(last) = rows.iter().enumerate().filter(is_expired).map(|(index, _)| index).next_back()
        else {
            // If all tasks of this range were retried, nothing expires here, but the range after it may.
            let is_range_empty = rows.is_empty() && has_rows_beyond;
            if is_range_empty {
                self.commit_version_row.expired_archive_number += MAX_ARCHIVED_TASKS_CHECKED;
            }
            return Ok((0, is_range_empty));
        };
        let rows_up_to_last = rows.iter().take(last + 1).enumerate();
        let kept_numbers: Vec<i64> =
            rows_up_to_last.filter(|row| !is_expired(row)).map(|(_, (n, _))| *n).collect();
        let expired_count = last + 1 - kept_numbers.len();
        let has_more = last + 1 == rows.len() && has_rows_beyond;
        self.commit_version_row.expired_archive_number =
            rows.get(last).map_or(expired_archive_number, |(n, _)| *n);
        self.commit_version_row.last_archive_number = last_archive_number + kept_numbers.len() as i64;
        if !kept_numbers.is_empty() {
            let new_numbers: Vec<i64> = (last_archive_number + 1..).take(kept_numbers.len()).collect();
            self.add_missing_partitions(None, true)?;
            let query = query!("history/update_archive_numbers", INT8_ARRAY, INT8_ARRAY);
            self.query_rows(query, params![kept_numbers, new_numbers])?;
        }
        Ok((expired_count as u64, has_more))
    }

    fn delete_expired_idempotency_records(&mut self, before: Timestamp) -> TableResult<bool> {
        let expired = self.query_rows(
            query!("idempotency/delete_expired_idempotency_records", INT8, INT8),
            params![before.micros(), MAX_ROWS_DELETED],
        )?;
        Ok(expired.len() as i64 == MAX_ROWS_DELETED)
    }

    fn delete_expired_ended_orders(&mut self, before: Timestamp) -> TableResult<bool> {
        let expired = self.query_rows(
            query!("ended_order/delete_expired_ended_orders", INT8, INT8),
            params![before.micros(), MAX_ROWS_DELETED],
        )?;
        Ok(expired.len() as i64 == MAX_ROWS_DELETED)
    }

    fn delete_expired_fires_nodes_audit(&mut self, before: Timestamp) -> TableResult<bool> {
        let mut has_more = false;
        for query in [
            query!("fire/delete_expired_fires", INT8, INT8),
            query!("node/delete_expired_nodes", INT8, INT8),
            query!("audit/delete_expired_audit_entries", INT8, INT8),
        ] {
            has_more |= self.query_rows(query, params![before.micros(), MAX_ROWS_DELETED])?.len() as i64
                == MAX_ROWS_DELETED;
        }
        Ok(has_more)
    }
}
