//! Commit versions and invalidation records of a store that several nodes write to. A commit publishes what it changed,
//! so that the other nodes drop stale cache entries.

use std::hash::{BuildHasher, Hasher, RandomState};

use pointsman_core::TaskSeq;

use crate::row::{HandlerId, QueueId};

/// A peer counts as active for this many transactions after its last write; meanwhile commits publish what they change.
pub const PEER_ACTIVE_TRANSACTION_COUNT: u32 = 64;

/// A commit with more invalidations publishes none; nodes that missed it reload everything.
const MAX_INVALIDATIONS_PER_COMMIT: usize = 128;
/// A commit that changes more queues than this invalidates all queues.
const MAX_QUEUE_INVALIDATIONS_PER_COMMIT: usize = 48;

/// A changed row that other nodes may have cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invalidation {
    Queue(QueueId),
    /// The limiter state of a handler.
    Limiter(HandlerId),
    /// A task that another node may have cached as running.
    Task(TaskSeq),
    /// Means all queues, if too many have changed to list them.
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

/// Version of a commit: its number, and a nonce that distinguishes it from another commit of the same number. A server
/// that lost its last commits and continued without them reuses their numbers; behind a pooler, no broken connection
/// reveals that.
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

/// A commit and what it invalidates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitRecord {
    pub version: CommitVersion,
    /// Encoded by [`encode_invalidations`]; `None` if there were too many.
    pub invalidations: Option<Vec<i64>>,
}

/// Returns the commits after `version`; `None` if the first of `commits` does not have this version.
pub fn commits_since<C>(
    commits: &[C],
    version: CommitVersion,
    version_of: impl Fn(&C) -> CommitVersion,
) -> Option<&[C]> {
    let (first, later_commits) = commits.split_first()?;
    (version_of(first) == version).then_some(later_commits)
}

/// Decodes the invalidations of commits; `None` if one of the commits published none.
pub fn decode_invalidations<'c>(
    encoded_invalidations: impl Iterator<Item = Option<&'c Vec<i64>>>,
) -> Option<Vec<Invalidation>> {
    let codes: Option<Vec<_>> = encoded_invalidations.collect();
    Some(codes?.into_iter().flatten().map(|code| Invalidation::decode(*code)).collect())
}

/// Encodes the invalidations of a commit; `None` if there are too many.
pub fn encode_invalidations(mut invalidations: Vec<Invalidation>) -> Option<Vec<i64>> {
    invalidations.sort_unstable();
    invalidations.dedup();
    let queues =
        invalidations.iter().filter(|invalidation| matches!(invalidation, Invalidation::Queue(_))).count();
    if queues > MAX_QUEUE_INVALIDATIONS_PER_COMMIT {
        invalidations.retain(|invalidation| !matches!(invalidation, Invalidation::Queue(_)));
        invalidations.push(Invalidation::AllQueues);
    }
    (invalidations.len() <= MAX_INVALIDATIONS_PER_COMMIT)
        .then(|| invalidations.into_iter().map(Invalidation::encode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit_version_with_number(version: i64) -> CommitVersion {
        CommitVersion { number: version, nonce: version * 10 }
    }

    fn build_commit_records(invalidations: Vec<Vec<Invalidation>>) -> Vec<CommitRecord> {
        let versions = invalidations.into_iter().zip(7..);
        versions
            .map(|(invalidations, version)| CommitRecord {
                version: commit_version_with_number(version),
                invalidations: encode_invalidations(invalidations),
            })
            .collect()
    }

    fn decode_invalidations_since(
        commits: &[CommitRecord],
        version: CommitVersion,
    ) -> Option<Vec<Invalidation>> {
        decode_invalidations(
            commits_since(commits, version, |commit| commit.version)?
                .iter()
                .map(|commit| commit.invalidations.as_ref()),
        )
    }

    #[test]
    fn invalidations_of_missed_commits_are_decoded() {
        let second_commit =
            vec![Invalidation::Limiter(2), Invalidation::Task(TaskSeq(3)), Invalidation::Limiter(2)];
        let commits = build_commit_records(vec![
            vec![Invalidation::Queue(9)],
            vec![Invalidation::Queue(1)],
            second_commit,
        ]);
        let all = vec![Invalidation::Queue(1), Invalidation::Limiter(2), Invalidation::Task(TaskSeq(3))];
        assert_eq!(decode_invalidations_since(&commits, commit_version_with_number(7)), Some(all));
    }

    #[test]
    fn current_node_gets_no_invalidations_and_outdated_node_must_reload() {
        let commits = build_commit_records(vec![vec![Invalidation::Queue(9)]]);
        assert_eq!(decode_invalidations_since(&commits, commit_version_with_number(7)), Some(vec![]));
        assert_eq!(
            (
                decode_invalidations_since(&commits, commit_version_with_number(6)),
                decode_invalidations_since(&commits, commit_version_with_number(8))
            ),
            (None, None)
        );
        assert_eq!(
            decode_invalidations_since(
                &commits,
                CommitVersion { nonce: 71, ..commit_version_with_number(7) }
            ),
            None,
            "the same number with another nonce is another commit"
        );
    }

    #[test]
    fn large_commit_invalidates_all_queues_or_everything() {
        assert_eq!(
            encode_invalidations((1..=1000).map(Invalidation::Queue).collect()),
            Some(vec![Invalidation::AllQueues.encode()])
        );
        assert_eq!(
            encode_invalidations((1..=1000).map(|seq| Invalidation::Task(TaskSeq(seq))).collect()),
            None
        );
        let commits = build_commit_records(vec![
            vec![],
            (1..=1000).map(|seq| Invalidation::Task(TaskSeq(seq))).collect(),
            vec![],
        ]);
        assert_eq!(decode_invalidations_since(&commits, commit_version_with_number(7)), None);
    }
}
