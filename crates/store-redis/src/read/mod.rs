//! All that reads, each read of one moment. What does not depend on each other is looked at in one way there and back. Long
//! lists come in pieces, each behind the last, so that a short page does not fetch a long one, and what a piece brought is
//! forgotten before the next.

pub(crate) mod audit_and_fires;
pub(crate) mod journal;
pub(crate) mod list;
mod newest_first;
mod order_scan;
pub(crate) mod orders;
mod queue_names;
pub(crate) mod tasks;

use pointsman_store::views::PAGE_BYTES;

/// So many things are asked for at first, at most.
const FIRST_CHUNK: usize = 128;
/// So many come in one piece.
const MAX_CHUNK: usize = 1024;
/// So many bytes are meant to come in one piece at most.
const MAX_CHUNK_BYTES: usize = PAGE_BYTES / 2;

/// How many things are asked for at a time: at first as many as are wanted, then more and more, unless they are big.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSize(usize);

impl ChunkSize {
    pub(crate) fn for_limit(wanted: usize) -> Self {
        Self(wanted.clamp(1, FIRST_CHUNK))
    }

    pub(crate) fn rows(self) -> usize {
        self.0
    }

    /// For the next piece, after one of so many bytes.
    pub(crate) fn next_after(self, bytes: usize) -> Self {
        if bytes <= MAX_CHUNK_BYTES / 4 {
            Self((self.0 * 4).min(MAX_CHUNK))
        } else if bytes <= MAX_CHUNK_BYTES {
            self
        } else {
            Self((self.0 / 4).max(1))
        }
    }

    fn is_max(self) -> bool {
        self.0 == MAX_CHUNK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_until_they_are_large() {
        let chunk = ChunkSize::for_limit(usize::MAX).next_after(10);
        assert_eq!(chunk.rows(), FIRST_CHUNK * 4);
        assert!(chunk.next_after(10).is_max());
        assert_eq!(chunk.next_after(MAX_CHUNK_BYTES / 4 + 1).rows(), chunk.rows());
        assert_eq!(chunk.next_after(MAX_CHUNK_BYTES + 1).rows(), FIRST_CHUNK);
        assert_eq!(ChunkSize::for_limit(0).next_after(MAX_CHUNK_BYTES + 1).rows(), 1);
    }
}
