//! The first places of lanes.

use foldhash::HashMap;
use pointsman_core::TaskSeq;
use pointsman_store::error::Result;
use smallvec::SmallVec;

use crate::codec::decode_member_i64;

/// Beyond so many lanes all are forgotten.
const MAX_CACHED_LANES: usize = 200_000;
/// So many places of a lane are remembered at most.
pub(super) const MAX_CACHED_POSITIONS: usize = 32;

/// A place in a lane, and whose it is.
pub(crate) type LanePosition = (i64, TaskSeq);

/// Who stands first in a lane, in order.
#[derive(Debug, Default)]
struct CachedLane {
    positions: SmallVec<[LanePosition; 2]>,
    /// There are no others.
    is_complete: bool,
}

#[derive(Debug, Default)]
pub(super) struct LaneCache(HashMap<i64, CachedLane>);

impl LaneCache {
    pub(super) fn add(&mut self, lane: i64, position: LanePosition) {
        let Some(lane) = self.0.get_mut(&lane) else { return };
        let Err(place) = lane.positions.binary_search(&position) else { return };
        if place == MAX_CACHED_POSITIONS {
            lane.is_complete = false;
        } else if lane.is_complete || place < lane.positions.len() {
            if lane.positions.len() == MAX_CACHED_POSITIONS {
                lane.positions.pop();
                lane.is_complete = false;
            }
            lane.positions.insert(place, position);
        }
    }

    pub(super) fn remove(&mut self, lane: i64, position: LanePosition) {
        if let Some(lane) = self.0.get_mut(&lane)
            && let Ok(place) = lane.positions.binary_search(&position)
        {
            lane.positions.remove(place);
        }
    }

    /// Those who stand first were fetched.
    pub(super) fn cache_lane(&mut self, lane: i64, mut positions: Vec<LanePosition>, is_complete: bool) {
        positions.sort_unstable();
        let is_complete = is_complete && positions.len() <= MAX_CACHED_POSITIONS;
        positions.truncate(MAX_CACHED_POSITIONS);
        self.0.insert(lane, CachedLane { positions: SmallVec::from_slice(&positions), is_complete });
    }

    /// Whether it is known who stands first, or that nobody does.
    pub(super) fn is_cached(&self, lane: i64) -> bool {
        self.0.get(&lane).is_some_and(|lane| lane.is_complete || !lane.positions.is_empty())
    }

    /// Who stands first, as far as that is known.
    pub(super) fn cached_positions(&self, lane: i64) -> &[LanePosition] {
        self.0.get(&lane).map_or(&[], |lane| &lane.positions)
    }

    pub(super) fn evict(&mut self, lane: i64) {
        self.0.remove(&lane);
    }

    pub(super) fn evict_if_large(&mut self) {
        if self.0.len() > MAX_CACHED_LANES {
            self.0.clear();
        }
    }
}

/// The lane of a member of the index of lanes, and the place that it tells of.
pub(super) fn decode_lane_position(member: &[u8]) -> Result<(i64, LanePosition)> {
    Ok((
        decode_member_i64(member, 0)?,
        (decode_member_i64(member, 1)?, TaskSeq(decode_member_i64(member, 2)?)),
    ))
}
