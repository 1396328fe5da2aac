//! Members of indexes.

use std::collections::BTreeSet;
use std::ops::Bound;

use foldhash::HashMap;
use pointsman_store::error::Result;

use super::Touched;
use super::lanes::{Lanes, Stand, stand_of};
use crate::batch::Batch;
use crate::codec::{Member, Ordered};
use crate::keys::{Index, Keys};
use crate::link::{Words, word, words};

/// So many first places of a lane are fetched.
const FIRST: usize = 4;

type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// In which order members are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
}

/// What was written to an index and not yet sent.
#[derive(Debug, Default)]
struct Written {
    added: BTreeSet<Member>,
    removed: BTreeSet<Member>,
}

#[derive(Debug, Default)]
pub(super) struct Indexes {
    written: HashMap<Index, Written>,
    /// As they are with all that was written.
    lanes: Lanes,
}

impl Indexes {
    pub(super) fn add(&mut self, index: Index, member: Member) {
        if let Some((lane, stand)) = lane_of(&index, &member) {
            self.lanes.add(lane, stand);
        }
        let written = self.written.entry(index).or_default();
        written.removed.remove(&member);
        written.added.insert(member);
    }

    pub(super) fn remove(&mut self, index: Index, member: Member) {
        if let Some((lane, stand)) = lane_of(&index, &member) {
            self.lanes.remove(lane, stand);
        }
        let written = self.written.entry(index).or_default();
        written.added.remove(&member);
        written.removed.insert(member);
    }

    /// How many first members of a lane are to be asked for: as many more as were taken out of it.
    pub(super) fn most_of_lane(&self, lane: i64) -> usize {
        let prefix = Ordered::of(lane).done();
        let end = after_prefix(&prefix);
        FIRST + self.removed_between(&Index::Lanes, prefixed(&prefix, end.as_deref()))
    }

    /// The first members of a lane were fetched; there are no others, if they are fewer than were asked for.
    pub(super) fn fetched_lane(&mut self, lane: i64, members: Vec<Member>) -> Result<()> {
        let whole = members.len() < self.most_of_lane(lane);
        let mut members: BTreeSet<Member> = members.into_iter().collect();
        if let Some(written) = self.written.get(&Index::Lanes) {
            let prefix = Ordered::of(lane).done();
            let last = members.last().cloned();
            let added = written.added.range::<[u8], _>((Bound::Included(&*prefix), Bound::Unbounded));
            let known = |member: &&Member| whole || last.as_ref().is_some_and(|last| *member < last);
            members.extend(added.take_while(|m| m.starts_with(&prefix)).filter(known).cloned());
            members.retain(|member| !written.removed.contains(member));
        }
        let stands = members.iter().map(|member| stand_of(member).map(|(_, stand)| stand));
        self.lanes.fetched(lane, stands.collect::<Result<_>>()?, whole);
        Ok(())
    }

    /// Nobody was in this lane when the transaction began.
    pub(super) fn knows_empty_at_first(&mut self, lane: i64) -> Result<()> {
        if self.lanes.knows(lane) { Ok(()) } else { self.fetched_lane(lane, vec![]) }
    }

    pub(super) fn knows_lane(&self, lane: i64) -> bool {
        self.lanes.knows(lane)
    }

    /// Who stands first in a lane, as far as that is known.
    pub(super) fn first_in_lane(&self, lane: i64) -> &[Stand] {
        self.lanes.first(lane)
    }

    pub(super) fn removed_between(&self, index: &Index, bounds: Bounds<'_>) -> usize {
        self.written.get(index).map_or(0, |written| written.removed.range::<[u8], _>(bounds).count())
    }

    /// What lies between these bounds, if Redis has found this.
    pub(super) fn merge(
        &self,
        index: &Index,
        bounds: Bounds<'_>,
        way: Way,
        most: usize,
        mut found: Vec<Member>,
    ) -> Vec<Member> {
        let Some(written) = self.written.get(index) else {
            found.truncate(most);
            return found;
        };
        found.retain(|member| !written.removed.contains(member) && !written.added.contains(member));
        found.extend(written.added.range::<[u8], _>(bounds).cloned());
        match way {
            Way::Up => found.sort_unstable(),
            Way::Down => found.sort_unstable_by(|a, b| b.cmp(a)),
        }
        found.truncate(most);
        found
    }

