//! Caches the first tasks of lanes, so that the task after an ended one is found without a query.

use std::collections::{BTreeMap, HashMap};

use pointsman_core::TaskSeq;
use pointsman_store::row::{ActiveTaskRow, HandlerId, LaneHead, ObjectNumber, TaskPhase, WaitingTask};
use pointsman_store::{lane_range_of_object, object_of_lane};

/// Limit of cached tasks per lane.
pub(crate) const MAX_CACHED_TASKS_PER_LANE: usize = 8;

/// Number of tasks of a lane that must be cached, unless it has fewer, before its first task ends: that task and its
/// successor.
const MIN_CACHED_TASKS_PER_LANE: usize = 2;

/// The first tasks of a lane.
#[derive(Debug, Default)]
struct CachedLane {
    /// The first tasks, by lane position.
    first_tasks: BTreeMap<i64, LaneHead>,
    /// Whether the lane has no other tasks than these.
    is_complete: bool,
}

/// The cached lanes.
#[derive(Debug, Default)]
pub(crate) struct LaneCache {
    lanes: BTreeMap<i64, CachedLane>,
    /// Lane and position of each cached task.
    positions_by_task: HashMap<TaskSeq, (i64, i64)>,
    /// Objects with a greater number did not exist when the transaction began, and had no tasks.
    highest_object_number: i64,
}

impl LaneCache {
    /// Sets the highest object number at the beginning of a transaction.
    pub(crate) fn set_highest_object_number(&mut self, number: i64) {
        self.highest_object_number = number;
    }

    /// Returns the number of cached lanes.
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// True if the first task of a lane is cached, or that the lane is empty.
    pub(crate) fn is_head_cached(&self, lane: i64) -> bool {
        self.lanes.get(&lane).is_some_and(|cached| cached.is_complete || !cached.first_tasks.is_empty())
    }

    /// True if the first two tasks of a lane are cached, or that it has fewer.
    pub(crate) fn is_successor_cached(&self, lane: i64) -> bool {
        self.lanes
            .get(&lane)
            .is_some_and(|cached| cached.is_complete || cached.first_tasks.len() >= MIN_CACHED_TASKS_PER_LANE)
    }

    /// Caches the first tasks of a lane. If they are fewer than the `limit` that was queried, the lane has no others.
    pub(crate) fn insert_lane(&mut self, lane: i64, first_tasks: Vec<LaneHead>, limit: usize) {
        let is_complete = first_tasks.len() < limit;
        self.drop_cached_lane(lane);
        for head in &first_tasks {
            self.positions_by_task.insert(head.task.seq, (lane, head.lane_position));
        }
        let first_tasks = first_tasks.into_iter().map(|head| (head.lane_position, head)).collect();
        self.lanes.insert(lane, CachedLane { first_tasks, is_complete });
    }

    /// Returns the first task of a lane: `Some(None)` if the lane is empty, none if that is not cached.
    pub(crate) fn cached_head(&mut self, lane: i64) -> Option<Option<LaneHead>> {
        let cached = self.cached_lane_mut(lane)?;
        match cached.first_tasks.values().next() {
            Some(head) => Some(Some(head.clone())),
            None => cached.is_complete.then_some(None),
        }
    }

    /// Inserts or replaces a task in its lane, unless it comes after the cached part of the lane.
    pub(crate) fn insert_task(&mut self, task_row: &ActiveTaskRow) {
        self.remove_task(task_row.seq);
        let (Some(lane), Some(lane_position)) = (task_row.lane, task_row.lane_position) else { return };
        let Some(cached) = self.cached_lane_mut(lane) else { return };
        let last = cached.first_tasks.last_key_value().map(|(lane_position, _)| *lane_position);
        if cached.is_complete || last.is_some_and(|last| lane_position < last) {
            let head = LaneHead {
                lane_position,
                phase: task_row.phase,
                task: WaitingTask::from_row(task_row, task_row.due_time()),
            };
            cached.first_tasks.insert(lane_position, head);
            let evicted = (cached.first_tasks.len() > MAX_CACHED_TASKS_PER_LANE)
                .then(|| cached.first_tasks.pop_last())
                .flatten();
            cached.is_complete &= evicted.is_none();
            self.positions_by_task.insert(task_row.seq, (lane, lane_position));
            if let Some((_, head)) = evicted {
                self.positions_by_task.remove(&head.task.seq);
            }
        }
    }

    /// Returns the lane of a task, if it is cached.
    pub(crate) fn find_lane_of_task(&self, seq: TaskSeq) -> Option<i64> {
        self.positions_by_task.get(&seq).map(|(lane, _)| *lane)
    }

