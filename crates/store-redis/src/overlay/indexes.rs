//! Index members in the overlay: pending additions and removals, and cached lanes.

use std::collections::BTreeSet;
use std::ops::Bound;

use foldhash::HashMap;
use pointsman_store::error::TableResult;

use super::InvalidationRecord;
use super::lane_cache::{LaneCache, TaskAtLanePosition, decode_lane_position};
use crate::codec::{MemberBuilder, MemberOrField};
use crate::command_encoding::CommandArgsBuffer;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::{Index, Keys};

/// Number of members that are fetched of a lane: its first ones.
const LANE_MEMBERS_PER_FETCH: usize = 4;

type MemberBounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// Order in which members are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanOrder {
    Ascending,
    Descending,
}

/// Writes to an index that are not committed yet.
#[derive(Debug, Default)]
struct PendingIndexWrites {
    added: BTreeSet<MemberOrField>,
    removed: BTreeSet<MemberOrField>,
}

/// Index members that the transaction added or removed, and cached lanes.
#[derive(Debug, Default)]
pub(super) struct IndexOverlay {
    pending_writes: HashMap<Index, PendingIndexWrites>,
    /// First positions of lanes, with the pending writes applied.
    lane_cache: LaneCache,
}

impl IndexOverlay {
    pub(super) fn add_member(&mut self, index: Index, member: MemberOrField) {
        if let Some((lane, position)) = lane_position_of_member(&index, &member) {
            self.lane_cache.add_position(lane, position);
        }
        let pending = self.pending_writes.entry(index).or_default();
        pending.removed.remove(&member);
        pending.added.insert(member);
    }

    pub(super) fn remove_member(&mut self, index: Index, member: MemberOrField) {
        if let Some((lane, position)) = lane_position_of_member(&index, &member) {
            self.lane_cache.remove_position(lane, position);
        }
        let pending = self.pending_writes.entry(index).or_default();
        pending.added.remove(&member);
        pending.removed.insert(member);
    }

    /// Returns how many members of a lane to fetch: one more for each pending removal.
    pub(super) fn lane_fetch_limit(&self, lane: i64) -> usize {
        let prefix = MemberBuilder::from_i64(lane).finish();
        let end = end_of_prefix(&prefix);
        LANE_MEMBERS_PER_FETCH
            + self
                .count_pending_removals_between(&Index::LanePositions, prefix_bounds(&prefix, end.as_deref()))
    }

    /// Caches the first members of a lane. Fewer members than requested mean that the lane is complete.
    pub(super) fn cache_lane_members(&mut self, lane: i64, members: Vec<MemberOrField>) -> TableResult<()> {
        let is_complete = members.len() < self.lane_fetch_limit(lane);
        let mut members: BTreeSet<MemberOrField> = members.into_iter().collect();
        if let Some(pending) = self.pending_writes.get(&Index::LanePositions) {
            let prefix = MemberBuilder::from_i64(lane).finish();
            let last = members.last().cloned();
            let added = pending.added.range::<[u8], _>((Bound::Included(&*prefix), Bound::Unbounded));
            let is_known_member =
                |member: &&MemberOrField| is_complete || last.as_ref().is_some_and(|last| *member < last);
            members.extend(added.take_while(|m| m.starts_with(&prefix)).filter(is_known_member).cloned());
            members.retain(|member| !pending.removed.contains(member));
        }
        let positions =
            members.iter().map(|member| decode_lane_position(member).map(|(_, position)| position));
        self.lane_cache.cache_lane(lane, positions.collect::<TableResult<_>>()?, is_complete);
        Ok(())
    }

    /// Caches a lane as empty in Redis, unless it is cached.
    pub(super) fn assume_lane_was_empty(&mut self, lane: i64) -> TableResult<()> {
        if self.lane_cache.is_cached(lane) { Ok(()) } else { self.cache_lane_members(lane, vec![]) }
    }