    /// The lanes that something was written to.
    pub(super) fn touched_lanes(&self) -> BTreeSet<i64> {
        let Some(written) = self.written.get(&Index::Lanes) else { return BTreeSet::new() };
        let members = written.added.iter().chain(&written.removed);
        members.filter_map(|member| stand_of(member).ok()).map(|(lane, _)| lane).collect()
    }

    pub(super) fn hear(&mut self, touched: &Touched) {
        touched.lanes.iter().for_each(|lane| self.lanes.forget(*lane));
    }

    pub(super) fn settle(&mut self) {
        self.written.clear();
        self.lanes.settle();
    }

    pub(super) fn write(&self, keys: &Keys, writes: &mut Batch) {
        for (index, written) in &self.written {
            let key = keys.index(index);
            let added: Vec<&[u8]> = written.added.iter().flat_map(|member| [b"0", &**member]).collect();
            let removed: Vec<&[u8]> = written.removed.iter().map(|member| &**member).collect();
            writes.write_many(&[b"ZADD", &key], 2, &added);
            writes.write_many(&[b"ZREM", &key], 1, &removed);
        }
    }
}

/// The place in a lane that a member of this index tells of.
fn lane_of(index: &Index, member: &[u8]) -> Option<(i64, Stand)> {
    matches!(index, Index::Lanes).then(|| stand_of(member).ok()).flatten()
}

/// The bounds of what begins so; `end` is what comes after all of that.
pub(super) fn prefixed<'b>(prefix: &'b [u8], end: Option<&'b [u8]>) -> Bounds<'b> {
    (Bound::Included(prefix), end.map_or(Bound::Unbounded, Bound::Excluded))
}

/// The command that finds what lies between two bounds.
pub(super) fn range_words(key: Vec<u8>, (lower, upper): Bounds<'_>, way: Way, most: usize) -> Words {
    let bound = |bound: Bound<&[u8]>, none: &str| match bound {
        Bound::Included(member) => [b"[", member].concat(),
        Bound::Excluded(member) => [b"(", member].concat(),
        Bound::Unbounded => word(none),
    };
    let (lower, upper) = (bound(lower, "-"), bound(upper, "+"));
    let most = i64::try_from(most).unwrap_or(-1).to_string();
    match way {
        Way::Up => words!["ZRANGE", key, lower, upper, "BYLEX", "LIMIT", "0", most],
        Way::Down => words!["ZRANGE", key, upper, lower, "BYLEX", "REV", "LIMIT", "0", most],
    }
}

