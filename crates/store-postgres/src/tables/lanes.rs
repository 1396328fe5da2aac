//! Who stands first in the lanes that transactions look at, as far as it was fetched.

use std::collections::{BTreeMap, HashMap};

use pointsman_core::TaskSeq;
use pointsman_store::row::{HandlerId, Head, Live, ObjectNumber, Phase, Waiting};
use pointsman_store::{lanes_of, object_of_lane};

/// So many tasks of a lane are known at most.
pub(crate) const KNOWN: usize = 8;

/// So many must be known of a lane, or all, when its first one ends: that one, and the one that follows it.
const NEEDED: usize = 2;

/// The first tasks of a lane by place.
#[derive(Debug, Default)]
struct Lane {
    first: BTreeMap<i64, Head>,
    /// These are all.
    whole: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    known: BTreeMap<i64, Lane>,
    places: HashMap<TaskSeq, (i64, i64)>,
    /// Objects with a greater number were not there when the transaction began, and had no tasks.
    objects: i64,
}

impl Lanes {
    /// A transaction begins in which so many objects are numbered.
    pub(crate) fn begin(&mut self, objects: i64) {
        self.objects = objects;
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether it is known if somebody stands in a lane.
    pub(crate) fn knows_head(&self, lane: i64) -> bool {
        self.known.get(&lane).is_some_and(|known| known.whole || !known.first.is_empty())
    }

    /// Whether it is known who will be first in a lane when the first one has ended.
    pub(crate) fn knows_next(&self, lane: i64) -> bool {
        self.known.get(&lane).is_some_and(|known| known.whole || known.first.len() >= NEEDED)
    }

    /// What was fetched of a lane: its first tasks, of which at most `most` were asked for.
    pub(crate) fn fetched(&mut self, lane: i64, heads: Vec<Head>, most: usize) {
        let whole = heads.len() < most;
        self.forget(lane);
        for head in &heads {
            self.places.insert(head.next.seq, (lane, head.place));
        }
        let first = heads.into_iter().map(|head| (head.place, head)).collect();
        self.known.insert(lane, Lane { first, whole });
    }

    /// The first task of a lane; nothing if that is not known.
    pub(crate) fn head(&mut self, lane: i64) -> Option<Option<Head>> {
        let known = self.lane(lane)?;
        match known.first.values().next() {
            Some(head) => Some(Some(head.clone())),
            None => known.whole.then_some(None),
        }
    }

    /// A task stands in a lane now, where and how it says.
    pub(crate) fn stands(&mut self, live: &Live) {
        self.left(live.seq);
        let (Some(lane), Some(place)) = (live.lane, live.place) else { return };
        let Some(known) = self.lane(lane) else { return };
        let last = known.first.last_key_value().map(|(place, _)| *place);
        if known.whole || last.is_some_and(|last| place < last) {
            let head = Head { place, phase: live.phase, next: Waiting::of(live, live.due()) };
            known.first.insert(place, head);
            let surplus = (known.first.len() > KNOWN).then(|| known.first.pop_last()).flatten();
            known.whole &= surplus.is_none();
            self.places.insert(live.seq, (lane, place));
            if let Some((_, head)) = surplus {
                self.places.remove(&head.next.seq);
            }
        }
    }

    /// The lane in which a task stands, if that is known.
    pub(crate) fn lane_of(&self, seq: TaskSeq) -> Option<i64> {
        self.places.get(&seq).map(|(lane, _)| *lane)
    }

    /// The handlers in whose lanes of an object nobody stands, as far as that is known.
    pub(crate) fn empty(&self, object: ObjectNumber) -> Vec<HandlerId> {
        let Some(lanes) = lanes_of(object) else { return vec![] };
        let from = *lanes.start();
        let empty = self.known.range(lanes).filter(|(_, known)| known.whole && known.first.is_empty());
        empty.map(|(lane, _)| lane - from).collect()
    }

    /// Somebody else wrote something of an object, or of a lane that belongs to none.
    pub(crate) fn forget_object(&mut self, number: i64) {
        if number < 0 {
            return self.forget(number);
        }
        let Some(all) = lanes_of(number) else { return };
        let lanes: Vec<i64> = self.known.range(all).map(|(lane, _)| *lane).collect();
        lanes.into_iter().for_each(|lane| self.forget(lane));
    }

    /// Something of a lane has changed, and nobody knows what it is like now, also if its object is new.
    pub(crate) fn unsettle(&mut self, lane: i64) {
        self.forget(lane);
        self.known.insert(lane, Lane::default());
    }

    fn forget(&mut self, lane: i64) {
        for head in self.known.remove(&lane).into_iter().flat_map(|known| known.first.into_values()) {
            self.places.remove(&head.next.seq);
        }
    }

    pub(crate) fn left(&mut self, seq: TaskSeq) {
        if let Some((lane, place)) = self.places.remove(&seq)
            && let Some(known) = self.known.get_mut(&lane)
        {
            known.first.remove(&place);
        }
    }

    pub(crate) fn changed(&mut self, seq: TaskSeq, phase: Phase) {
        if let Some((lane, place)) = self.places.get(&seq)
            && let Some(head) = self.known.get_mut(lane).and_then(|known| known.first.get_mut(place))
        {
            head.phase = phase;
        }
    }

    fn lane(&mut self, lane: i64) -> Option<&mut Lane> {
        if object_of_lane(lane).is_some_and(|object| object > self.objects) {
            return Some(self.known.entry(lane).or_insert_with(|| Lane { whole: true, ..Lane::default() }));
        }
        self.known.get_mut(&lane)
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
    fn what_is_not_sure_of_a_new_objects_lane_is_asked_for() {
        let (mut lanes, lane) = (Lanes::default(), lane_number(6, 1));
        lanes.begin(5);
        assert!(matches!(lanes.head(lane), Some(None)), "a new object has no tasks");
        lanes.fetched(lane, vec![head(3)], 2);
        lanes.unsettle(lane);
        assert!(lanes.head(lane).is_none() && lanes.lane_of(TaskSeq(3)).is_none());
    }

    #[test]
    fn what_others_touch_is_forgotten_and_nothing_else() {
        let mut lanes = Lanes::default();
        let ours = [(1, 7), (2, 0), (2, LANES - 1), (3, 0)];
        let ours = ours.into_iter().map(|(object, handler)| lane_number(object, handler)).chain([-9]);
        let ours: Vec<i64> = ours.collect();
        ours.iter().zip(1..).for_each(|(lane, place)| lanes.fetched(*lane, vec![head(place)], 2));
        lanes.forget_object(2);
        lanes.forget_object(i64::MAX);
        let known: Vec<bool> = ours.iter().map(|lane| lanes.knows_head(*lane)).collect();
        assert_eq!(known, [true, false, false, true, true]);
        lanes.forget_object(-9);
        assert!(!lanes.knows_head(-9));
    }
}
