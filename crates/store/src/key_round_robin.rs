//! Fairness among the keys of a queue.
//!
//! Among ready tasks of the same score, keys are served round robin. A task gets a rank when it becomes ready, and the
//! smallest rank runs first; the first task of every key has a smaller rank than the second task of any key. Keys are
//! hashed into a bounded number of buckets, which bounds the memory; keys that share a bucket are served as one.

use foldhash::HashMap;

use crate::error::TableResult;
use crate::row::QueueId;
use crate::tables::QueueTable;

/// Number of buckets for keys. More buckets would be fairer and take more memory.
const KEY_BUCKET_COUNT: u64 = 1024;

/// Returns the bucket of a key's hash.
pub(crate) fn key_bucket_of_hash(hash: i64) -> u16 {
    (hash as u64 % KEY_BUCKET_COUNT) as u16
}

/// Round robin over the keys of a queue, separately for each score.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyRoundRobin(HashMap<i64, ScoreRanks>);

/// Ranks assigned and served among the tasks of one score.
#[derive(Clone, Debug, Default)]
struct ScoreRanks {
    /// Rank of the task that was served last.
    last_served_rank: i64,
    /// Rank assigned last to each bucket, as long as it is at or beyond [`Self::last_served_rank`].
    last_rank_by_bucket: HashMap<u16, i64>,
}

impl KeyRoundRobin {
    /// Loads the ranks of a queue's ready tasks from the table: once after a start, and when peers have changed a queue
    /// that was empty.
    pub(crate) fn load(tables: &mut dyn QueueTable, queue: QueueId) -> TableResult<Self> {
        let mut ranks_by_score: HashMap<i64, ScoreRanks> = HashMap::default();
        for (score, bucket, smallest_rank, largest_rank) in tables.list_rank_ranges(queue)? {
            let ranks = ranks_by_score
                .entry(score)
                .or_insert_with(|| ScoreRanks { last_served_rank: smallest_rank, ..ScoreRanks::default() });
            ranks.last_served_rank = ranks.last_served_rank.min(smallest_rank);
            if let Some(bucket) = bucket {
                ranks.last_rank_by_bucket.insert(bucket, largest_rank);
            }
        }
        Ok(Self(ranks_by_score))
    }

    /// Clears the ranks; the queue has no ready task.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Assigns the rank of a task that becomes ready. Tasks without a key are not served round robin: each gets the
    /// rank that is served now.
    pub(crate) fn assign_rank(&mut self, score: i64, bucket: Option<u16>) -> i64 {
        let ranks = self.0.entry(score).or_default();
        let Some(bucket) = bucket else { return ranks.last_served_rank };
        let rank = match ranks.last_rank_by_bucket.get(&bucket) {
            Some(last) if *last >= ranks.last_served_rank => last + 1,
            Some(_) | None => ranks.last_served_rank,
        };
        ranks.last_rank_by_bucket.insert(bucket, rank);
        rank
    }

    /// Records that a task of this score and rank was claimed; new tasks get no smaller rank.
    pub(crate) fn record_served_rank(&mut self, score: i64, rank: i64) {
        if let Some(ranks) = self.0.get_mut(&score) {
            ranks.last_served_rank = ranks.last_served_rank.max(rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_served_round_robin_at_each_score() {
        let mut round_robin = KeyRoundRobin::default();
        let ranks_of_first_key: Vec<_> = (0..4).map(|_| round_robin.assign_rank(100, Some(1))).collect();
        assert_eq!(ranks_of_first_key, [0, 1, 2, 3]);
        assert_eq!(
            (
                round_robin.assign_rank(100, Some(2)),
                round_robin.assign_rank(200, Some(1)),
                round_robin.assign_rank(100, None)
            ),
            (0, 0, 0)
        );
        round_robin.record_served_rank(100, 2);
        assert_eq!(
            (
                round_robin.assign_rank(100, Some(3)),
                round_robin.assign_rank(100, Some(1)),
                round_robin.assign_rank(100, Some(2))
            ),
            (2, 4, 2)
        );
    }
}
