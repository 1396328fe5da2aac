//! Lanes and concurrency groups: which of an object's tasks may run.
//!
//! A lane runs one task at a time, in the order of lane positions. A new task takes its own number as its position; a
//! task that returns to its lane (retried by a person, or adopted) takes a new number, and so is last.
//!
//! A concurrency group belongs to a handler without ordering that limits how many tasks of an object run at a time. A
//! task that becomes due while the group is full is blocked; a task that leaves the group unblocks the oldest blocked
//! one.

use std::ops::RangeInclusive;

use pointsman_core::{LaneOrdering, TaskSeq, Timestamp};

use crate::error::TableResult;
use crate::key_round_robin::key_bucket_of_hash;
use crate::row::{HandlerId, ObjectNumber, QueueId, TaskPhase, WaitingTask};
use crate::tables::Tables;
use crate::writer::Txn;
use crate::writer_state::RegisteredHandler;

/// How an object's tasks of one handler are grouped: by lane or concurrency group, and by key bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TaskGrouping {
    pub(crate) lane: Option<i64>,
    pub(crate) concurrency_group: Option<i64>,
    pub(crate) key_bucket: Option<u16>,
}

impl TaskGrouping {
    pub(crate) fn for_object(salt: u64, handler: &RegisteredHandler, object: Option<ObjectNumber>) -> Self {
        let Some(object) = object else { return Self::default() };
        let lane = lane_number(object, handler.id);
        let is_ordered = handler.def.ordering == LaneOrdering::Key;
        let has_group = !is_ordered && handler.def.limits.concurrency_per_key.is_some();
        Self {
            lane: is_ordered.then_some(lane),
            concurrency_group: has_group.then_some(lane),
            key_bucket: Some(key_bucket_of_hash(hash_lane_number(lane, salt))),
        }
    }

    /// Returns the grouping of a source's collection, which is the same for all tenants.
    pub(crate) fn for_source_collection(salt: u64, source: HandlerId, collection: &str) -> Self {
        Self {
            lane: Some(source_collection_lane_number(salt, source, collection)),
            concurrency_group: None,
            key_bucket: None,
        }
    }
}

impl<T: Tables> Txn<'_, T> {
    /// Returns the phase of a task that waits neither for its lane nor for a synchronous task, and its rank if it is
    /// ready. It may still wait for its due time or for its concurrency group.
    pub(crate) fn phase_when_unblocked(
        &mut self,
        waiting: &WaitingTask,
        now: Timestamp,
    ) -> TableResult<(TaskPhase, i64)> {
        if waiting.due > now {
            if self.state.counters.next_due.is_none_or(|earliest| waiting.due < earliest) {
                self.state.counters.next_due = Some(waiting.due);
                self.state.has_earlier_due_time = true;
            }
            return Ok((TaskPhase::Delayed, 0));
        }
        if let Some(concurrency_group) = waiting.concurrency_group
            && self.is_concurrency_group_full(concurrency_group, waiting.queue)?
        {
            return Ok((TaskPhase::BlockedByTask, 0));
        }
        self.state.set_collection_task_rank(waiting.queue, waiting.score, waiting.seq)?;
        Ok((
            TaskPhase::Ready,
            self.state.assign_task_rank(self.tables, waiting.queue, waiting.score, waiting.key_bucket)?,
        ))
    }

    /// Moves a task from the waiting phase `from` to its next phase, unless it still has to wait.
    pub(crate) fn advance_waiting_task(
        &mut self,
        waiting: &WaitingTask,
        from: TaskPhase,
        now: Timestamp,
    ) -> TableResult<()> {
        let (phase, rank) = self.phase_when_unblocked(waiting, now)?;
        if phase == from {
            return Ok(());
        }
        self.tables.set_task_phase(waiting.seq, phase, rank)?;
        self.state.update_counts_for_phase_change(waiting.queue, Some(from), Some(phase))
    }

    pub(crate) fn is_lane_occupied(&mut self, lane: Option<i64>) -> TableResult<bool> {
        match lane {
            Some(lane) => Ok(self.tables.read_lane_head(lane)?.is_some()),
            None => Ok(false),
        }
    }

    /// Returns the task of a source's collection that is in its lane. The lanes of two collections may have the same
    /// number, so the queue is compared as well.
    pub(crate) fn find_collection_task_in_lane(
        &mut self,
        source: HandlerId,
        collection: &str,
    ) -> TableResult<Option<TaskSeq>> {
        let lane = TaskGrouping::for_source_collection(self.state.hash_salt, source, collection).lane;
        let Some(lane) = lane else { return Ok(None) };
        for (seq, queue) in self.tables.list_lane_tasks(lane)? {
            let queue = self.state.queue(queue)?;
            if queue.handler == source && queue.collection().is_some_and(|name| name.as_str() == collection) {
                return Ok(Some(seq));
            }
        }
        Ok(None)
    }

    pub(crate) fn is_lane_head(&mut self, lane: i64, lane_position: i64) -> TableResult<bool> {
        Ok(self.tables.read_lane_head(lane)?.is_none_or(|head| head.lane_position >= lane_position))
    }

    /// Unblocks the head of a lane, if it is blocked.
    pub(crate) fn unblock_lane_head(&mut self, lane: Option<i64>, now: Timestamp) -> TableResult<()> {
        let Some(lane) = lane else { return Ok(()) };
        match self.tables.read_lane_head(lane)?.filter(|head| head.phase == TaskPhase::BlockedByTask) {
            Some(head) => self.advance_waiting_task(&head.task, TaskPhase::BlockedByTask, now),
            None => Ok(()),
        }
    }

    fn is_concurrency_group_full(&mut self, concurrency_group: i64, queue: QueueId) -> TableResult<bool> {
        Ok(self.read_concurrency_group(concurrency_group, queue)?.1)
    }

    /// Returns the ready, scheduled and locked tasks of a concurrency group, and whether the group is full.
    pub(crate) fn read_concurrency_group(
        &mut self,
        concurrency_group: i64,
        queue: QueueId,
    ) -> TableResult<(Vec<TaskSeq>, bool)> {
        let handler = self.state.handler(self.state.queue(queue)?.handler)?;
        let limit = handler.def.limits.concurrency_per_key.map_or(usize::MAX, |limit| limit as usize);
        let counted = self.tables.list_counted_tasks_of_concurrency_group(concurrency_group, limit)?;
        let is_full = counted.len() >= limit;
        Ok((counted, is_full))
    }

    /// Unblocks the oldest blocked tasks of a concurrency group while it is not full.
    pub(crate) fn unblock_in_concurrency_group(
        &mut self,
        concurrency_group: i64,
        queue: QueueId,
        now: Timestamp,
    ) -> TableResult<()> {
        while !self.is_concurrency_group_full(concurrency_group, queue)? {
            let Some(next) = self.tables.find_oldest_blocked_in_concurrency_group(concurrency_group)? else {
                return Ok(());
            };
            self.advance_waiting_task(&next, TaskPhase::BlockedByTask, now)?;
        }
        Ok(())
    }
}

