//! All that reads, each read of one moment. What does not depend on each other is looked at in one way there and back. Long
//! lists come in pieces, each behind the last, so that a short page does not fetch a long one, and what a piece brought is
//! forgotten before the next.

mod descending;
pub(crate) mod journal;
pub(crate) mod list;
mod names;
pub(crate) mod orders;
pub(crate) mod people;
pub(crate) mod tasks;
mod walk;

use pointsman_store::views::PAGE_BYTES;

/// So many things are asked for at first, at most.
const FIRST: usize = 128;
/// So many come in one piece.
const MOST: usize = 1024;
/// So many bytes are meant to come in one piece at most.
const HEAVY: usize = PAGE_BYTES / 2;

/// How many things are asked for at a time: at first as many as are wanted, then more and more, unless they are big.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk(usize);

impl Chunk {
    pub(crate) fn of(wanted: usize) -> Self {
        Self(wanted.clamp(1, FIRST))
    }

    pub(crate) fn size(self) -> usize {
        self.0
    }

    /// For the next piece, after one of so many bytes.
    pub(crate) fn after(self, bytes: usize) -> Self {
        if bytes <= HEAVY / 4 {
            Self((self.0 * 4).min(MOST))
        } else if bytes <= HEAVY {
            self
        } else {
            Self((self.0 / 4).max(1))
        }
    }

    fn is_full(self) -> bool {
        self.0 == MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_grow_until_they_are_heavy() {
        let chunk = Chunk::of(usize::MAX).after(10);
        assert_eq!(chunk.size(), FIRST * 4);
        assert!(chunk.after(10).is_full());
        assert_eq!(chunk.after(HEAVY / 4 + 1).size(), chunk.size());
        assert_eq!(chunk.after(HEAVY + 1).size(), FIRST);
        assert_eq!(Chunk::of(0).after(HEAVY + 1).size(), 1);
    }
}
