//! Pseudo-random numbers that are the same for the same seed on every machine.

/// A SplitMix64 generator: small, and random enough for tests.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates an independent generator for a part of a test, so that the parts do not influence each other.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.next_u64())
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to `bound - 1`; 0 if `bound` is 0.
    pub fn next_below(&mut self, bound: usize) -> usize {
        (self.next_u64() % bound.max(1) as u64) as usize
    }

    /// Returns true once in `times` calls on average.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.next_below(times) == 0
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn number_in(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next_u64() % (high - low + 1) as u64) as i64
    }

    /// Returns true in `percent` of a hundred calls on average.
    pub fn chance_percent(&mut self, percent: usize) -> bool {
        self.next_below(100) < percent
    }

    /// Picks one of the items. Panics if there are none.
    pub fn choose<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.next_below(items.len())]
    }

    /// Picks one of the items, if there is one.
    pub fn try_choose<'t, T>(&mut self, items: &'t [T]) -> Option<&'t T> {
        items.get(self.next_below(items.len()))
    }
}