/// Multiplier of a multiplicative hash; it spreads consecutive numbers.
const HASH_MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Number of lanes an object can have.
pub const LANES_PER_OBJECT: i64 = 1 << 20;

/// Returns the lane of an object and a handler. Beyond a million handlers, two may share a lane and then wait for each
/// other.
pub fn lane_number(object: ObjectNumber, handler: HandlerId) -> i64 {
    object * LANES_PER_OBJECT + handler % LANES_PER_OBJECT
}

/// Returns the range of an object's lanes; `None` if `object` is not a valid object number.
pub fn lane_range_of_object(object: ObjectNumber) -> Option<RangeInclusive<i64>> {
    let first = object.checked_mul(LANES_PER_OBJECT).filter(|first| *first > 0)?;
    Some(first..=first + (LANES_PER_OBJECT - 1))
}

/// Returns the object of a lane; `None` if the lane belongs to a source's collection.
pub fn object_of_lane(lane: i64) -> Option<ObjectNumber> {
    (lane > 0).then_some(lane / LANES_PER_OBJECT)
}

/// Returns the lane of a source's collection: a negative number, which no object's lane has. Collections that share a
/// number by chance only wait for each other; the salt prevents choosing names that collide.
fn source_collection_lane_number(salt: u64, source: HandlerId, collection: &str) -> i64 {
    const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;
    let mut hash = 0xCBF2_9CE4_8422_2325 ^ salt;
    for byte in source.to_le_bytes().iter().chain(&[0, 1]).chain(collection.as_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
    }
    hash ^= hash >> 32;
    (hash.wrapping_mul(HASH_MULTIPLIER) ^ salt) as i64 | i64::MIN
}

fn hash_lane_number(lane: i64, salt: u64) -> i64 {
    let hash = (lane as u64).wrapping_mul(HASH_MULTIPLIER);
    ((hash ^ hash >> 32) ^ salt) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_numbers_differ_and_follow_the_order_of_objects() {
        assert!(lane_number(7, 1) < lane_number(7, 2) && lane_number(7, 2) < lane_number(8, 1));
    }

    #[test]
    fn lanes_of_an_object_are_one_exclusive_range() {
        let lanes = lane_range_of_object(7).unwrap();
        for handler in [0, 1, LANES_PER_OBJECT - 1, LANES_PER_OBJECT, LANES_PER_OBJECT + 1] {
            let lane = lane_number(7, handler);
            assert!(lanes.contains(&lane) && object_of_lane(lane) == Some(7), "{handler}");
        }
        assert!(
            [lane_number(6, LANES_PER_OBJECT - 1), lane_number(8, 0)]
                .iter()
                .all(|other| !lanes.contains(other))
        );
        assert_eq!([0, -9, i64::MAX].map(lane_range_of_object), [None, None, None]);
        assert_eq!(object_of_lane(source_collection_lane_number(1, 1, "a")), None);
    }

    #[test]
    fn lanes_of_source_collections_never_equal_lanes_of_objects() {
        let lanes = [
            source_collection_lane_number(1, 1, "a"),
            source_collection_lane_number(1, 2, "a"),
            source_collection_lane_number(1, 1, "b"),
            source_collection_lane_number(2, 1, "a"),
        ];
        assert!(lanes.iter().all(|lane| *lane < 0));
        let different: std::collections::HashSet<_> = lanes.iter().collect();
        assert_eq!(different.len(), lanes.len());
    }

    #[test]
    fn consecutive_objects_get_different_key_buckets() {
        let buckets: std::collections::HashSet<_> = (1..=256)
            .map(|object| key_bucket_of_hash(hash_lane_number(lane_number(object, 3), 99)))
            .collect();
        assert!(buckets.len() > 200, "{}", buckets.len());
    }
}
