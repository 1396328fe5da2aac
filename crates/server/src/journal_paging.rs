//! Sizes of the pages that are read from the store and of the chunks that are sent.

use std::collections::VecDeque;
use std::sync::Arc;

use pointsman_core::Event;

/// Number of events in the next page, adapted so that a page takes about the same memory whatever the size of its
/// events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdaptivePageSize(usize);

const MIN_PAGE_EVENTS: usize = 1;
const MAX_PAGE_EVENTS: usize = 512;
/// Intended size of a page.
pub(crate) const TARGET_PAGE_BYTES: usize = 1 << 20;

impl Default for AdaptivePageSize {
    fn default() -> Self {
        Self(4)
    }
}

impl AdaptivePageSize {
    /// The limit for reading the next page, if at most `remaining` events are still to be read.
    pub(crate) fn next_limit(self, remaining: usize) -> usize {
        self.0.min(remaining)
    }

    /// Adapts to a page of `count` events that took `bytes`.
    pub(crate) fn adapt_to_page(&mut self, count: usize, bytes: usize) {
        if let Some(average_event_bytes) = bytes.checked_div(count) {
            self.0 = (TARGET_PAGE_BYTES / average_event_bytes.max(1)).clamp(MIN_PAGE_EVENTS, MAX_PAGE_EVENTS);
        }
    }
}

/// The memory that a page takes while it is sent: its events and the chunk being encoded.
pub(crate) fn page_memory_bytes(events: &[Arc<Event>]) -> usize {
    events.iter().map(|event| event_memory_bytes(event)).sum::<usize>() + TARGET_CHUNK_BYTES
}

fn event_memory_bytes(event: &Event) -> usize {
    let context: usize = event.context.iter().map(|(name, value)| name.len() + value.len()).sum();
    size_of::<Event>() + event.value.as_str().len() + context
}

/// Intended size of a chunk. A client that does not read costs one chunk; the events after it are shared with other
/// readers.
const TARGET_CHUNK_BYTES: usize = 64 << 10;

/// Takes events off a page and encodes them with `write` until the chunk is large enough.
pub(crate) fn encode_event_chunk(
    page: &mut VecDeque<Arc<Event>>,
    mut write: impl FnMut(&Event, &mut String),
) -> String {
    let mut text = String::new();
    while text.len() < TARGET_CHUNK_BYTES
        && let Some(event) = page.pop_front()
    {
        write(&event, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_events_make_small_pages() {
        let mut size = AdaptivePageSize::default();
        size.adapt_to_page(10, 10 << 20);
        assert_eq!(size.next_limit(usize::MAX), MIN_PAGE_EVENTS);
        size.adapt_to_page(10, 3_000);
        assert_eq!(size.next_limit(usize::MAX), MAX_PAGE_EVENTS);
        assert_eq!(size.next_limit(3), 3);
    }
}
