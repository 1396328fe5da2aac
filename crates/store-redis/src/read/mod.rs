//! The queries of the store: each reads one consistent snapshot. Independent rows are fetched in one round trip. Long lists
//! are read in chunks, so that a short page fetches few rows, and the cache is cleared between chunks, to limit memory.

pub(crate) mod audit_and_fires;
pub(crate) mod journal;
mod newest_first_tasks;
mod order_scan;
pub(crate) mod orders;
mod queue_names;
pub(crate) mod task_list;
pub(crate) mod tasks;

use pointsman_store::views::MAX_PAGE_PAYLOAD_BYTES;

/// Maximum number of rows of the first chunk.
const MAX_FIRST_CHUNK_ROWS: usize = 128;
/// Maximum number of rows of a chunk.
const MAX_CHUNK_ROWS: usize = 1024;
/// Size of a chunk in bytes above which the next one has fewer rows.
const TARGET_CHUNK_BYTES: usize = MAX_PAGE_PAYLOAD_BYTES / 2;

/// Number of rows of the next chunk: at first the requested limit, then growing unless rows are large.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkSize(usize);

impl ChunkSize {
    pub(crate) fn for_limit(limit: usize) -> Self {
        Self(limit.clamp(1, MAX_FIRST_CHUNK_ROWS))
    }

    pub(crate) fn rows(self) -> usize {
        self.0
    }

    /// Returns the size of the next chunk after one of this many bytes.
    pub(crate) fn next_after(self, bytes: usize) -> Self {
        if bytes <= TARGET_CHUNK_BYTES / 4 {
            Self((self.0 * 4).min(MAX_CHUNK_ROWS))
        } else if bytes <= TARGET_CHUNK_BYTES {
            self
        } else {
            Self((self.0 / 4).max(1))
        }
    }

    fn is_max(self) -> bool {
        self.0 == MAX_CHUNK_ROWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_until_they_are_large() {
        let chunk = ChunkSize::for_limit(usize::MAX).next_after(10);
        assert_eq!(chunk.rows(), MAX_FIRST_CHUNK_ROWS * 4);
        assert!(chunk.next_after(10).is_max());
        assert_eq!(chunk.next_after(TARGET_CHUNK_BYTES / 4 + 1).rows(), chunk.rows());
        assert_eq!(chunk.next_after(TARGET_CHUNK_BYTES + 1).rows(), MAX_FIRST_CHUNK_ROWS);
        assert_eq!(ChunkSize::for_limit(0).next_after(TARGET_CHUNK_BYTES + 1).rows(), 1);
    }
}
