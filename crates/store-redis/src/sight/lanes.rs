//! The first places of lanes.

use foldhash::HashMap;
use pointsman_core::TaskSeq;
use pointsman_store::error::Result;
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
        let Err(place) = lane.first.binary_search(&stand) else { return };
        if place == PLACES {
            lane.whole = false;
        } else if lane.whole || place < lane.first.len() {
            if lane.first.len() == PLACES {
                lane.first.pop();
                lane.whole = false;
            }
            lane.first.insert(place, stand);
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
    pub(super) fn fetched(&mut self, lane: i64, mut stands: Vec<Stand>, whole: bool) {
        stands.sort_unstable();
        let whole = whole && stands.len() <= PLACES;
        stands.truncate(PLACES);
        self.0.insert(lane, Lane { first: SmallVec::from_slice(&stands), whole });
    }

    /// Whether it is known who stands first, or that nobody does.
    pub(super) fn knows(&self, lane: i64) -> bool {
        self.0.get(&lane).is_some_and(|lane| lane.whole || !lane.first.is_empty())
    }

    /// Who stands first, as far as that is known.
    pub(super) fn first(&self, lane: i64) -> &[Stand] {
        self.0.get(&lane).map_or(&[], |lane| &lane.first)
    }

    pub(super) fn forget(&mut self, lane: i64) {
        self.0.remove(&lane);
    }

    pub(super) fn settle(&mut self) {
        if self.0.len() > REMEMBERED {
            self.0.clear();
        }
    }
}

/// The lane of a member of the index of lanes, and the place that it tells of.
pub(super) fn stand_of(member: &[u8]) -> Result<(i64, Stand)> {
    Ok((ordered(member, 0)?, (ordered(member, 1)?, TaskSeq(ordered(member, 2)?))))
}
