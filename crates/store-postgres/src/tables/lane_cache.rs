//! Caches the first tasks of lanes.

use std::collections::{BTreeMap, HashMap};

use pointsman_core::TaskSeq;
use pointsman_store::row::{HandlerId, Head, Live, ObjectNumber, Phase, Waiting};
use pointsman_store::{lanes_of, object_of_lane};

/// Limit of cached tasks per lane.
pub(crate) const MAX_HEADS: usize = 8;

/// Tasks that must be cached of a lane, unless it has fewer, before its first task ends: that one and its successor.
const MIN_HEADS: usize = 2;

/// The first tasks of a lane by position.
#[derive(Debug, Default)]
struct CachedLane {
    heads: BTreeMap<i64, Head>,
    /// The lane has no other tasks.
    is_complete: bool,
}

#[derive(Debug, Default)]
pub(crate) struct LaneCache {
    lanes: BTreeMap<i64, CachedLane>,
    positions: HashMap<TaskSeq, (i64, i64)>,
    /// Objects with a greater number did not exist when the transaction began, and had no tasks.
    object_count: i64,
}

impl LaneCache {
    /// Sets the highest object number at the beginning of a transaction.
    pub(crate) fn set_object_count(&mut self, objects: i64) {
        self.object_count = objects;
    }

    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// True if it is cached whether the lane has a task.
    pub(crate) fn has_head(&self, lane: i64) -> bool {
        self.lanes.get(&lane).is_some_and(|cached| cached.is_complete || !cached.heads.is_empty())
    }

    /// True if the successor of the first task is cached, or that there is none.
    pub(crate) fn has_next(&self, lane: i64) -> bool {
        self.lanes.get(&lane).is_some_and(|cached| cached.is_complete || cached.heads.len() >= MIN_HEADS)
    }

    /// Caches the first tasks of a lane; fewer than the requested `most` means that these are all.
    pub(crate) fn insert_lane(&mut self, lane: i64, heads: Vec<Head>, most: usize) {
        let is_complete = heads.len() < most;
        self.drop_cached_lane(lane);
        for head in &heads {
            self.positions.insert(head.next.seq, (lane, head.place));
        }
        let heads = heads.into_iter().map(|head| (head.place, head)).collect();
        self.lanes.insert(lane, CachedLane { heads, is_complete });
    }

    /// The first task of a lane; the outer option is none if that is not cached.
    pub(crate) fn head(&mut self, lane: i64) -> Option<Option<Head>> {
        let cached = self.lane_mut(lane)?;
        match cached.heads.values().next() {
            Some(head) => Some(Some(head.clone())),
            None => cached.is_complete.then_some(None),
        }
    }

    /// Inserts or replaces a task in its lane, as far as the lane is cached.
    pub(crate) fn insert_task(&mut self, live: &Live) {
        self.remove_task(live.seq);
        let (Some(lane), Some(place)) = (live.lane, live.place) else { return };
        let Some(cached) = self.lane_mut(lane) else { return };
        let last = cached.heads.last_key_value().map(|(place, _)| *place);
        if cached.is_complete || last.is_some_and(|last| place < last) {
            let head = Head { place, phase: live.phase, next: Waiting::of(live, live.due()) };
            cached.heads.insert(place, head);
            let surplus = (cached.heads.len() > MAX_HEADS).then(|| cached.heads.pop_last()).flatten();
            cached.is_complete &= surplus.is_none();
            self.positions.insert(live.seq, (lane, place));
            if let Some((_, head)) = surplus {
                self.positions.remove(&head.next.seq);
            }
        }
    }

    /// Returns the lane of a task, if it is cached.
    pub(crate) fn find_lane(&self, seq: TaskSeq) -> Option<i64> {
        self.positions.get(&seq).map(|(lane, _)| *lane)
    }

