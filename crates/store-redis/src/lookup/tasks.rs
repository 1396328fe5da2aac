//! Reads tasks, active and archived.

use std::borrow::Cow;
use std::ops::Bound;

use pointsman_core::store::MAX_LISTED_ATTEMPTS;
use pointsman_core::task::{AttemptRecord, Task};
use pointsman_core::{TaskId, TaskSeq};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{ActiveTaskRow, ArchivedTaskRow};
use pointsman_store::views::{
    ActiveTaskDetails, append_successful_attempt, is_halted_or_missing, task_from_active_row,
    task_from_archived_row,
};

use crate::codec::{MemberBuilder, decode_member_i64};
use crate::keys::{Index, TASKS_PER_BUCKET, Table, active_task_location, task_bucket_and_field};
use crate::overlay::{CacheFetch, ScanOrder, TransactionOverlay};
use crate::rows;

impl TransactionOverlay {
    pub(crate) fn read_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>> {
        let (table, field) = active_task_location(seq);
        let row = self.read_row(table, field)?;
        row.map(|row| rows::decode_active_task(seq, &row)?.into_row()).transpose()
    }

    pub(crate) fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        let (bucket, field) = task_bucket_and_field(seq);
        let row = self.read_row(Table::ArchivedTasks(bucket), field)?;
        row.map(|row| rows::decode_archived_task(seq, &row)?.into_row()).transpose()
    }

    /// Reads those of these tasks that are active, in one round trip.
    pub(crate) fn read_active_tasks(
        &mut self,
        seqs: impl IntoIterator<Item = TaskSeq>,
    ) -> TableResult<Vec<ActiveTaskRow>> {
        let seqs: Vec<TaskSeq> = seqs.into_iter().collect();
        self.prefetch_active_tasks(&seqs)?;
        let mut found = Vec::with_capacity(seqs.len());
        for seq in seqs {
            found.extend(self.read_active_task(seq)?);
        }
        Ok(found)
    }

    pub(crate) fn prefetch_active_tasks(&mut self, seqs: &[TaskSeq]) -> TableResult<()> {
        self.fetch_into_cache(seqs.iter().map(|seq| CacheFetch::from(active_task_location(*seq))).collect())
    }

    /// Reads the task numbers of the index members with a prefix: the number at `number_index` within each member.
    pub(crate) fn read_task_seqs_from_index(
        &mut self,
        index: &Index,
        prefix: &[u8],
        number_index: usize,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>> {
        let members = self.read_members_with_prefix(index, prefix, limit)?;
        members.iter().map(|member| decode_member_i64(member, number_index).map(TaskSeq)).collect()
    }

    /// Reads at most `limit` buckets of tasks below this one, highest first.
    pub(crate) fn read_bucket_numbers_below(
        &mut self,
        index: &Index,
        below: i64,
        limit: usize,
    ) -> TableResult<Vec<i64>> {
        let upper = MemberBuilder::from_i64(below).finish();
        let members = self.read_members(
            index,
            (Bound::Unbounded, Bound::Excluded(&upper)),
            ScanOrder::Descending,
            limit,
        )?;
        members.iter().map(|member| decode_member_i64(member, 0)).collect()
    }

    /// Reads all archived tasks of a bucket, sorted by number.
    pub(crate) fn read_archived_tasks_of_bucket(&mut self, bucket: i64) -> TableResult<Vec<ArchivedTaskRow>> {
        let rows = self.read_numbered_rows(Table::ArchivedTasks(bucket))?;
        let seq = |number| TaskSeq(bucket * TASKS_PER_BUCKET + number);
        rows.iter().map(|(number, row)| rows::decode_archived_task(seq(*number), row)?.into_row()).collect()
    }

    /// Reads the stored attempts, sorted by number.
    pub(crate) fn read_attempts(&mut self, seq: TaskSeq) -> TableResult<Vec<AttemptRecord>> {
        let rows = self.read_numbered_rows(Table::Attempts(seq))?;
        rows.iter().map(|(number, row)| rows::decode_attempt(seq, *number, row)?.into_record()).collect()
    }

    /// Reads an active or archived task with its attempts.
    pub(crate) fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>> {
        let found = match self.read_active_task(seq)? {
            Some(active) => Some(self.active_task_view(active)?),
            None => {
                self.read_archived_task(seq)?.map(|archived| self.archived_task_view(archived)).transpose()?
            }
        };
        let Some(mut task) = found else { return Ok(None) };
        let mut attempts = self.read_attempts(seq)?;
        attempts.drain(..attempts.len().saturating_sub(MAX_LISTED_ATTEMPTS));
        task.attempts = append_successful_attempt(&task, attempts);
        Ok(Some(task))
    }

    /// Reads the public id of an active or archived task.
    pub(crate) fn read_task_id(&mut self, seq: TaskSeq) -> TableResult<Option<TaskId>> {
        let task = match self.read_active_task(seq)? {
            Some(active) => Some(self.active_task_view(active)?),
            None => {
                self.read_archived_task(seq)?.map(|archived| self.archived_task_view(archived)).transpose()?
            }
        };
        Ok(task.map(|task| task.id))
    }

    /// Builds the public view of an active task, without its attempts.
    pub(crate) fn active_task_view(&mut self, active: ActiveTaskRow) -> TableResult<Task> {
        let (handler, queue) = self.read_queue_with_handler(active.queue)?;
        let event = match active.event {
            Some(id) => {
                let row = self.read_encoded_event(id)?;
                let row = row.ok_or_else(|| Fault::damaged(format!("a task's event {id} is gone")))?;
                let event = rows::decode_event(id, &row)?;
                Some((event.event_type.into(), event.key.map(Cow::into_owned)))
            }
            None => None,
        };
        let order = match active.order_number {
            Some(number) => self.read_order(number)?.map(|found| found.order.key.to_string()),
            None => None,
        };
        let mut details = ActiveTaskDetails::new((handler, queue.tenant), &queue.subject, event, order);
        if is_halted_or_missing(&active) {
            details.last_attempt_ended_at =
                self.read_attempts(active.seq)?.iter().map(|attempt| attempt.ended_at).max();
        }
        task_from_active_row(active, details, self.read_task_id_namespace()?)
    }

    /// Builds the public view of an archived task.
    pub(crate) fn archived_task_view(&mut self, archived: ArchivedTaskRow) -> TableResult<Task> {
        let (handler, queue) = self.read_queue_with_handler(archived.queue)?;
        task_from_archived_row(archived, handler, queue.tenant, self.read_task_id_namespace()?)
    }
}

/// Returns the bucket of a task.
pub(crate) fn bucket_of_task(seq: TaskSeq) -> i64 {
    seq.0.div_euclid(TASKS_PER_BUCKET)
}
