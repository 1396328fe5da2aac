//! Tasks, unfinished and ended, in the order of their numbers.

use std::ops::Bound;

use pointsman_core::TaskSeq;
use pointsman_store::error::{Fault, Result};
use pointsman_store::transfer::{Cell, Page, Place};

use super::RedisMove;
use super::cells::row;
use super::columns::{row_of_live, row_of_past};
use crate::codec::{Ordered, ordered};
use crate::keys::{BUCKET, Index, Table, bucket};
use crate::link::{Words, words};
use crate::lookup::{bucket_number, number_of};
use crate::rows;
use crate::sight::{Bytes, Way, list, maybe_bytes, strings};

/// So many buckets are asked for at a time.
const BUCKETS: usize = 256;
/// So many tasks are looked at together: one may hold a megabyte.
const BATCH: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Unfinished,
    Ended,
}

impl Kind {
    fn buckets(self) -> Index {
        match self {
            Self::Unfinished => Index::TaskBuckets,
            Self::Ended => Index::EndedBuckets,
        }
    }

    fn table(self, bucket: i64) -> Table {
        match self {
            Self::Unfinished => Table::Tasks(bucket),
            Self::Ended => Table::Ended(bucket),
        }
    }
}

impl RedisMove {
    pub(super) fn count_tasks(&self, kind: Kind) -> Result<u64> {
        let mut count = 0;
        let mut from = i64::MIN;
        loop {
            let buckets = self.buckets_from(kind, from)?;
            let Some(last) = buckets.last() else { return Ok(count) };
            from = last + 1;
            let length = |bucket: &i64| words!["HLEN", self.keys().table(&kind.table(*bucket))];
            count += self.sum(&buckets.iter().map(length).collect::<Vec<Words>>())?;
        }
    }

    pub(super) fn read_tasks(&self, kind: Kind, after: Option<&Place>) -> Result<Page> {
        let after = after.and_then(|place| place.first()).and_then(Cell::number);
        let from = after.map_or(TaskSeq(0), |seq| TaskSeq(seq + 1));
        let mut page = Page::default();
        self.walk(kind, from, &mut |batch| {
            for row in self.rows_of(kind, batch)? {
                let (seq, row) = match kind {
                    Kind::Unfinished => {
                        let (live, due) = rows::unpack_live_due(&row)?;
                        (live.seq, row_of_live(live, due))
                    }
                    Kind::Ended => {
                        let past = rows::unpack_past(&row)?;
                        (past.seq, row_of_past(past))
                    }
                };
                page.push(row![seq], row);
            }
            Ok(!page.is_full())
        })?;
        Ok(page)
    }

    /// Hands out the numbers of all tasks of a kind from this one on, in their order, some of one bucket at a time, as long
    /// as more are wanted; answers whether they still are.
    pub(super) fn walk(
        &self,
        kind: Kind,
        from: TaskSeq,
        take: &mut dyn FnMut(&[TaskSeq]) -> Result<bool>,
    ) -> Result<bool> {
        let mut next = bucket_number(from);
        loop {
            let buckets = self.buckets_from(kind, next)?;
            let Some(last) = buckets.last() else { return Ok(true) };
            next = last + 1;
            for bucket in buckets {
                let fields = strings(self.ask(words!["HKEYS", self.keys().table(&kind.table(bucket))])?)?;
                let number = |field: &Vec<u8>| Ok(TaskSeq(bucket * BUCKET + number_of(field)?));
                let mut seqs: Vec<TaskSeq> = fields.iter().map(number).collect::<Result<_>>()?;
                seqs.retain(|seq| *seq >= from);
                seqs.sort_unstable();
                for batch in seqs.chunks(BATCH) {
                    if !take(batch)? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    fn buckets_from(&self, kind: Kind, from: i64) -> Result<Vec<i64>> {
        let lower = Ordered::of(from).done();
        let bounds = (Bound::Included(&*lower), Bound::Unbounded);
        let members = self.sight().members(&kind.buckets(), bounds, Way::Up, BUCKETS)?;
        members.iter().map(|member| ordered(member, 0)).collect()
    }

    /// The rows of tasks that lie in one bucket.
    fn rows_of(&self, kind: Kind, tasks: &[TaskSeq]) -> Result<Vec<Bytes>> {
        let Some(first) = tasks.first() else { return Ok(vec![]) };
        let mut words = words!["HMGET", self.keys().table(&kind.table(bucket_number(*first)))];
        words.extend(tasks.iter().map(|seq| bucket(*seq).1.into_vec()));
        let row = |value| maybe_bytes(value)?.ok_or_else(|| Fault::damaged("a task that is gone"));
        list(self.ask(words)?)?.into_iter().map(row).collect()
    }
}
