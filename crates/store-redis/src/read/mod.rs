//! Reads, each of one consistent snapshot. Independent rows are fetched in one round trip. Long
//! lists are read in chunks, so that a short page does not fetch a long one, and the cache of a chunk is
//! cleared before the next.

pub(crate) mod audit_and_fires;
pub(crate) mod journal;
pub(crate) mod list;
mod newest_first;
mod order_scan;
pub(crate) mod orders;
mod queue_names;
pub(crate) mod tasks;

use pointsman_store::views::MAX_PAGE_BYTES;

/// Maximum number of rows of the first chunk.
const FIRST_CHUNK: usize = 128;
/// Maximum number of rows of a chunk.
const MAX_CHUNK: usize = 1024;
/// Target for the maximum size of a chunk in bytes.
const MAX_CHUNK_BYTES: usize = MAX_PAGE_BYTES / 2;

/// Number of rows per fetch: at first the requested limit, then growing unless rows are large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSize(usize);

impl ChunkSize {
    pub(crate) fn for_limit(wanted: usize) -> Self {
        Self(wanted.clamp(1, FIRST_CHUNK))
    }

    pub(crate) fn rows(self) -> usize {
        self.0
    }

    /// Returns the size of the next chunk after one of this many bytes.
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
