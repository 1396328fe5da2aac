//! Sets of small numbers, one bit a number, and the two directions a search can go in.

/// Which way a search goes. The rules are the same both ways, so they are written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forward,
    Backward,
}

impl Way {
    /// Where a walk through `low..=high` begins.
    pub(super) fn start<T>(self, low: T, high: T) -> T {
        match self {
            Self::Forward => low,
            Self::Backward => high,
        }
    }
}

/// A set of numbers from 0 to 62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Bits(u64);

impl Bits {
    pub(super) fn of(members: impl IntoIterator<Item = u8>) -> Self {
        let mut set = Self::default();
        members.into_iter().for_each(|member| set.insert(member));
        set
    }

    /// `low..=high`, which must not be empty.
    pub(super) const fn span(low: u8, high: u8) -> Self {
        Self((u64::MAX >> (63 - high)) & (u64::MAX << low))
    }

    pub(super) const fn from_raw(raw: u64) -> Self {
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

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u8> + Clone {
        let mut rest = self;
        std::iter::from_fn(move || {
            let member = (!rest.is_empty()).then(|| rest.edge(Way::Forward))?;
            rest.0 &= rest.0 - 1;
            Some(member)
        })
    }

    /// The nearest member, `from` itself or further along.
    pub(super) fn seek(self, from: u8, way: Way) -> Option<u8> {
        let rest = match way {
            Way::Forward => self.0 & (u64::MAX << from),
            Way::Backward => self.0 & (u64::MAX >> (63 - from)),
        };
        (rest != 0).then(|| Self(rest).edge(way))
    }

    /// The nearest member beyond `from`.
    pub(super) fn beyond(self, from: u8, way: Way) -> Option<u8> {
        match way {
            Way::Forward => self.seek(from + 1, way),
            Way::Backward => self.seek(from.checked_sub(1)?, way),
        }
    }

    /// The member that a walk in this direction meets first; the set must not be empty.
    pub(super) fn edge(self, way: Way) -> u8 {
        let place = match way {
            Way::Forward => self.0.trailing_zeros(),
            Way::Backward => 63 - self.0.leading_zeros().min(63),
        };
        place as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_finds_the_nearest_member_both_ways() {
        let set = Bits::of([0, 15, 59]);
        assert_eq!(set.seek(0, Way::Forward), Some(0));
        assert_eq!(set.seek(1, Way::Forward), Some(15));
        assert_eq!(set.beyond(15, Way::Forward), Some(59));
        assert_eq!(set.beyond(59, Way::Forward), None);
        assert_eq!(set.seek(58, Way::Backward), Some(15));
        assert_eq!(set.beyond(15, Way::Backward), Some(0));
        assert_eq!(set.beyond(0, Way::Backward), None);
        assert_eq!((set.edge(Way::Forward), set.edge(Way::Backward)), (0, 59));
    }

    #[test]
    fn a_span_holds_its_ends() {
        let set = Bits::span(1, 31);
        assert_eq!(set.len(), 31);
        assert!(set.contains(1) && set.contains(31) && !set.contains(0) && !set.contains(32));
    }
}
