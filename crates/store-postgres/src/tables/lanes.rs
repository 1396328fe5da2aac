//! Who stands first in the lanes that a transaction looks at, as far as it was fetched.

use std::collections::{BTreeMap, HashMap};

use pointsman_core::TaskSeq;
use pointsman_store::row::{Head, Live, Phase, Waiting};

/// So many tasks of a lane are fetched at once: the one that ends, and the one that follows it.
pub(crate) const FETCHED: usize = 2;

/// The first tasks of a lane by place.
#[derive(Debug, Default)]
struct Lane {
    first: BTreeMap<i64, Head>,
    /// These are all.
    whole: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    known: HashMap<i64, Lane>,
    places: HashMap<TaskSeq, (i64, i64)>,
    /// Objects with a greater number were not there when the transaction began, and had no tasks.
    objects: i64,
}

impl Lanes {
    pub(crate) fn begin(&mut self, objects: i64) {
        self.known.clear();
        self.places.clear();
        self.objects = objects;
    }

    /// What was fetched of a lane: its first tasks, at most [`FETCHED`].
    pub(crate) fn fetched(&mut self, lane: i64, heads: Vec<Head>) {
        let whole = heads.len() < FETCHED;
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
            self.places.insert(live.seq, (lane, place));
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
        if lane > 0 && lane >> OBJECT_BITS > self.objects {
            return Some(self.known.entry(lane).or_insert_with(|| Lane { whole: true, ..Lane::default() }));
        }
        self.known.get_mut(&lane)
    }
}

/// The number of an object is what lies above these bits of its lanes' numbers.
const OBJECT_BITS: u32 = 20;
