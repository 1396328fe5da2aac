//! Sets of small numbers as bit masks, and the two directions of a search.

/// The direction of a search through time. The rules are the same in both, so they are written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Backward,
}

impl Direction {
    /// Returns the first argument for [`Direction::Forward`], the second for [`Direction::Backward`].
    pub(super) fn select<T>(self, forward: T, backward: T) -> T {
        match self {
            Self::Forward => forward,
            Self::Backward => backward,
        }
    }
}

/// A set of numbers from 0 to 62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct NumberSet(u64);

impl NumberSet {
    pub(super) fn from_members(members: impl IntoIterator<Item = u8>) -> Self {
        let mut set = Self::default();
        members.into_iter().for_each(|member| set.insert(member));
        set
    }

    /// The set of all numbers in `low..=high`, which must not be empty.
    pub(super) const fn from_range(low: u8, high: u8) -> Self {
        Self((u64::MAX >> (63 - high)) & (u64::MAX << low))
    }

    pub(super) const fn from_bits(raw: u64) -> Self {
        Self(raw)
    }

    pub(super) fn insert(&mut self, member: u8) {
        self.0 |= 1 << member;
    }

    pub(super) fn contains(self, member: u8) -> bool {
        self.0 >> member & 1 == 1
    }

    pub(super) fn len(self) -> u32 {
        self.0.count_ones()
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u8> + Clone {
        let mut rest = self;
        std::iter::from_fn(move || {
            let member = (!rest.is_empty()).then(|| rest.first_in_direction(Direction::Forward))?;
            rest.0 &= rest.0 - 1;
            Some(member)
        })
    }

    /// The member nearest to `from` in this direction, `from` included.
    pub(super) fn find_at_or_beyond(self, from: u8, direction: Direction) -> Option<u8> {
        let rest = match direction {
            Direction::Forward => self.0 & (u64::MAX << from),
            Direction::Backward => self.0 & (u64::MAX >> (63 - from)),
        };
        (rest != 0).then(|| Self(rest).first_in_direction(direction))
    }

    /// The member nearest to `from` in this direction, `from` excluded.
    pub(super) fn find_beyond(self, from: u8, direction: Direction) -> Option<u8> {
        match direction {
            Direction::Forward => self.find_at_or_beyond(from + 1, direction),
            Direction::Backward => self.find_at_or_beyond(from.checked_sub(1)?, direction),
        }
    }

    /// The lowest member for a search forward, the highest for one backward; the set must not be empty.
    pub(super) fn first_in_direction(self, direction: Direction) -> u8 {
        let position = match direction {
            Direction::Forward => self.0.trailing_zeros(),
            Direction::Backward => 63 - self.0.leading_zeros().min(63),
        };
        position as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_the_nearest_member_in_both_directions() {
        let set = NumberSet::from_members([0, 15, 59]);
        assert_eq!(set.find_at_or_beyond(0, Direction::Forward), Some(0));
        assert_eq!(set.find_at_or_beyond(1, Direction::Forward), Some(15));
        assert_eq!(set.find_beyond(15, Direction::Forward), Some(59));
        assert_eq!(set.find_beyond(59, Direction::Forward), None);
        assert_eq!(set.find_at_or_beyond(58, Direction::Backward), Some(15));
        assert_eq!(set.find_beyond(15, Direction::Backward), Some(0));
        assert_eq!(set.find_beyond(0, Direction::Backward), None);
        assert_eq!(
            (set.first_in_direction(Direction::Forward), set.first_in_direction(Direction::Backward)),
            (0, 59)
        );
    }

    #[test]
    fn a_range_contains_both_ends() {
        let set = NumberSet::from_range(1, 31);
        assert_eq!(set.len(), 31);
        assert!(set.contains(1) && set.contains(31) && !set.contains(0) && !set.contains(32));
    }
}
