//! The commits of a store that many nodes write to: what tells one from another, and what each tells of what it changed.

use std::hash::{BuildHasher, Hasher, RandomState};

use pointsman_core::TaskSeq;

use crate::row::{HandlerId, QueueId};

/// A commit that changes more than this does not tell what; whoever has missed it reads everything again.
const MAX_INVALIDATIONS: usize = 128;
/// A commit that changes more queues than this says that all have changed.
const MAX_QUEUE_INVALIDATIONS: usize = 48;

/// Something that a commit changed, which others may remember otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invalidation {
    Queue(QueueId),
    Limiter(HandlerId),
    Task(TaskSeq),
    AllQueues,
}

impl Invalidation {
    fn encode(self) -> i64 {
        match self {
            Self::Queue(id) => id * 4,
            Self::Limiter(id) => id * 4 + 1,
            Self::Task(seq) => seq.0 * 4 + 2,
            Self::AllQueues => 3,
        }
    }

    fn decode(code: i64) -> Self {
        match code % 4 {
            0 => Self::Queue(code / 4),
            1 => Self::Limiter(code / 4),
            2 => Self::Task(TaskSeq(code / 4)),
            _ => Self::AllQueues,
        }
    }
}

/// A commit: its number, and what tells it from another of that number. A server that lost its last commits and went on
/// without them has others, and may be reached without any connection being broken, behind a pooler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitVersion {
    pub number: i64,
    pub nonce: i64,
}

impl CommitVersion {
    pub fn next_version(self) -> Self {
        Self { number: self.number + 1, nonce: RandomState::new().build_hasher().finish().cast_signed() }
    }
}

/// A commit, and what it changed, if that was not too much to tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitRecord {
    pub version: CommitVersion,
    /// As [`encode_invalidations`] made it.
    pub invalidations: Option<Vec<i64>>,
}

/// Those of the last commits that came after this one, if it is the first of them.
pub fn commits_since<C>(
    commits: &[C],
    version: CommitVersion,
    at: impl Fn(&C) -> CommitVersion,
) -> Option<&[C]> {
    let (first, later) = commits.split_first()?;
    (at(first) == version).then_some(later)
}

/// What these commits have changed; nothing if one of them does not tell.
pub fn decode_invalidations<'c>(
    changes: impl Iterator<Item = Option<&'c Vec<i64>>>,
) -> Option<Vec<Invalidation>> {
    let codes: Option<Vec<_>> = changes.collect();
    Some(codes?.into_iter().flatten().map(|code| Invalidation::decode(*code)).collect())
}

/// How a commit tells what it changes; not at all, if that is too much.
pub fn encode_invalidations(mut changes: Vec<Invalidation>) -> Option<Vec<i64>> {
    changes.sort_unstable();
    changes.dedup();
    let queues = changes.iter().filter(|change| matches!(change, Invalidation::Queue(_))).count();
    if queues > MAX_QUEUE_INVALIDATIONS {
        changes.retain(|change| !matches!(change, Invalidation::Queue(_)));
        changes.push(Invalidation::AllQueues);
    }
    (changes.len() <= MAX_INVALIDATIONS).then(|| changes.into_iter().map(Invalidation::encode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_numbered(version: i64) -> CommitVersion {
        CommitVersion { number: version, nonce: version * 10 }
    }

    fn commits(changes: Vec<Vec<Invalidation>>) -> Vec<CommitRecord> {
        let versions = changes.into_iter().zip(7..);
        versions
            .map(|(changes, version)| CommitRecord {
                version: version_numbered(version),
                invalidations: encode_invalidations(changes),
            })
            .collect()
    }

    fn changed_since(commits: &[CommitRecord], version: CommitVersion) -> Option<Vec<Invalidation>> {
        decode_invalidations(
            commits_since(commits, version, |commit| commit.version)?
                .iter()
                .map(|commit| commit.invalidations.as_ref()),
        )
    }

    #[test]
    fn who_has_missed_little_is_told_all_of_it() {
        let second = vec![Invalidation::Limiter(2), Invalidation::Task(TaskSeq(3)), Invalidation::Limiter(2)];
        let records = commits(vec![vec![Invalidation::Queue(9)], vec![Invalidation::Queue(1)], second]);
        let all = vec![Invalidation::Queue(1), Invalidation::Limiter(2), Invalidation::Task(TaskSeq(3))];
        assert_eq!(changed_since(&records, version_numbered(7)), Some(all));
    }

    #[test]
    fn who_is_not_behind_is_told_nothing_and_who_is_too_far_learns_that() {
        let records = commits(vec![vec![Invalidation::Queue(9)]]);
        assert_eq!(changed_since(&records, version_numbered(7)), Some(vec![]));
        assert_eq!(
            (changed_since(&records, version_numbered(6)), changed_since(&records, version_numbered(8))),
            (None, None)
        );
        assert_eq!(
            changed_since(&records, CommitVersion { nonce: 71, ..version_numbered(7) }),
            None,
            "of another history"
        );
    }

    #[test]
    fn a_commit_that_changes_much_says_so_in_short() {
        assert_eq!(
            encode_invalidations((1..=1000).map(Invalidation::Queue).collect()),
            Some(vec![Invalidation::AllQueues.encode()])
        );
        assert_eq!(
            encode_invalidations((1..=1000).map(|seq| Invalidation::Task(TaskSeq(seq))).collect()),
            None
        );
        let records =
            commits(vec![vec![], (1..=1000).map(|seq| Invalidation::Task(TaskSeq(seq))).collect(), vec![]]);
        assert_eq!(changed_since(&records, version_numbered(7)), None);
    }
}