    pub(super) fn is_lane_cached(&self, lane: i64) -> bool {
        self.lane_cache.is_cached(lane)
    }

    /// Returns the cached first positions of a lane.
    pub(super) fn cached_lane_positions(&self, lane: i64) -> &[TaskAtLanePosition] {
        self.lane_cache.cached_positions(lane)
    }

    pub(super) fn count_pending_removals_between(&self, index: &Index, bounds: MemberBounds<'_>) -> usize {
        self.pending_writes.get(index).map_or(0, |pending| pending.removed.range::<[u8], _>(bounds).count())
    }

    /// Merges members that Redis returned for a range with pending writes.
    pub(super) fn merge_pending(
        &self,
        index: &Index,
        bounds: MemberBounds<'_>,
        scan_order: ScanOrder,
        limit: usize,
        mut found: Vec<MemberOrField>,
    ) -> Vec<MemberOrField> {
        let Some(pending) = self.pending_writes.get(index) else {
            found.truncate(limit);
            return found;
        };
        found.retain(|member| !pending.removed.contains(member) && !pending.added.contains(member));
        found.extend(pending.added.range::<[u8], _>(bounds).cloned());
        match scan_order {
            ScanOrder::Ascending => found.sort_unstable(),
            ScanOrder::Descending => found.sort_unstable_by(|a, b| b.cmp(a)),
        }
        found.truncate(limit);
        found
    }

    /// Returns the lanes with pending writes.
    pub(super) fn written_lanes(&self) -> BTreeSet<i64> {
        let Some(pending) = self.pending_writes.get(&Index::LanePositions) else { return BTreeSet::new() };
        let members = pending.added.iter().chain(&pending.removed);
        members.filter_map(|member| decode_lane_position(member).ok()).map(|(lane, _)| lane).collect()
    }

    /// Drops cached lanes that peers have written.
    pub(super) fn drop_invalidated(&mut self, record: &InvalidationRecord) {
        record.lanes.iter().for_each(|lane| self.lane_cache.evict_lane(*lane));
    }

    /// Clears the pending writes after their commit.
    pub(super) fn mark_committed(&mut self) {
        self.pending_writes.clear();
        self.lane_cache.clear_if_large();
    }

    /// Adds the commands for the pending writes.
    pub(super) fn push_write_commands(&self, keys: &Keys, writes: &mut CommandArgsBuffer) {
        for (index, pending) in &self.pending_writes {
            let key = keys.index_key(index);
            let added: Vec<&[u8]> = pending.added.iter().flat_map(|member| [b"0", &**member]).collect();
            let removed: Vec<&[u8]> = pending.removed.iter().map(|member| &**member).collect();
            writes.push_chunked_command_for_script(&[b"ZADD", &key], 2, &added);
            writes.push_chunked_command_for_script(&[b"ZREM", &key], 1, &removed);
        }
    }
}

/// Returns lane and position of an index member; `None` if the index is not that of lane positions.
fn lane_position_of_member(index: &Index, member: &[u8]) -> Option<(i64, TaskAtLanePosition)> {
    matches!(index, Index::LanePositions).then(|| decode_lane_position(member).ok()).flatten()
}

