//! How far everything has come, and what the last commits changed.

use std::hash::{BuildHasher, Hasher, RandomState};

use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::error::{Fault, Result};
use pointsman_store::row::{HandlerId, QueueId};
use pointsman_store::tables::Counters;
use tokio_postgres::Row;

use super::touched::{self, Heard};
use crate::link::{Param, params};
use crate::rows::{get, maybe_time};

/// A commit that changes more than this does not tell what; whoever has missed it reads everything again.
const TOLD: usize = 128;
/// A commit that changes more queues than this says that all have changed.
const QUEUES_TOLD: usize = 48;

/// Something that a commit changed, which others may remember otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Queue(QueueId),
    Pace(HandlerId),
    Task(TaskSeq),
    AllQueues,
}

impl Change {
    fn code(self) -> i64 {
        match self {
            Self::Queue(id) => id * 4,
            Self::Pace(id) => id * 4 + 1,
            Self::Task(seq) => seq.0 * 4 + 2,
            Self::AllQueues => 3,
        }
    }

    fn of(code: i64) -> Self {
        match code % 4 {
            0 => Self::Queue(code / 4),
            1 => Self::Pace(code / 4),
            2 => Self::Task(TaskSeq(code / 4)),
            _ => Self::AllQueues,
        }
    }
}

/// A commit: its number, and what tells it from another of that number. A server that lost its last commits and went on
/// without them has others, and may be reached without any connection being broken, behind a pooler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) version: i64,
    pub(crate) mark: i64,
}

impl Point {
    pub(crate) fn next(self) -> Self {
        Self { version: self.version + 1, mark: RandomState::new().build_hasher().finish().cast_signed() }
    }
}

/// How far everything had come when the transaction began, and how far it will have come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequencer {
    pub(crate) point: Point,
    pub(crate) registry: i64,
    pub(crate) counters: Counters,
    pub(crate) archived: i64,
    pub(crate) hidden: i64,
    pub(crate) dropped: i64,
    pub(crate) journal_to: i64,
    pub(crate) history_to: i64,
}

impl Sequencer {
    fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            point: point_of(row)?,
            registry: get(row, 1)?,
            counters: Counters {
                last_event: EventId::from_i64(get(row, 3)?),
                forgotten: EventId::from_i64(get(row, 4)?),
                tasks: get(row, 5)?,
                fences: get(row, 6)?,
                objects: get(row, 7)?,
                orders: get(row, 8)?,
                journaled: get(row, 9)?,
                ended: get(row, 10)?,
                next_due: maybe_time(row, 16)?,
            },
            archived: get(row, 11)?,
            hidden: get(row, 12)?,
            dropped: get(row, 13)?,
            journal_to: get(row, 14)?,
            history_to: get(row, 15)?,
        })
    }

    /// The values of the next version's row.
    pub(crate) fn params(&self, changes: Option<Vec<i64>>, touched: Option<Vec<u8>>) -> Vec<Param> {
        let counters = &self.counters;
        params![
            self.point.version,
            self.registry,
            changes,
            counters.last_event.as_i64(),
            counters.forgotten.as_i64(),
            counters.tasks,
            counters.fences,
            counters.objects,
            counters.orders,
            counters.journaled,
            counters.ended,
            self.archived,
            self.hidden,
            self.dropped,
            self.journal_to,
            self.history_to,
            counters.next_due.map(Timestamp::micros),
            touched,
            self.point.mark,
        ]
    }
}

/// A commit: what it changed, if that was not too much to tell, and of which objects it wrote anything.
#[derive(Debug, Default)]
struct Commit {
    point: Point,
    changes: Option<Vec<i64>>,
    touched: Option<Vec<u8>>,
}

/// The last commits from one that is remembered on.
#[derive(Debug, Default)]
pub(crate) struct Told(Vec<Commit>);

