//! The response memory of streams that follow the journal or a log.

use std::time::Duration;

use super::{MAX_UNCOUNTED_RESPONSE_BYTES, ResponseMemoryPermit};
use crate::app_state::App;
use crate::auth::Caller;

/// How long a stream waits for memory: less than the interval of keep-alive messages, which its client expects.
const MAX_MEMORY_WAIT: Duration = Duration::from_secs(10);

/// The memory of the page that a stream is sending, reserved until the next page is read.
#[derive(Debug, Default)]
pub(crate) struct StreamMemory(Option<ResponseMemoryPermit>);

impl StreamMemory {
    /// Reserves memory for a page that has been read. Returns false if there is not enough memory: the page must be
    /// dropped.
    pub(crate) fn reserve_for_page(&mut self, app: &App, caller: &Caller, bytes: usize) -> bool {
        if bytes > self.0.as_ref().map_or(MAX_UNCOUNTED_RESPONSE_BYTES, ResponseMemoryPermit::bytes) {
            // The previous page has been sent.
            self.release();
            self.0 = app.response_memory_budget.reserve(caller, bytes).ok();
            return self.0.is_some();
        }
        true
    }

    /// Waits for memory to read a dropped page again. Returns false if no memory becomes free in time: the stream must
    /// end, and its client can resume it.
    pub(crate) async fn wait_for_memory(&mut self, app: &App, caller: &Caller, bytes: usize) -> bool {
        let waiting = app.response_memory_budget.reserve_with_timeout(caller, bytes, MAX_MEMORY_WAIT);
        self.0 = app.stop_signal.run_until_cancelled(waiting).await.flatten();
        self.0.is_some()
    }

    pub(crate) fn release(&mut self) {
        self.0 = None;
    }
}