/// Returns the bounds of all members with a prefix; `end` is the first value after them.
pub(super) fn prefix_bounds<'b>(prefix: &'b [u8], end: Option<&'b [u8]>) -> MemberBounds<'b> {
    (Bound::Included(prefix), end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// Returns the command that reads the members between two bounds.
pub(super) fn member_range_command(
    key: Vec<u8>,
    (lower, upper): MemberBounds<'_>,
    scan_order: ScanOrder,
    limit: usize,
) -> CommandArgs {
    let format_bound = |bound: Bound<&[u8]>, unbounded: &str| match bound {
        Bound::Included(member) => [b"[", member].concat(),
        Bound::Excluded(member) => [b"(", member].concat(),
        Bound::Unbounded => to_arg(unbounded),
    };
    let (lower, upper) = (format_bound(lower, "-"), format_bound(upper, "+"));
    let limit = i64::try_from(limit).unwrap_or(-1).to_string();
    match scan_order {
        ScanOrder::Ascending => args!["ZRANGE", key, lower, upper, "BYLEX", "LIMIT", "0", limit],
        ScanOrder::Descending => args!["ZRANGE", key, upper, lower, "BYLEX", "REV", "LIMIT", "0", limit],
    }
}

/// Returns the smallest value after all values with a prefix; `None` if there is none.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use pointsman_testing::Rng;

    use super::super::lane_cache::MAX_CACHED_POSITIONS_PER_LANE;
    use super::*;

    const LANE: i64 = 7;

    fn lane_member(position: i64) -> MemberOrField {
        MemberBuilder::from_i64(LANE).push_i64(position).push_i64(position + 100).finish()
    }

    fn raw_member(text: &[u8]) -> MemberOrField {
        text.into()
    }

    fn cached_positions(indexes: &IndexOverlay) -> Vec<i64> {
        indexes.cached_lane_positions(LANE).iter().map(|(position, _)| *position).collect()
    }

    #[test]
    fn pending_writes_are_merged_into_cached_lanes() {
        for fetch_first in [true, false] {
            let mut indexes = IndexOverlay::default();
            let fetch = |indexes: &mut IndexOverlay| {
                // Redis returns as many as requested, including those for pending removals.
                let found = (1..).step_by(2).take(indexes.lane_fetch_limit(LANE)).map(lane_member).collect();
                indexes.cache_lane_members(LANE, found).unwrap();
            };
            if fetch_first {
                fetch(&mut indexes);
            }
            indexes.remove_member(Index::LanePositions, lane_member(1));
            indexes.add_member(Index::LanePositions, lane_member(2));
            indexes.add_member(Index::LanePositions, lane_member(99));
            if !fetch_first {
                fetch(&mut indexes);
            }
            assert_eq!(cached_positions(&indexes)[..3], [2, 3, 5]);
            assert!(!cached_positions(&indexes).contains(&99), "members after the fetched ones are unknown");
            for position in [2, 3, 5, 7, 9] {
                indexes.remove_member(Index::LanePositions, lane_member(position));
            }
            assert!(!indexes.is_lane_cached(LANE), "peers may have added earlier members");
        }
    }

    #[test]
    fn complete_lane_stays_cached_when_empty() {
        let mut indexes = IndexOverlay::default();
        indexes.cache_lane_members(LANE, vec![lane_member(1)]).unwrap();
        indexes.remove_member(Index::LanePositions, lane_member(1));
        assert!(indexes.is_lane_cached(LANE) && cached_positions(&indexes).is_empty());
        indexes.mark_committed();
        indexes.add_member(Index::LanePositions, lane_member(99));
        assert_eq!(cached_positions(&indexes), [99]);
    }

    #[test]
    fn long_lanes_cache_only_their_first_positions() {
        let mut indexes = IndexOverlay::default();
        indexes.cache_lane_members(LANE, vec![]).unwrap();
        let limit = MAX_CACHED_POSITIONS_PER_LANE as i64;
        (0..3 * limit)
            .rev()
            .for_each(|position| indexes.add_member(Index::LanePositions, lane_member(position)));
        assert!(cached_positions(&indexes).into_iter().eq(0..limit));
        (0..limit).for_each(|position| indexes.remove_member(Index::LanePositions, lane_member(position)));
        assert!(!indexes.is_lane_cached(LANE), "the next head must be fetched");
    }

    #[test]
    fn undecodable_lane_members_are_damaged() {
        assert!(IndexOverlay::default().cache_lane_members(LANE, vec![raw_member(b"lane")]).is_err());
    }

    /// Cached positions equal what Redis would return after the pending writes.
    #[test]
    fn cached_lane_matches_redis_after_random_writes() {
        let mut rng = Rng::new(7);
        for _ in 0..200 {
            let (mut indexes, mut committed, mut current) =
                (IndexOverlay::default(), BTreeSet::new(), BTreeSet::new());
            for _ in 0..300 {
                let position = rng.next_below(80) as i64;
                match rng.next_below(9) {
                    0..4 => {
                        indexes.add_member(Index::LanePositions, lane_member(position));
                        current.insert(position);
                    }
                    4..7 => {
                        let position = if rng.next_below(2) == 0 {
                            current.first().copied().unwrap_or(position)
                        } else {
                            position
                        };
                        indexes.remove_member(Index::LanePositions, lane_member(position));
                        current.remove(&position);
                    }
                    7 => {
                        let found =
                            committed.iter().take(indexes.lane_fetch_limit(LANE)).copied().map(lane_member);
                        indexes.cache_lane_members(LANE, found.collect()).unwrap();
                    }
                    _ => {
                        indexes.mark_committed();
                        committed.clone_from(&current);
                    }
                }
                let cached = cached_positions(&indexes);
                assert!(current.iter().take(cached.len()).eq(&cached), "{cached:?} of {current:?}");
                assert!(!indexes.is_lane_cached(LANE) || !cached.is_empty() || current.is_empty());
            }
        }
    }

    #[test]
    fn lane_assumed_empty_contains_pending_writes() {
        let mut indexes = IndexOverlay::default();
        indexes.add_member(Index::LanePositions, lane_member(3));
        indexes.assume_lane_was_empty(LANE).unwrap();
        assert_eq!(cached_positions(&indexes), [3]);
        indexes.assume_lane_was_empty(LANE).unwrap();
        assert_eq!(cached_positions(&indexes), [3], "cached positions stay");
    }

    #[test]
    fn ranges_include_pending_writes() {
        let mut indexes = IndexOverlay::default();
        let unbounded = (Bound::Unbounded, Bound::Unbounded);
        indexes.add_member(Index::DueTasks, raw_member(b"b"));
        indexes.remove_member(Index::DueTasks, raw_member(b"c"));
        assert_eq!(indexes.count_pending_removals_between(&Index::DueTasks, unbounded), 1);
        let found = || vec![raw_member(b"a"), raw_member(b"c"), raw_member(b"d")];
        assert_eq!(
            indexes.merge_pending(&Index::DueTasks, unbounded, ScanOrder::Ascending, 2, found()),
            [raw_member(b"a"), raw_member(b"b")]
        );
        assert_eq!(
            indexes.merge_pending(&Index::DueTasks, unbounded, ScanOrder::Descending, 2, found()),
            [raw_member(b"d"), raw_member(b"b")]
        );
        assert_eq!(
            indexes.merge_pending(&Index::LeaseExpiries, unbounded, ScanOrder::Ascending, 9, found()),
            found()
        );
    }

    #[test]
    fn end_of_prefix_is_the_next_possible_value() {
        assert_eq!(end_of_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((end_of_prefix(b"\xff"), end_of_prefix(b"")), (None, None));
    }

    #[test]
    fn invalidation_drops_only_written_lanes() {
        let (mut writer, mut peer) = (IndexOverlay::default(), IndexOverlay::default());
        let member_of = |lane: i64, position| {
            MemberBuilder::from_i64(lane).push_i64(position).push_i64(position).finish()
        };
        for lane in [-4, 5, 6, 7] {
            peer.cache_lane_members(lane, vec![member_of(lane, 1)]).unwrap();
        }
        writer.add_member(Index::LanePositions, member_of(-4, 2));
        writer.remove_member(Index::LanePositions, member_of(5, 1));
        writer.add_member(Index::LanePositions, member_of(6, 3));
        writer.remove_member(Index::LanePositions, member_of(6, 3));
        let lanes = writer.written_lanes();
        peer.drop_invalidated(&InvalidationRecord { lanes, ..InvalidationRecord::default() });
        assert_eq!([-4, 5, 6, 7].map(|lane| peer.is_lane_cached(lane)), [false, false, false, true]);
    }
}