impl Told {
    /// Reads what the commits tell, and how far everything has come with the last one.
    pub(crate) fn read(rows: &[Row]) -> Result<(Self, Sequencer)> {
        let last = rows.last().ok_or_else(|| Fault::damaged("no version is there"))?;
        let told = rows
            .iter()
            .map(|row| Ok(Commit { point: point_of(row)?, changes: get(row, 2)?, touched: get(row, 17)? }));
        Ok((Self(told.collect::<Result<_>>()?), Sequencer::read(last)?))
    }

    /// What time it was there when this was told, in microseconds since 1970.
    pub(crate) fn clock(rows: &[Row]) -> Result<i64> {
        rows.last().map_or(Ok(0), |row| get(row, 18))
    }

    /// What the commits after this one have changed; nothing if that is not told, or if there is no such: the server may
    /// have lost its last commits.
    pub(crate) fn changed_since(&self, point: Point) -> Option<Vec<Change>> {
        let codes: Option<Vec<_>> = self.since(point)?.iter().map(|commit| commit.changes.as_ref()).collect();
        Some(codes?.into_iter().flatten().map(|code| Change::of(*code)).collect())
    }

    /// What the commits after this one tell of the objects, and lanes of none, of which they have written anything, in
    /// their order; nothing if one does not tell.
    pub(crate) fn touched_since(&self, point: Point) -> Option<Vec<Heard>> {
        let commits = self.since(point)?.iter();
        let touched: Option<Vec<_>> = commits.map(|commit| touched::read(commit.touched.as_ref()?)).collect();
        Some(touched?.into_iter().flatten().collect())
    }

    fn since(&self, point: Point) -> Option<&[Commit]> {
        let (first, later) = self.0.split_first()?;
        (first.point == point).then_some(later)
    }
}

fn point_of(row: &Row) -> Result<Point> {
    Ok(Point { version: get(row, 0)?, mark: get(row, 19)? })
}

/// How a commit tells what it changes; not at all, if that is too much.
pub(crate) fn told(mut changes: Vec<Change>) -> Option<Vec<i64>> {
    changes.sort_unstable();
    changes.dedup();
    let queues = changes.iter().filter(|change| matches!(change, Change::Queue(_))).count();
    if queues > QUEUES_TOLD {
        changes.retain(|change| !matches!(change, Change::Queue(_)));
        changes.push(Change::AllQueues);
    }
    (changes.len() <= TOLD).then(|| changes.into_iter().map(Change::code).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(version: i64) -> Point {
        Point { version, mark: version * 10 }
    }

    fn commits(changes: Vec<Vec<Change>>) -> Told {
        let versions = changes.into_iter().zip(7..);
        let commit =
            |(changes, version)| Commit { point: point(version), changes: told(changes), touched: None };
        Told(versions.map(commit).collect())
    }

    #[test]
    fn who_has_missed_little_is_told_all_of_it() {
        let second = vec![Change::Pace(2), Change::Task(TaskSeq(3)), Change::Pace(2)];
        let told = commits(vec![vec![Change::Queue(9)], vec![Change::Queue(1)], second]);
        let all = vec![Change::Queue(1), Change::Pace(2), Change::Task(TaskSeq(3))];
        assert_eq!(told.changed_since(point(7)), Some(all));
    }

    #[test]
    fn who_is_not_behind_is_told_nothing_and_who_is_too_far_learns_that() {
        let told = commits(vec![vec![Change::Queue(9)]]);
        assert_eq!(told.changed_since(point(7)), Some(vec![]));
        assert_eq!((told.changed_since(point(6)), told.changed_since(point(8))), (None, None));
        assert_eq!(told.changed_since(Point { mark: 71, ..point(7) }), None, "of another history");
    }

    #[test]
    fn a_commit_that_changes_much_says_so_in_short() {
        assert_eq!(told((1..=1000).map(Change::Queue).collect()), Some(vec![Change::AllQueues.code()]));
        assert_eq!(told((1..=1000).map(|seq| Change::Task(TaskSeq(seq))).collect()), None);
        let told = commits(vec![vec![], (1..=1000).map(|seq| Change::Task(TaskSeq(seq))).collect(), vec![]]);
        assert_eq!(told.changed_since(point(7)), None);
    }
}
