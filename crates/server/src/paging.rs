//! How much is read from the store at a time, and how much is sent.

use std::collections::VecDeque;
use std::sync::Arc;

use pointsman_core::Event;

/// How many events the next page holds, so that a page takes about a constant amount of memory whatever the
/// size of its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSize(usize);

const MIN_EVENTS: usize = 1;
const MAX_EVENTS: usize = 512;
/// The bytes that a page is meant to have.
pub(crate) const TARGET_PAGE_BYTES: usize = 1 << 20;

impl Default for PageSize {
    fn default() -> Self {
        Self(4)
    }
}

impl PageSize {
    /// The size of the next page if at most `wanted` are wanted.
    pub(crate) fn next_limit(self, remaining: usize) -> usize {
        self.0.min(remaining)
    }

    /// Learns from a page of `count` events in `bytes`.
    pub(crate) fn adapt(&mut self, count: usize, bytes: usize) {
        if let Some(event_bytes_average) = bytes.checked_div(count) {
            self.0 = (TARGET_PAGE_BYTES / event_bytes_average.max(1)).clamp(MIN_EVENTS, MAX_EVENTS);
        }
    }
}

/// The memory that a page takes while it is sent: its events, and the piece of text that is being written.
pub(crate) fn page_bytes(events: &[Arc<Event>]) -> usize {
    events.iter().map(|event| event_bytes(event)).sum::<usize>() + CHUNK_BYTES
}

fn event_bytes(event: &Event) -> usize {
    let context: usize = event.context.iter().map(|(name, value)| name.len() + value.len()).sum();
    size_of::<Event>() + event.value.as_str().len() + context
}

/// How much of a page is written out at a time. A reader that does not read holds one such piece; the events
/// behind it are shared with all who follow.
const CHUNK_BYTES: usize = 64 << 10;

/// Takes events off a page and writes them, until there is enough to send.
pub(crate) fn encode_chunk(
    page: &mut VecDeque<Arc<Event>>,
    mut write: impl FnMut(&Event, &mut String),
) -> String {
    let mut text = String::new();
    while text.len() < CHUNK_BYTES
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
        let mut size = PageSize::default();
        size.adapt(10, 10 << 20);
        assert_eq!(size.next_limit(usize::MAX), MIN_EVENTS);
        size.adapt(10, 3_000);
        assert_eq!(size.next_limit(usize::MAX), MAX_EVENTS);
        assert_eq!(size.next_limit(3), 3);
    }
}
