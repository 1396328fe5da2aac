//! Fairness among the keys of a queue.
//!
//! Among ready tasks of the same score, keys take turns: each task gets a rank when it becomes ready, the first of every
//! key before the second of any, and the least rank goes first. Keys share a bounded number of buckets, so that the
//! memory is bounded; two that share one take their turns together.

use foldhash::HashMap;

use crate::error::Result;
use crate::row::QueueId;
use crate::tables::Tables;

/// More would be fairer and take more memory.
const KEY_BUCKETS: u64 = 1024;

/// The bucket of a key, from any number made of it.
pub(crate) fn key_bucket_of(hash: i64) -> u16 {
    (hash as u64 % KEY_BUCKETS) as u16
}

/// The round robins of keys of one queue, one for each score.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyRoundRobin(HashMap<i64, ScoreRanks>);

#[derive(Clone, Debug, Default)]
struct ScoreRanks {
    /// The rank of the task that was served last.
    last_served_rank: i64,
    /// The rank given last to each bucket of keys, as far as it lies at or beyond that.
    last_rank_by_bucket: HashMap<u16, i64>,
}

impl KeyRoundRobin {
    /// As they lie in the table. Read once after a start, and when others have worked on the queue since it was empty.
    pub(crate) fn load(tables: &dyn Tables, queue: QueueId) -> Result<Self> {
        let mut ranks_by_score: HashMap<i64, ScoreRanks> = HashMap::default();
        for (score, bucket, least, greatest) in tables.list_rank_ranges(queue)? {
            let ranks = ranks_by_score
                .entry(score)
                .or_insert_with(|| ScoreRanks { last_served_rank: least, ..ScoreRanks::default() });
            ranks.last_served_rank = ranks.last_served_rank.min(least);
            if let Some(bucket) = bucket {
                ranks.last_rank_by_bucket.insert(bucket, greatest);
            }
        }
        Ok(Self(ranks_by_score))
    }

    /// Nothing is ready any more.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The rank of a task that becomes ready. One without a key waits for nobody of its own.
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

    pub(crate) fn record_served(&mut self, score: i64, rank: i64) {
        if let Some(ranks) = self.0.get_mut(&score) {
            ranks.last_served_rank = ranks.last_served_rank.max(rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_take_turns_at_each_score() {
        let mut ranks_by_score = KeyRoundRobin::default();
        let busy: Vec<_> = (0..4).map(|_| ranks_by_score.assign_rank(100, Some(1))).collect();
        assert_eq!(busy, [0, 1, 2, 3]);
        assert_eq!(
            (
                ranks_by_score.assign_rank(100, Some(2)),
                ranks_by_score.assign_rank(200, Some(1)),
                ranks_by_score.assign_rank(100, None)
            ),
            (0, 0, 0)
        );
        ranks_by_score.record_served(100, 2);
        assert_eq!(
            (
                ranks_by_score.assign_rank(100, Some(3)),
                ranks_by_score.assign_rank(100, Some(1)),
                ranks_by_score.assign_rank(100, Some(2))
            ),
            (2, 4, 2)
        );
    }
}