    /// Returns the handlers whose lanes of an object are cached as empty.
    pub(crate) fn list_empty_lanes(&self, object: ObjectNumber) -> Vec<HandlerId> {
        let Some(lanes) = lanes_of(object) else { return vec![] };
        let from = *lanes.start();
        let empty =
            self.lanes.range(lanes).filter(|(_, cached)| cached.is_complete && cached.heads.is_empty());
        empty.map(|(lane, _)| lane - from).collect()
    }

    /// Drops the lanes of an object that a peer has written, or a lane without an object.
    pub(crate) fn drop_cached_object(&mut self, number: i64) {
        if number < 0 {
            return self.drop_cached_lane(number);
        }
        let Some(all) = lanes_of(number) else { return };
        let lanes: Vec<i64> = self.lanes.range(all).map(|(lane, _)| *lane).collect();
        lanes.into_iter().for_each(|lane| self.drop_cached_lane(lane));
    }

    /// Replaces a lane by an unknown one, so that it is fetched again, even if its object is new.
    pub(crate) fn mark_unknown(&mut self, lane: i64) {
        self.drop_cached_lane(lane);
        self.lanes.insert(lane, CachedLane::default());
    }

    fn drop_cached_lane(&mut self, lane: i64) {
        for head in self.lanes.remove(&lane).into_iter().flat_map(|cached| cached.heads.into_values()) {
            self.positions.remove(&head.next.seq);
        }
    }

    pub(crate) fn remove_task(&mut self, seq: TaskSeq) {
        if let Some((lane, place)) = self.positions.remove(&seq)
            && let Some(cached) = self.lanes.get_mut(&lane)
        {
            cached.heads.remove(&place);
        }
    }

    pub(crate) fn set_phase(&mut self, seq: TaskSeq, phase: Phase) {
        if let Some((lane, place)) = self.positions.get(&seq)
            && let Some(head) = self.lanes.get_mut(lane).and_then(|cached| cached.heads.get_mut(place))
        {
            head.phase = phase;
        }
    }

    fn lane_mut(&mut self, lane: i64) -> Option<&mut CachedLane> {
        if object_of_lane(lane).is_some_and(|object| object > self.object_count) {
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
    use pointsman_store::{LANES, lane_number};

    use super::*;

    fn head(place: i64) -> Head {
        let due = Timestamp::from_micros(0);
        let next = Waiting { seq: TaskSeq(place), queue: 1, bucket: None, crowd: None, score: 0, due };
        Head { place, phase: Phase::Blocked, next }
    }

    #[test]
    fn an_unknown_lane_of_a_new_object_is_fetched() {
        let (mut lanes, lane) = (LaneCache::default(), lane_number(6, 1));
        lanes.set_object_count(5);
        assert!(matches!(lanes.head(lane), Some(None)), "a new object has no tasks");
        lanes.insert_lane(lane, vec![head(3)], 2);
        lanes.mark_unknown(lane);
        assert!(lanes.head(lane).is_none() && lanes.find_lane(TaskSeq(3)).is_none());
    }

    #[test]
    fn only_lanes_of_the_invalidated_object_are_dropped() {
        let mut lanes = LaneCache::default();
        let cached_lanes = [(1, 7), (2, 0), (2, LANES - 1), (3, 0)];
        let cached_lanes =
            cached_lanes.into_iter().map(|(object, handler)| lane_number(object, handler)).chain([-9]);
        let cached_lanes: Vec<i64> = cached_lanes.collect();
        cached_lanes.iter().zip(1..).for_each(|(lane, place)| lanes.insert_lane(*lane, vec![head(place)], 2));
        lanes.drop_cached_object(2);
        lanes.drop_cached_object(i64::MAX);
        let is_cached: Vec<bool> = cached_lanes.iter().map(|lane| lanes.has_head(*lane)).collect();
        assert_eq!(is_cached, [true, false, false, true, true]);
        lanes.drop_cached_object(-9);
        assert!(!lanes.has_head(-9));
    }
}
