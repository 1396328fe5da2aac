//! Reads task rows newest first, in chunks.

use std::ops::Bound;

use pointsman_core::TaskSeq;
use pointsman_store::error::TableResult;

use super::ChunkSize;
use crate::codec::{MemberBuilder, decode_member_i64};
use crate::keys::{Index, TASKS_PER_BUCKET, Table, task_bucket_and_field};
use crate::lookup::bucket_of_task;
use crate::overlay::{Bytes, CacheFetch, ScanOrder, TransactionOverlay};

/// Maximum number of whole buckets that are fetched together.
const MAX_BUCKETS_PER_FETCH: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TaskTable {
    Active,
    Archived,
}

impl TaskTable {
    fn bucket_table(self, bucket: i64) -> Table {
        match self {
            Self::Active => Table::ActiveTasks(bucket),
            Self::Archived => Table::ArchivedTasks(bucket),
        }
    }

    fn index_of_buckets(self) -> Index {
        match self {
            Self::Active => Index::ActiveTaskBuckets,
            Self::Archived => Index::ArchivedTaskBuckets,
        }
    }
}

/// Where task numbers are read from.
#[derive(Debug)]
pub(super) enum TaskNumberSource {
    /// All buckets of the table.
    AllBuckets,
    /// Indexes whose members are task numbers.
    Indexes(Vec<Index>),
}

/// Reads the rows of active or of archived tasks in chunks, newest first.
#[derive(Debug)]
pub(super) struct NewestFirstTaskReader {
    table: TaskTable,
    source: TaskNumberSource,
    /// The next rows have numbers below this one: all others have been read.
    unread_below_number: i64,
    chunk: ChunkSize,
    is_exhausted: bool,
}

impl NewestFirstTaskReader {
    pub(super) fn new(table: TaskTable, source: TaskNumberSource, below: i64, limit: usize) -> Self {
        // One more than requested shows whether there is a next page.
        Self {
            table,
            source,
            unread_below_number: below,
            chunk: ChunkSize::for_limit(limit.saturating_add(1)),
            is_exhausted: false,
        }
    }

    pub(super) fn table(&self) -> TaskTable {
        self.table
    }

    /// Returns whether all rows have been read.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// Reads the next rows. There may be more even if these are empty.
    pub(super) fn read_next_chunk(
        &mut self,
        overlay: &mut TransactionOverlay,
    ) -> TableResult<Vec<(TaskSeq, Bytes)>> {
        let (numbers, min_count) = match &self.source {
            TaskNumberSource::AllBuckets => (self.read_numbers_from_buckets(overlay)?, 1),
            TaskNumberSource::Indexes(indexes) => {
                (self.read_numbers_from_indexes(overlay, indexes)?, self.chunk.rows())
            }
        };
        self.is_exhausted = numbers.len() < min_count;
        self.unread_below_number = numbers.last().copied().unwrap_or(self.unread_below_number);
        let found = self.read_rows(overlay, &numbers)?;
        self.chunk = self.chunk.next_after(found.iter().map(|(_, row)| row.len()).sum());
        Ok(found)
    }

    /// Reads the existing rows of these numbers.
    fn read_rows(
        &self,
        overlay: &mut TransactionOverlay,
        numbers: &[i64],
    ) -> TableResult<Vec<(TaskSeq, Bytes)>> {
        let row_location = |number: &i64| {
            let (bucket, field) = task_bucket_and_field(TaskSeq(*number));
            (self.table.bucket_table(bucket), field)
        };
        let fetches = numbers.iter().map(row_location).map(|(table, field)| CacheFetch::Row(table, field));
        overlay.fetch_into_cache(fetches.collect())?;
        let mut rows = Vec::new();
        for number in numbers {
            let (table, field) = row_location(number);
            rows.extend(overlay.read_row(table, field)?.map(|row| (TaskSeq(*number), row)));
        }
        Ok(rows)
    }

    /// Reads the highest numbers of all indexes.
    fn read_numbers_from_indexes(
        &self,
        overlay: &mut TransactionOverlay,
        indexes: &[Index],
    ) -> TableResult<Vec<i64>> {
        let below = MemberBuilder::from_i64(self.unread_below_number).finish();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*below));
        let mut numbers = Vec::new();
        for index in indexes {
            let members = overlay.read_members(index, bounds, ScanOrder::Descending, self.chunk.rows())?;
            for member in members {
                numbers.push(decode_member_i64(&member, 0)?);
            }
        }
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.truncate(self.chunk.rows());
        Ok(numbers)
    }

    /// Returns the next candidate numbers: a part of a bucket, or several whole buckets.
    fn read_numbers_from_buckets(&self, overlay: &mut TransactionOverlay) -> TableResult<Vec<i64>> {
        let mut below = self.unread_below_number;
        if below.rem_euclid(TASKS_PER_BUCKET) == 0 {
            let limit = if self.chunk.is_max() { MAX_BUCKETS_PER_FETCH } else { 1 };
            let buckets = overlay.read_bucket_numbers_below(
                &self.table.index_of_buckets(),
                below.div_euclid(TASKS_PER_BUCKET),
                limit,
            )?;
            if self.chunk.is_max() {
                let tables = buckets.iter().map(|bucket| CacheFetch::Table(self.table.bucket_table(*bucket)));
                overlay.fetch_into_cache(tables.collect())?;
                return Ok(buckets.iter().flat_map(|bucket| task_numbers_in_bucket(*bucket)).collect());
            }
            let Some(bucket) = buckets.first() else { return Ok(vec![]) };
            below = (bucket + 1) * TASKS_PER_BUCKET;
        }
        let first = bucket_of_task(TaskSeq(below - 1)) * TASKS_PER_BUCKET;
        let low = first.max(below.saturating_sub(self.chunk.rows() as i64));
        Ok((low..below).rev().collect())
    }
}

/// Returns all numbers of a bucket, highest first.
fn task_numbers_in_bucket(bucket: i64) -> impl Iterator<Item = i64> {
    let first = bucket * TASKS_PER_BUCKET;
    (first..first + TASKS_PER_BUCKET).rev()
}
