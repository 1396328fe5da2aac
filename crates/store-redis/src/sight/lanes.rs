//! The first places of lanes.

use foldhash::HashMap;
use pointsman_core::TaskSeq;
use smallvec::SmallVec;

use crate::codec::ordered;

/// Beyond so many lanes all are forgotten.
const REMEMBERED: usize = 200_000;
/// So many places of a lane are remembered at most.
pub(super) const PLACES: usize = 32;

/// A place in a lane, and whose it is.
pub(crate) type Stand = (i64, TaskSeq);

/// Who stands first in a lane, in order.
#[derive(Debug, Default)]
struct Lane {
    first: SmallVec<[Stand; 2]>,
    /// There are no others.
    whole: bool,
}

#[derive(Debug, Default)]
pub(super) struct Lanes(HashMap<i64, Lane>);

impl Lanes {
    pub(super) fn add(&mut self, lane: i64, stand: Stand) {
        let Some(lane) = self.0.get_mut(&lane) else { return };
        if let Err(place) = lane.first.binary_search(&stand)
            && (lane.whole || place < lane.first.len())
        {
            lane.first.insert(place, stand);
            if lane.first.len() > PLACES {
                lane.first.truncate(PLACES);
                lane.whole = false;
            }
        }
    }

    pub(super) fn remove(&mut self, lane: i64, stand: Stand) {
        if let Some(lane) = self.0.get_mut(&lane)
            && let Ok(place) = lane.first.binary_search(&stand)
        {
            lane.first.remove(place);
        }
    }

    /// Those who stand first were fetched.
    pub(super) fn fetched(&mut self, lane: i64, stands: impl IntoIterator<Item = Stand>, whole: bool) {
        let mut first: SmallVec<[Stand; 2]> = stands.into_iter().collect();
        first.sort_unstable();
        self.0.insert(lane, Lane { first, whole });
    }

    /// Whether it is known who stands first, or that nobody does.
    pub(super) fn knows(&self, lane: i64) -> bool {
        self.0.get(&lane).is_some_and(|lane| lane.whole || !lane.first.is_empty())
    }

    /// Who stands first, as far as that is known.
    pub(super) fn first(&self, lane: i64) -> &[Stand] {
        self.0.get(&lane).map_or(&[], |lane| &lane.first)
    }

    pub(super) fn settle(&mut self) {
        if self.0.len() > REMEMBERED {
            self.0.clear();
        }
    }
}

/// The lane of a member of the index of lanes, and the place that it tells of.
pub(super) fn stand_of(member: &[u8]) -> Option<(i64, Stand)> {
    let number = |index| ordered(member, index).ok();
    Some((number(0)?, (number(1)?, TaskSeq(number(2)?))))
}
