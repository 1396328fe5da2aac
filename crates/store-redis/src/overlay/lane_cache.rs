//! Cache of the first positions of lanes.

use foldhash::HashMap;
use pointsman_core::TaskSeq;
use pointsman_store::error::TableResult;
use smallvec::SmallVec;

use crate::codec::decode_member_i64;

/// The cache is cleared when it has more lanes than this.
const MAX_CACHED_LANES: usize = 200_000;
/// Maximum number of cached positions of a lane.
pub(super) const MAX_CACHED_POSITIONS_PER_LANE: usize = 32;

/// A position in a lane and the task at it.
pub(crate) type TaskAtLanePosition = (i64, TaskSeq);

/// First positions of a lane, in order.
#[derive(Debug, Default)]
struct CachedLane {
    positions: SmallVec<[TaskAtLanePosition; 2]>,
    /// Whether the lane has no further positions.
    is_complete: bool,
}

/// The cached lanes, by id.
#[derive(Debug, Default)]
pub(super) struct LaneCache(HashMap<i64, CachedLane>);

impl LaneCache {
    /// Adds a position to a cached lane, unless unknown positions may precede it.
    pub(super) fn add_position(&mut self, lane: i64, position: TaskAtLanePosition) {
        let Some(lane) = self.0.get_mut(&lane) else { return };
        let Err(index) = lane.positions.binary_search(&position) else { return };
        if index == MAX_CACHED_POSITIONS_PER_LANE {
            lane.is_complete = false;
        } else if lane.is_complete || index < lane.positions.len() {
            if lane.positions.len() == MAX_CACHED_POSITIONS_PER_LANE {
                lane.positions.pop();
                lane.is_complete = false;
            }
            lane.positions.insert(index, position);
        }
    }

    pub(super) fn remove_position(&mut self, lane: i64, position: TaskAtLanePosition) {
        if let Some(lane) = self.0.get_mut(&lane)
            && let Ok(index) = lane.positions.binary_search(&position)
        {
            lane.positions.remove(index);
        }
    }

    /// Caches the first positions of a lane.
    pub(super) fn cache_lane(
        &mut self,
        lane: i64,
        mut positions: Vec<TaskAtLanePosition>,
        is_complete: bool,
    ) {
        positions.sort_unstable();
        let is_complete = is_complete && positions.len() <= MAX_CACHED_POSITIONS_PER_LANE;
        positions.truncate(MAX_CACHED_POSITIONS_PER_LANE);
        self.0.insert(lane, CachedLane { positions: SmallVec::from_slice(&positions), is_complete });
    }

    /// Returns whether the cache knows the head of a lane, or that the lane is empty.
    pub(super) fn is_cached(&self, lane: i64) -> bool {
        self.0.get(&lane).is_some_and(|lane| lane.is_complete || !lane.positions.is_empty())
    }

    /// Returns the cached first positions of a lane.
    pub(super) fn cached_positions(&self, lane: i64) -> &[TaskAtLanePosition] {
        self.0.get(&lane).map_or(&[], |lane| &lane.positions)
    }

    pub(super) fn evict_lane(&mut self, lane: i64) {
        self.0.remove(&lane);
    }

    pub(super) fn clear_if_large(&mut self) {
        if self.0.len() > MAX_CACHED_LANES {
            self.0.clear();
        }
    }
}

/// Decodes a member of the index of lane positions into the lane, and the position with its task.
pub(super) fn decode_lane_position(member: &[u8]) -> TableResult<(i64, TaskAtLanePosition)> {
    Ok((
        decode_member_i64(member, 0)?,
        (decode_member_i64(member, 1)?, TaskSeq(decode_member_i64(member, 2)?)),
    ))
}
