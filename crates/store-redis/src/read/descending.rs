//! Rows of tasks, the newest first, fetched as they are wanted.

use std::ops::Bound;

use pointsman_core::TaskSeq;
use pointsman_store::error::Result;

use super::Chunk;
use crate::codec::{MemberBuilder, decode_member_i64};
use crate::keys::{Index, TASKS_PER_BUCKET, Table, bucket_and_field};
use crate::lookup::bucket_of_task;
use crate::overlay::{Bytes, CacheFetch, TransactionOverlay, Way};

/// So many whole buckets are looked at together.
const BUCKETS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unfinished,
    Ended,
}

impl Kind {
    fn table(self, bucket: i64) -> Table {
        match self {
            Self::Unfinished => Table::ActiveTasks(bucket),
            Self::Ended => Table::ArchivedTasks(bucket),
        }
    }

    fn buckets(self) -> Index {
        match self {
            Self::Unfinished => Index::ActiveTaskBuckets,
            Self::Ended => Index::ArchivedTaskBuckets,
        }
    }
}

/// Where the numbers of tasks are found.
#[derive(Debug)]
pub(super) enum Place {
    /// In all buckets.
    Everywhere,
    /// In these indexes, whose members are numbers.
    Indexes(Vec<Index>),
}

#[derive(Debug)]
pub(super) struct Descending {
    kind: Kind,
    place: Place,
    /// All from this number on have been looked at.
    below: i64,
    chunk: Chunk,
    done: bool,
}

impl Descending {
    pub(super) fn new(kind: Kind, place: Place, below: i64, limit: usize) -> Self {
        // One more than is wanted tells whether there is more.
        Self { kind, place, below, chunk: Chunk::of(limit.saturating_add(1)), done: false }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// There are no more.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The next rows. There may be more even if these are none.
    pub(super) fn next(&mut self, overlay: &TransactionOverlay) -> Result<Vec<Bytes>> {
        let (numbers, least) = match &self.place {
            Place::Everywhere => (self.stretch(overlay)?, 1),
            Place::Indexes(indexes) => (self.listed(overlay, indexes)?, self.chunk.size()),
        };
        self.done = numbers.len() < least;
        self.below = numbers.last().copied().unwrap_or(self.below);
        let found = self.rows(overlay, &numbers)?;
        self.chunk = self.chunk.after(found.iter().map(|row| row.len()).sum());
        Ok(found)
    }

    /// The rows that there are of these.
    fn rows(&self, overlay: &TransactionOverlay, numbers: &[i64]) -> Result<Vec<Bytes>> {
        let place = |number: &i64| {
            let (bucket, field) = bucket_and_field(TaskSeq(*number));
            (self.kind.table(bucket), field)
        };
        let questions = numbers.iter().map(place).map(|(table, field)| CacheFetch::Row(table, field));
        overlay.fetch(questions.collect())?;
        let mut rows = Vec::new();
        for (table, field) in numbers.iter().map(place) {
            rows.extend(overlay.read_row(table, field)?);
        }
        Ok(rows)
    }

    /// The greatest numbers of all that stand in indexes.
    fn listed(&self, overlay: &TransactionOverlay, indexes: &[Index]) -> Result<Vec<i64>> {
        let below = MemberBuilder::from_i64(self.below).finish();
        let bounds = (Bound::Unbounded, Bound::Excluded(&*below));
        let mut numbers = Vec::new();
        for index in indexes {
            let members = overlay.read_members(index, bounds, Way::Down, self.chunk.size())?;
            for member in members {
                numbers.push(decode_member_i64(&member, 0)?);
            }
        }
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.truncate(self.chunk.size());
        Ok(numbers)
    }

    /// The numbers that come next, whether there are tasks or not: a part of a bucket, or some whole ones.
    fn stretch(&self, overlay: &TransactionOverlay) -> Result<Vec<i64>> {
        let mut below = self.below;
        if below.rem_euclid(TASKS_PER_BUCKET) == 0 {
            let most = if self.chunk.is_full() { BUCKETS } else { 1 };
            let buckets =
                overlay.read_buckets_below(&self.kind.buckets(), below.div_euclid(TASKS_PER_BUCKET), most)?;
            if self.chunk.is_full() {
                let tables = buckets.iter().map(|bucket| CacheFetch::Table(self.kind.table(*bucket)));
                overlay.fetch(tables.collect())?;
                return Ok(buckets.iter().flat_map(|bucket| numbers_in(*bucket)).collect());
            }
            let Some(bucket) = buckets.first() else { return Ok(vec![]) };
            below = (bucket + 1) * TASKS_PER_BUCKET;
        }
        let first = bucket_of_task(TaskSeq(below - 1)) * TASKS_PER_BUCKET;
        let low = first.max(below.saturating_sub(self.chunk.size() as i64));
        Ok((low..below).rev().collect())
    }
}

/// All numbers of a bucket, the greatest first.
fn numbers_in(bucket: i64) -> impl Iterator<Item = i64> {
    let first = bucket * TASKS_PER_BUCKET;
    (first..first + TASKS_PER_BUCKET).rev()
}
