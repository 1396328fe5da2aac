//! Copies tasks, active and archived, by number.

use std::ops::Bound;

use pointsman_core::TaskSeq;
use pointsman_store::columns::Columns as _;
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::store_copy::{CopyCursor, CopyPage, CursorValue};

use super::RedisStoreCopy;
use crate::codec::{MemberBuilder, decode_member_i64};
use crate::connection::{CommandArgs, args};
use crate::keys::{Index, TASKS_PER_BUCKET, Table, task_bucket_and_field};
use crate::lookup::{bucket_of_task, parse_number};
use crate::overlay::{Bytes, ScanOrder, decode_list, decode_optional_bytes, decode_strings};
use crate::rows;

/// Number of buckets per fetch.
const BUCKETS_PER_FETCH: usize = 256;
/// Number of tasks per batch: rows of tasks may be large.
const TASKS_PER_BATCH: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskTable {
    Active,
    Archived,
}

impl TaskTable {
    fn index_of_buckets(self) -> Index {
        match self {
            Self::Active => Index::ActiveTaskBuckets,
            Self::Archived => Index::ArchivedTaskBuckets,
        }
    }

    fn bucket_table(self, bucket: i64) -> Table {
        match self {
            Self::Active => Table::ActiveTasks(bucket),
            Self::Archived => Table::ArchivedTasks(bucket),
        }
    }
}

impl RedisStoreCopy {
    pub(super) fn count_tasks(&mut self, task_table: TaskTable) -> TableResult<u64> {
        let mut count = 0;
        let mut from = i64::MIN;
        loop {
            let buckets = self.read_bucket_numbers_from(task_table, from)?;
            let Some(last) = buckets.last() else { return Ok(count) };
            from = last + 1;
            let length =
                |bucket: &i64| args!["HLEN", self.keys().table_key(&task_table.bucket_table(*bucket))];
            count += self.sum_replies(&buckets.iter().map(length).collect::<Vec<CommandArgs>>())?;
        }
    }

    pub(super) fn read_page_of_tasks(
        &mut self,
        task_table: TaskTable,
        after: Option<&CopyCursor>,
    ) -> TableResult<CopyPage> {
        let after = after.and_then(|cursor| cursor.first()).and_then(CursorValue::as_number);
        let from = after.map_or(TaskSeq(0), |seq| TaskSeq(seq + 1));
        let mut page = CopyPage::default();
        self.for_each_task_batch(task_table, from, &mut |store, batch| {
            for (seq, row) in batch.iter().zip(store.fetch_task_rows(task_table, batch)?) {
                let row = match task_table {
                    TaskTable::Active => rows::decode_active_task(*seq, &row)?.into_owned().into(),
                    TaskTable::Archived => rows::decode_archived_task(*seq, &row)?.into_owned().into(),
                };
                page.push_row(vec![CursorValue::Number(seq.0)], row);
            }
            Ok(!page.is_full())
        })?;
        Ok(page)
    }

    /// Calls `visit` with the numbers of all tasks of a table from `from` on, in order and in batches of one bucket, as
    /// long as `visit` returns true; returns its last result.
    pub(super) fn for_each_task_batch(
        &mut self,
        task_table: TaskTable,
        from: TaskSeq,
        visit: &mut dyn FnMut(&mut Self, &[TaskSeq]) -> TableResult<bool>,
    ) -> TableResult<bool> {
        let mut next = bucket_of_task(from);
        loop {
            let buckets = self.read_bucket_numbers_from(task_table, next)?;
            let Some(last) = buckets.last() else { return Ok(true) };
            next = last + 1;
            for bucket in buckets {
                let fields = decode_strings(
                    self.execute(args!["HKEYS", self.keys().table_key(&task_table.bucket_table(bucket))])?,
                )?;
                let number = |field: &Vec<u8>| Ok(TaskSeq(bucket * TASKS_PER_BUCKET + parse_number(field)?));
                let mut seqs: Vec<TaskSeq> = fields.iter().map(number).collect::<TableResult<_>>()?;
                seqs.retain(|seq| *seq >= from);
                seqs.sort_unstable();
                for batch in seqs.chunks(TASKS_PER_BATCH) {
                    if !visit(self, batch)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    fn read_bucket_numbers_from(&mut self, task_table: TaskTable, from: i64) -> TableResult<Vec<i64>> {
        let lower = MemberBuilder::from_i64(from).finish();
        let bounds = (Bound::Included(&*lower), Bound::Unbounded);
        let members = self.overlay().read_members(
            &task_table.index_of_buckets(),
            bounds,
            ScanOrder::Ascending,
            BUCKETS_PER_FETCH,
        )?;
        members.iter().map(|member| decode_member_i64(member, 0)).collect()
    }

    /// Reads the rows of tasks of one bucket.
    fn fetch_task_rows(&mut self, task_table: TaskTable, tasks: &[TaskSeq]) -> TableResult<Vec<Bytes>> {
        let Some(first) = tasks.first() else { return Ok(vec![]) };
        let mut args =
            args!["HMGET", self.keys().table_key(&task_table.bucket_table(bucket_of_task(*first)))];
        args.extend(tasks.iter().map(|seq| task_bucket_and_field(*seq).1.into_vec()));
        let row = |value| decode_optional_bytes(value)?.ok_or_else(|| Fault::damaged("a task that is gone"));
        decode_list(self.execute(args)?)?.into_iter().map(row).collect()
    }
}
