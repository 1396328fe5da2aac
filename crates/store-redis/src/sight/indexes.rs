//! Members of indexes.

use std::collections::BTreeSet;
use std::ops::Bound;

use foldhash::HashMap;

use crate::batch::Batch;
use crate::codec::Member;
use crate::keys::{Index, Keys};
use crate::link::{Words, word, words};

/// Beyond so many groups all are forgotten.
const REMEMBERED: usize = 200_000;
/// So many first members of a group are fetched.
pub(super) const FIRST: usize = 4;

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

/// The first members of a group, as they are now.
#[derive(Debug, Default)]
struct Group {
    members: BTreeSet<Member>,
    /// There are no others.
    whole: bool,
}

#[derive(Debug, Default)]
pub(super) struct Indexes {
    written: HashMap<Index, Written>,
    groups: HashMap<(Index, Member), Group>,
}

impl Indexes {
    pub(super) fn add(&mut self, index: Index, member: Member) {
        if let Some(group) = self.group_of(&index, &member)
            && (group.whole || group.members.last().is_some_and(|last| member < *last))
        {
            group.members.insert(member.clone());
        }
        let written = self.written.entry(index).or_default();
        written.removed.remove(&member);
        written.added.insert(member);
    }

    pub(super) fn remove(&mut self, index: Index, member: Member) {
        if let Some(group) = self.group_of(&index, &member) {
            group.members.remove(&member);
        }
        let written = self.written.entry(index).or_default();
        written.added.remove(&member);
        written.removed.insert(member);
    }

    fn group_of(&mut self, index: &Index, member: &[u8]) -> Option<&mut Group> {
        let prefix = member.get(..index.group()?)?;
        self.groups.get_mut(&(index.clone(), prefix.into()))
    }

    /// The first members of a group were fetched.
    pub(super) fn fetched(&mut self, index: Index, prefix: Member, members: Vec<Member>, whole: bool) {
        let mut members: BTreeSet<Member> = members.into_iter().collect();
        let last = members.last().cloned();
        if let Some(written) = self.written.get(&index) {
            let added = written.added.range::<[u8], _>((Bound::Included(&*prefix), Bound::Unbounded));
            let known = |member: &&Member| whole || last.as_ref().is_some_and(|last| *member < last);
            members.extend(added.take_while(|m| m.starts_with(&prefix)).filter(known).cloned());
            members.retain(|member| !written.removed.contains(member));
        }
        self.groups.insert((index, prefix), Group { members, whole });
    }

    /// The first members of a group, if they are known.
    pub(super) fn known(&self, index: &Index, prefix: &[u8], most: usize) -> Option<Vec<Member>> {
        if index.group() != Some(prefix.len()) {
            return None;
        }
        let group = self.groups.get(&(index.clone(), prefix.into()))?;
        let enough = group.whole || group.members.len() >= most;
        enough.then(|| group.members.iter().take(most).cloned().collect())
    }

    /// The first members of a group, as far as they are known.
    pub(super) fn first_known(&self, index: &Index, prefix: &[u8], most: usize) -> Vec<Member> {
        let group = self.groups.get(&(index.clone(), prefix.into()));
        group.into_iter().flat_map(|group| group.members.iter().take(most).cloned()).collect()
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

    pub(super) fn settle(&mut self) {
        self.written.clear();
        if self.groups.len() > REMEMBERED {
            self.groups.clear();
        }
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
    use super::*;

    const LANE: &[u8] = b"lane-no1";

    fn member(text: &str) -> Member {
        format!("lane-no1{text}").into_bytes().into()
    }

    fn short(text: &[u8]) -> Member {
        text.into()
    }

    fn first(indexes: &Indexes, most: usize) -> Option<Vec<Member>> {
        indexes.known(&Index::Lanes, LANE, most)
    }

    #[test]
    fn what_is_written_is_seen_in_a_group_that_was_fetched_before_or_after() {
        for before in [true, false] {
            let mut indexes = Indexes::default();
            let fetch = |indexes: &mut Indexes| {
                let found = vec![member("a"), member("c"), member("e"), member("g")];
                indexes.fetched(Index::Lanes, LANE.into(), found, false);
            };
            if before {
                fetch(&mut indexes);
            }
            indexes.remove(Index::Lanes, member("a"));
            indexes.add(Index::Lanes, member("b"));
            indexes.add(Index::Lanes, member("z"));
            if !before {
                fetch(&mut indexes);
            }
            assert_eq!(first(&indexes, 2), Some(vec![member("b"), member("c")]));
            assert_eq!(first(&indexes, 5), None, "what comes behind the fetched ones is not known");
        }
    }

    #[test]
    fn a_whole_group_knows_that_it_is_empty() {
        let mut indexes = Indexes::default();
        indexes.fetched(Index::Lanes, LANE.into(), vec![member("a")], true);
        indexes.remove(Index::Lanes, member("a"));
        assert_eq!(first(&indexes, 1), Some(vec![]));
        indexes.settle();
        indexes.add(Index::Lanes, member("z"));
        assert_eq!(first(&indexes, 9), Some(vec![member("z")]));
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
}
