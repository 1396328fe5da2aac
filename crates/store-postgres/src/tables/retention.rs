//! Retention. Only expiry positions advance here; `partitions.rs` drops the partitions below them.

use pointsman_core::{EventId, Timestamp};
use pointsman_store::error::Result;

use super::PgTables;
use crate::rows::read_column;
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

/// Archived tasks checked in one transaction: emits wait for it meanwhile.
const MAX_TASKS_CHECKED: i64 = 20_000;
/// Rows of small tables deleted in one transaction.
const MAX_ROWS_DELETED: i64 = 500;

impl PgTables {
    /// Expires events up to this one; events that unfinished tasks need stay readable to those. Returns how many more
    /// have expired.
    pub(super) fn expire_events(&self, expired_up_to: EventId) -> Result<u64> {
        let query = query!("write/event_number", INT8);
        let number: Option<i64> =
            self.query_optional(query, params![expired_up_to.as_i64()], |row| read_column(row, 0))?;
        let before = self.commit_state.borrow().expired_event_number;
        let Some(number) = number.filter(|number| *number > before) else { return Ok(0) };
        self.commit_state.borrow_mut().expired_event_number = number;
        self.add_to_batch(SqlCommand::Query(
            query!("write/delete_old_sparse_index", INT8),
            params![expired_up_to.as_i64()],
        ));
        Ok((number - before) as u64)
    }

    /// Expires archived tasks. Tasks that must stay, although later ones expire, get new archive numbers.
    pub(super) fn expire_archived_tasks(&self, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
        let (hidden, archived) = {
            let commit_state = self.commit_state.borrow();
            (commit_state.expired_archive_number, commit_state.last_archive_number)
        };
        let params = params![hidden, hidden + MAX_TASKS_CHECKED, before.micros()];
        let query = query!("write/expired_archived_tasks", INT8, INT8, INT8);
        let rows = self.query_all(query, params, |row| {
            Ok((read_column::<i64>(row, 0)?, read_column::<bool>(row, 1)?))
        })?;
        let surplus = usize::try_from(surplus).unwrap_or(0);
        let is_expired = |(index, (_, old)): &(usize, &(i64, bool))| *index < surplus || *old;
        let beyond = hidden + MAX_TASKS_CHECKED < archived;
        let Some(last) = rows.iter().enumerate().filter(is_expired).map(|(index, _)| index).next_back()
        else {
            // If all tasks of this range were retried, nothing expires here, but the range after it may.
            let is_skipped = rows.is_empty() && beyond;
            if is_skipped {
                self.commit_state.borrow_mut().expired_archive_number += MAX_TASKS_CHECKED;
            }
            return Ok((0, is_skipped));
        };
        let is_skipped = rows.iter().take(last + 1).enumerate();
        let kept: Vec<i64> = is_skipped.filter(|row| !is_expired(row)).map(|(_, (n, _))| *n).collect();
        let expired = last + 1 - kept.len();
        let more = last + 1 == rows.len() && beyond;
        {
            let mut commit_state = self.commit_state.borrow_mut();
            commit_state.expired_archive_number = rows.get(last).map_or(hidden, |(n, _)| *n);
            commit_state.last_archive_number = archived + kept.len() as i64;
        }
        if !kept.is_empty() {
            let new_numbers: Vec<i64> = (archived + 1..).take(kept.len()).collect();
            self.add_missing_partitions(None, true)?;
            let query = query!("write/renumber_archived_tasks", INT8_ARRAY, INT8_ARRAY);
            self.query_rows(query, params![kept, new_numbers])?;
        }
        Ok((expired as u64, more))
    }

    pub(super) fn delete_old_idempotency_records(&self, before: Timestamp) -> Result<bool> {
        let expired = self.query_rows(
            query!("write/delete_old_idempotency_records", INT8, INT8),
            params![before.micros(), MAX_ROWS_DELETED],
        )?;
        Ok(expired.len() as i64 == MAX_ROWS_DELETED)
    }

    pub(super) fn delete_old_ended_orders(&self, before: Timestamp) -> Result<bool> {
        let expired = self.query_rows(
            query!("write/delete_old_ended_orders", INT8, INT8),
            params![before.micros(), MAX_ROWS_DELETED],
        )?;
        Ok(expired.len() as i64 == MAX_ROWS_DELETED)
    }

    pub(super) fn delete_old_fires_nodes_and_audit(&self, before: Timestamp) -> Result<bool> {
        let mut more = false;
        for query in [
            query!("write/delete_old_fires", INT8, INT8),
            query!("write/delete_old_nodes", INT8, INT8),
            query!("write/delete_old_audit_entries", INT8, INT8),
        ] {
            more |= self.query_rows(query, params![before.micros(), MAX_ROWS_DELETED])?.len() as i64
                == MAX_ROWS_DELETED;
        }
        Ok(more)
    }
}
