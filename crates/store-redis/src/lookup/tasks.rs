//! Tasks, unfinished and ended.

use std::ops::Bound;

use pointsman_core::store::MOST_ATTEMPTS;
use pointsman_core::task::{Attempt, Task};
use pointsman_core::{TaskId, TaskSeq};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{Live, Past};
use pointsman_store::views::{LiveNames, has_ended, task_of_live, task_of_past, with_success};

use crate::codec::{Ordered, ordered};
use crate::keys::{BUCKET, Index, Table, bucket, task_row};
use crate::rows;
use crate::sight::{Question, Sight, Way};

impl Sight {
    pub(crate) fn task(&self, seq: TaskSeq) -> Result<Option<Live>> {
        let (table, field) = task_row(seq);
        let row = self.row(table, field)?;
        row.map(|bytes| rows::unpack_live(&bytes)).transpose()
    }

    pub(crate) fn ended(&self, seq: TaskSeq) -> Result<Option<Past>> {
        let (bucket, field) = bucket(seq);
        self.row(Table::Ended(bucket), field)?.map(|bytes| rows::unpack_past(&bytes)).transpose()
    }

    /// Those of these that are unfinished, in one way there and back.
    pub(crate) fn tasks(&self, seqs: impl IntoIterator<Item = TaskSeq>) -> Result<Vec<Live>> {
        let seqs: Vec<TaskSeq> = seqs.into_iter().collect();
        self.foresee_tasks(&seqs)?;
        let mut found = Vec::with_capacity(seqs.len());
        for seq in seqs {
            found.extend(self.task(seq)?);
        }
        Ok(found)
    }

    pub(crate) fn foresee_tasks(&self, seqs: &[TaskSeq]) -> Result<()> {
        self.look(seqs.iter().map(|seq| Question::from(task_row(*seq))).collect())
    }

    /// The numbers at a place of all members that begin so.
    pub(crate) fn seqs_in(
        &self,
        index: &Index,
        prefix: &[u8],
        place: usize,
        most: usize,
    ) -> Result<Vec<TaskSeq>> {
        let members = self.beginning_with(index, prefix, most)?;
        members.iter().map(|member| ordered(member, place).map(TaskSeq)).collect()
    }

    /// The buckets of an index below this one, the greatest first, at most so many.
    pub(crate) fn buckets_below(&self, index: &Index, below: i64, most: usize) -> Result<Vec<i64>> {
        let upper = Ordered::of(below).done();
        let members = self.members(index, (Bound::Unbounded, Bound::Excluded(&upper)), Way::Down, most)?;
        members.iter().map(|member| ordered(member, 0)).collect()
    }

    /// All ended tasks of a bucket, by number.
    pub(crate) fn ended_in_bucket(&self, bucket: i64) -> Result<Vec<Past>> {
        let rows = self.all(Table::Ended(bucket))?;
        let mut tasks: Vec<Past> =
            rows.iter().map(|(_, row)| rows::unpack_past(row)).collect::<Result<_>>()?;
        tasks.sort_unstable_by_key(|past| past.seq);
        Ok(tasks)
    }

    /// The attempts that are written down, by number.
    pub(crate) fn attempts(&self, seq: TaskSeq) -> Result<Vec<Attempt>> {
        let mut attempts = Vec::new();
        for (field, row) in self.all(Table::Attempts(seq))? {
            let number = rows::of_text(&field)?.parse().map_err(Fault::damaged)?;
            attempts.push(rows::unpack_attempt(number, &row)?);
        }
        attempts.sort_unstable_by_key(|attempt| attempt.number);
        Ok(attempts)
    }

    /// A task as its readers see it, wherever it lies, with its attempts.
    pub(crate) fn whole_task(&self, seq: TaskSeq) -> Result<Option<Task>> {
        let found = match self.task(seq)? {
            Some(live) => Some(self.of_live(live)?),
            None => self.ended(seq)?.map(|past| self.of_past(past)).transpose()?,
        };
        let Some(mut task) = found else { return Ok(None) };
        let mut attempts = self.attempts(seq)?;
        attempts.drain(..attempts.len().saturating_sub(MOST_ATTEMPTS));
        task.attempts = with_success(&task, attempts);
        Ok(Some(task))
    }

    /// The public id of a task, wherever it lies.
    pub(crate) fn task_id(&self, seq: TaskSeq) -> Result<Option<TaskId>> {
        let task = match self.task(seq)? {
            Some(live) => Some(self.of_live(live)?),
            None => self.ended(seq)?.map(|past| self.of_past(past)).transpose()?,
        };
        Ok(task.map(|task| task.id))
    }

    /// An unfinished task as its readers see it, without its attempts.
    pub(crate) fn of_live(&self, live: Live) -> Result<Task> {
        let (handler, queue) = self.queue_names(live.queue)?;
        let event = match live.event {
            Some(id) => {
                let found = self.journaled(id)?;
                let found = found.ok_or_else(|| Fault::damaged(format!("a task's event {id} is gone")))?;
                Some((found.event.kind.to_string(), found.event.key.map(|key| key.to_string())))
            }
            None => None,
        };
        let order = match live.order {
            Some(n) => self.order(n)?.map(|found| found.order.key.to_string()),
            None => None,
        };
        let mut names = LiveNames::new((handler, queue.tenant), &queue.of, event, order);
        if has_ended(&live) {
            names.finished_at = self.attempts(live.seq)?.iter().map(|attempt| attempt.ended_at).max();
        }
        task_of_live(live, names, self.realm()?)
    }

    /// An ended one.
    pub(crate) fn of_past(&self, past: Past) -> Result<Task> {
        let (handler, queue) = self.queue_names(past.queue)?;
        task_of_past(past, handler, queue.tenant, self.realm()?)
    }
}

/// The bucket that a task lies in.
pub(crate) fn bucket_number(seq: TaskSeq) -> i64 {
    seq.0.div_euclid(BUCKET)
}
