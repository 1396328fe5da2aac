//! A small random number generator that returns the same numbers for a seed on every machine.

/// The SplitMix64 generator.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number from 0 to below `n`.
    pub(crate) fn random_below(&mut self, n: usize) -> usize {
        (self.next_u64() % n.max(1) as u64) as usize
    }

    /// Returns a number from 1 to `n`.
    pub(crate) fn random_one_to(&mut self, n: usize) -> usize {
        1 + self.random_below(n)
    }

    /// Returns true with this probability.
    pub(crate) fn chance_percent(&mut self, percent: usize) -> bool {
        self.random_below(100) < percent
    }

    /// Returns a random item of a non-empty slice.
    pub(crate) fn choose<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.random_below(items.len())]
    }

    /// Returns a random item, if there is one.
    pub(crate) fn try_choose<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.random_below(items.len()))
    }
}