/// The least of what comes after all that begins with these bytes; nothing if nothing can.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix.get(..=last)?.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use pointsman_testing::Chance;

    use super::super::lanes::PLACES;
    use super::*;

    const LANE: i64 = 7;

    fn member(place: i64) -> Member {
        Ordered::of(LANE).and(place).and(place + 100).done()
    }

    fn short(text: &[u8]) -> Member {
        text.into()
    }

    fn places(indexes: &Indexes) -> Vec<i64> {
        indexes.first_in_lane(LANE).iter().map(|(place, _)| *place).collect()
    }

    #[test]
    fn what_is_written_is_seen_in_a_lane_that_was_fetched_before_or_after() {
        for before in [true, false] {
            let mut indexes = Indexes::default();
            let fetch = |indexes: &mut Indexes| {
                // Whoever asks for more because of what was taken out is given more.
                let found = (1..).step_by(2).take(indexes.most_of_lane(LANE)).map(member).collect();
                indexes.fetched_lane(LANE, found).unwrap();
            };
            if before {
                fetch(&mut indexes);
            }
            indexes.remove(Index::Lanes, member(1));
            indexes.add(Index::Lanes, member(2));
            indexes.add(Index::Lanes, member(99));
            if !before {
                fetch(&mut indexes);
            }
            assert_eq!(places(&indexes)[..3], [2, 3, 5]);
            assert!(!places(&indexes).contains(&99), "what comes behind the fetched ones is not known");
            for place in [2, 3, 5, 7, 9] {
                indexes.remove(Index::Lanes, member(place));
            }
            assert!(!indexes.knows_lane(LANE), "others may have come first by now");
        }
    }

    #[test]
    fn a_whole_lane_knows_that_it_is_empty() {
        let mut indexes = Indexes::default();
        indexes.fetched_lane(LANE, vec![member(1)]).unwrap();
        indexes.remove(Index::Lanes, member(1));
        assert!(indexes.knows_lane(LANE) && places(&indexes).is_empty());
        indexes.settle();
        indexes.add(Index::Lanes, member(99));
        assert_eq!(places(&indexes), [99]);
    }

    #[test]
    fn of_a_long_lane_the_first_places_are_remembered() {
        let mut indexes = Indexes::default();
        indexes.fetched_lane(LANE, vec![]).unwrap();
        let most = PLACES as i64;
        (0..3 * most).rev().for_each(|place| indexes.add(Index::Lanes, member(place)));
        assert!(places(&indexes).into_iter().eq(0..most));
        (0..most).for_each(|place| indexes.remove(Index::Lanes, member(place)));
        assert!(!indexes.knows_lane(LANE), "who comes then must be asked for");
    }

    #[test]
    fn a_member_that_is_none_is_damaged() {
        assert!(Indexes::default().fetched_lane(LANE, vec![short(b"lane")]).is_err());
    }

    /// What is remembered is what Redis would answer with all that was written, as far as it goes.
    #[test]
    fn what_is_remembered_of_a_lane_is_never_wrong() {
        let mut chance = Chance::new(7);
        for _ in 0..200 {
            let (mut indexes, mut sent, mut now) = (Indexes::default(), BTreeSet::new(), BTreeSet::new());
            for _ in 0..300 {
                let place = chance.below(80) as i64;
                match chance.below(9) {
                    0..4 => {
                        indexes.add(Index::Lanes, member(place));
                        now.insert(place);
                    }
                    4..7 => {
                        let place =
                            if chance.below(2) == 0 { now.first().copied().unwrap_or(place) } else { place };
                        indexes.remove(Index::Lanes, member(place));
                        now.remove(&place);
                    }
                    7 => {
                        let found = sent.iter().take(indexes.most_of_lane(LANE)).copied().map(member);
                        indexes.fetched_lane(LANE, found.collect()).unwrap();
                    }
                    _ => {
                        indexes.settle();
                        sent.clone_from(&now);
                    }
                }
                let known = places(&indexes);
                assert!(now.iter().take(known.len()).eq(&known), "{known:?} of {now:?}");
                assert!(!indexes.knows_lane(LANE) || !known.is_empty() || now.is_empty());
            }
        }
    }

    #[test]
    fn a_lane_of_a_new_object_has_what_was_put_there() {
        let mut indexes = Indexes::default();
        indexes.add(Index::Lanes, member(3));
        indexes.knows_empty_at_first(LANE).unwrap();
        assert_eq!(places(&indexes), [3]);
        indexes.knows_empty_at_first(LANE).unwrap();
        assert_eq!(places(&indexes), [3], "what is known stays");
    }

    #[test]
    fn ranges_take_what_is_written_into_account() {
        let mut indexes = Indexes::default();
        let all = (Bound::Unbounded, Bound::Unbounded);
        indexes.add(Index::Due, short(b"b"));
        indexes.remove(Index::Due, short(b"c"));
        assert_eq!(indexes.removed_between(&Index::Due, all), 1);
        let found = || vec![short(b"a"), short(b"c"), short(b"d")];
        assert_eq!(indexes.merge(&Index::Due, all, Way::Up, 2, found()), [short(b"a"), short(b"b")]);
        assert_eq!(indexes.merge(&Index::Due, all, Way::Down, 2, found()), [short(b"d"), short(b"b")]);
        assert_eq!(indexes.merge(&Index::Leases, all, Way::Up, 9, found()), found());
    }

    #[test]
    fn the_end_of_a_prefix() {
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((after_prefix(b"\xff"), after_prefix(b"")), (None, None));
    }

    #[test]
    fn lanes_that_another_has_written_to_are_forgotten_and_the_rest_are_known() {
        let (mut one, mut other) = (Indexes::default(), Indexes::default());
        let of = |lane: i64, place| Ordered::of(lane).and(place).and(place).done();
        for lane in [-4, 5, 6, 7] {
            other.fetched_lane(lane, vec![of(lane, 1)]).unwrap();
        }
        one.add(Index::Lanes, of(-4, 2));
        one.remove(Index::Lanes, of(5, 1));
        one.add(Index::Lanes, of(6, 3));
        one.remove(Index::Lanes, of(6, 3));
        let lanes = one.touched_lanes();
        other.hear(&Touched { lanes, ..Touched::default() });
        assert_eq!([-4, 5, 6, 7].map(|lane| other.knows_lane(lane)), [false, false, false, true]);
    }
}
