//! The row whose lock is the right to write, and what it tells of the last commits.

use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::error::Result;
use pointsman_store::row::{HandlerId, QueueId};
use pointsman_store::tables::Counters;
use tokio_postgres::Row;

use crate::link::{Param, params};
use crate::rows::{get, maybe_time};

/// So many changes are told of; whoever has missed more reads everything again.
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

/// The row as it was when the transaction began, and as it will be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sequencer {
    pub(crate) version: i64,
    pub(crate) registry: i64,
    told_from: i64,
    changes: Vec<i64>,
    pub(crate) counters: Counters,
    pub(crate) archived: i64,
    pub(crate) hidden: i64,
    pub(crate) dropped: i64,
    pub(crate) journal_to: i64,
    pub(crate) history_to: i64,
}

impl Sequencer {
    pub(crate) fn read(row: &Row) -> Result<Self> {
        Ok(Self {
            version: get(row, 0)?,
            registry: get(row, 1)?,
            told_from: get(row, 2)?,
            changes: get(row, 3)?,
            counters: Counters {
                last_event: EventId::from_i64(get(row, 4)?),
                forgotten: EventId::from_i64(get(row, 5)?),
                tasks: get(row, 6)?,
                fences: get(row, 7)?,
                objects: get(row, 8)?,
                orders: get(row, 9)?,
                journaled: get(row, 10)?,
                ended: get(row, 11)?,
                next_due: maybe_time(row, 17)?,
            },
            archived: get(row, 12)?,
            hidden: get(row, 13)?,
            dropped: get(row, 14)?,
            journal_to: get(row, 15)?,
            history_to: get(row, 16)?,
        })
    }

    pub(crate) fn params(&self) -> Vec<Param> {
        let counters = &self.counters;
        params![
            self.version,
            self.registry,
            self.told_from,
            self.changes.clone(),
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
        ]
    }

    /// What the commits after this version have changed; nothing if that is no longer told, or if there was no such
    /// version: the server may have lost its last commits.
    pub(crate) fn changed_since(&self, version: i64) -> Option<Vec<Change>> {
        if version < self.told_from || version > self.version {
            return None;
        }
        let (pairs, _) = self.changes.as_chunks::<2>();
        let after = pairs.iter().filter(|[of, _]| *of > version);
        Some(after.map(|[_, code]| Change::of(*code)).collect())
    }

    /// Another commit, and what it changes.
    pub(crate) fn tell(&mut self, mut changes: Vec<Change>) {
        self.version += 1;
        changes.sort_unstable();
        changes.dedup();
        let queues = changes.iter().filter(|change| matches!(change, Change::Queue(_))).count();
        if queues > QUEUES_TOLD {
            changes.retain(|change| !matches!(change, Change::Queue(_)));
            changes.push(Change::AllQueues);
        }
        if changes.len() > TOLD {
            self.changes.clear();
            self.told_from = self.version;
            return;
        }
        self.changes.extend(changes.into_iter().flat_map(|change| [self.version, change.code()]));
        let surplus = (self.changes.len() / 2).saturating_sub(TOLD);
        if surplus > 0 {
            let (pairs, _) = self.changes.as_chunks::<2>();
            // Of a commit that is told of in part, nothing is told.
            self.told_from = pairs.get(surplus - 1).map_or(self.told_from, |[version, _]| *version);
            let from = self.told_from;
            let kept = pairs.iter().filter(|[version, _]| *version > from).flatten().copied().collect();
            self.changes = kept;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_missed_little_is_told_all_of_it() {
        let mut row = Sequencer::default();
        row.tell(vec![Change::Queue(1)]);
        row.tell(vec![Change::Pace(2), Change::Task(TaskSeq(3)), Change::Pace(2)]);
        let all = [Change::Queue(1), Change::Pace(2), Change::Task(TaskSeq(3))];
        assert_eq!(row.changed_since(0), Some(all.to_vec()));
        assert_eq!(row.changed_since(1), Some(all[1..].to_vec()));
        assert_eq!(row.changed_since(2), Some(vec![]));
    }

    #[test]
    fn what_is_told_is_bounded_and_never_told_in_part() {
        let mut row = Sequencer::default();
        for commit in 0..100 {
            row.tell((0..5).map(|queue| Change::Queue(commit * 5 + queue)).collect());
            assert!(row.changes.len() <= 2 * TOLD);
            for version in 0..=row.version {
                let told = row.changed_since(version);
                assert!(told.is_none_or(|told| told.len() as i64 == (row.version - version) * 5));
            }
        }
        assert_eq!(row.changed_since(10), None);
        assert!(row.changed_since(80).is_some());
    }

    #[test]
    fn a_commit_that_changes_much_says_so_in_short() {
        let mut row = Sequencer::default();
        row.tell((1..=1000).map(Change::Queue).collect());
        assert_eq!(row.changed_since(0), Some(vec![Change::AllQueues]));
        row.tell((1..=1000).map(|seq| Change::Task(TaskSeq(seq))).collect());
        assert_eq!((row.changed_since(0), row.changed_since(2)), (None, Some(vec![])));
    }
}