    /// Returns the handlers whose lanes of an object are cached as empty.
    pub(crate) fn list_handlers_with_empty_lane(&self, object: ObjectNumber) -> Vec<HandlerId> {
        let Some(lanes) = lane_range_of_object(object) else { return vec![] };
        let first_lane = *lanes.start();
        let empty =
            self.lanes.range(lanes).filter(|(_, cached)| cached.is_complete && cached.first_tasks.is_empty());
        empty.map(|(lane, _)| lane - first_lane).collect()
    }

    /// Drops the lanes of an object that a peer has written. A negative number is that of a lane without an object.
    pub(crate) fn drop_cached_lanes_of_object(&mut self, number: i64) {
        if number < 0 {
            return self.drop_cached_lane(number);
        }
        let Some(lane_range) = lane_range_of_object(number) else { return };
        let lanes: Vec<i64> = self.lanes.range(lane_range).map(|(lane, _)| *lane).collect();
        lanes.into_iter().for_each(|lane| self.drop_cached_lane(lane));
    }

    /// Replaces a lane by an unknown one, so that it is fetched again, even if its object is new.
    pub(crate) fn mark_lane_unknown(&mut self, lane: i64) {
        self.drop_cached_lane(lane);
        self.lanes.insert(lane, CachedLane::default());
    }

    fn drop_cached_lane(&mut self, lane: i64) {
        for head in self.lanes.remove(&lane).into_iter().flat_map(|cached| cached.first_tasks.into_values()) {
            self.positions_by_task.remove(&head.task.seq);
        }
    }

    pub(crate) fn remove_task(&mut self, seq: TaskSeq) {
        if let Some((lane, lane_position)) = self.positions_by_task.remove(&seq)
            && let Some(cached) = self.lanes.get_mut(&lane)
        {
            cached.first_tasks.remove(&lane_position);
        }
    }

    pub(crate) fn set_phase(&mut self, seq: TaskSeq, phase: TaskPhase) {
        if let Some((lane, lane_position)) = self.positions_by_task.get(&seq)
            && let Some(head) =
                self.lanes.get_mut(lane).and_then(|cached| cached.first_tasks.get_mut(lane_position))
        {
            head.phase = phase;
        }
    }

    /// Returns a cached lane. Lanes of an object that is new in this transaction count as cached and empty.
    fn cached_lane_mut(&mut self, lane: i64) -> Option<&mut CachedLane> {
        if object_of_lane(lane).is_some_and(|object| object > self.highest_object_number) {
            return Some(
                self.lanes
                    .entry(lane)
                    .or_insert_with(|| CachedLane { is_complete: true, ..CachedLane::default() }),
            );
        }
        self.lanes.get_mut(&lane)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::Timestamp;
    use pointsman_store::{LANES_PER_OBJECT, lane_number};

    use super::*;

    fn lane_head(lane_position: i64) -> LaneHead {
        let due = Timestamp::from_micros(0);
        let task = WaitingTask {
            seq: TaskSeq(lane_position),
            queue: 1,
            key_bucket: None,
            concurrency_group: None,
            score: 0,
            due,
        };
        LaneHead { lane_position, phase: TaskPhase::BlockedByTask, task }
    }

    #[test]
    fn an_unknown_lane_of_a_new_object_is_fetched() {
        let (mut lanes, lane) = (LaneCache::default(), lane_number(6, 1));
        lanes.set_highest_object_number(5);
        assert!(matches!(lanes.cached_head(lane), Some(None)), "a new object has no tasks");
        lanes.insert_lane(lane, vec![lane_head(3)], 2);
        lanes.mark_lane_unknown(lane);
        assert!(lanes.cached_head(lane).is_none() && lanes.find_lane_of_task(TaskSeq(3)).is_none());
    }

    #[test]
    fn only_lanes_of_the_invalidated_object_are_dropped() {
        let mut lanes = LaneCache::default();
        let cached_lanes = [(1, 7), (2, 0), (2, LANES_PER_OBJECT - 1), (3, 0)];
        let cached_lanes =
            cached_lanes.into_iter().map(|(object, handler)| lane_number(object, handler)).chain([-9]);
        let cached_lanes: Vec<i64> = cached_lanes.collect();
        cached_lanes
            .iter()
            .zip(1..)
            .for_each(|(lane, lane_position)| lanes.insert_lane(*lane, vec![lane_head(lane_position)], 2));
        lanes.drop_cached_lanes_of_object(2);
        lanes.drop_cached_lanes_of_object(i64::MAX);
        let is_cached: Vec<bool> = cached_lanes.iter().map(|lane| lanes.is_head_cached(*lane)).collect();
        assert_eq!(is_cached, [true, false, false, true, true]);
        lanes.drop_cached_lanes_of_object(-9);
        assert!(!lanes.is_head_cached(-9));
    }
}
