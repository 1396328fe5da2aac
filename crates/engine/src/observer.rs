//! The observer: reads the journal for its followers.
//!
//! ```text
//!   store ──a commit─▶ signals ─▶ filler ──one read──▶ tail (in memory) ─▶ a thousand readers
//!     └──────────────────────────── far behind the head ───────────────▶ each for itself
//! ```
//!
//! While somebody follows the journal, one filler reads new events once after each commit, and all followers read them
//! from memory. A follower that waits for certain events is woken only by those ([`Observer::wait_for_matching_event`]). When
//! nobody has read for a while, the tail is dropped, and the journal is not read until somebody reads again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use pointsman_core::journal::{EventFilter, EventPage, JournalRange};
use pointsman_core::store::{Journal, JournalQuery, StoreError};
use pointsman_core::{ErrorChain, EventId};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::followers::{Follower, Followers};
use crate::journal_tail::JournalTail;
use crate::metrics::Metrics;
use crate::time::StoreBackoff;
use crate::wake_signals::WakeSignals;

/// How long the tail is kept without a reader.
const TAIL_IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the filler waits for a signal before it reads anyway.
const JOURNAL_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a reader waits for the filler to catch up before it reads from the store.
const TAIL_CATCH_UP_TIMEOUT: Duration = Duration::from_millis(100);
/// The number of events that the filler reads at a time.
const MAX_EVENTS_PER_FILLER_READ: usize = 2_000;

/// Reads the journal for its followers: from memory near the head, from the store otherwise.
pub struct Observer {
    journal: Arc<dyn Journal>,
    metrics: Arc<Metrics>,
    journal_tail: RwLock<Option<JournalTail>>,
    wake_signals: Arc<WakeSignals>,
    /// The newest id that the tail has reached.
    tail_filled_up_to_event: watch::Sender<EventId>,
    followers: Arc<Followers>,
    /// The number of followers that wait for new events.
    waiting_follower_count: AtomicUsize,
    /// When somebody last read the journal through this observer; `None` before the first read.
    last_read_at: Mutex<Option<Instant>>,
    filler_wakeup: Notify,
    stopped_signal: CancellationToken,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer")
            .field("head", &*self.wake_signals.journal_head.borrow())
            .finish_non_exhaustive()
    }
}

impl Observer {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        metrics: Arc<Metrics>,
        wake_signals: Arc<WakeSignals>,
    ) -> Self {
        Self {
            journal,
            metrics,
            journal_tail: RwLock::new(None),
            wake_signals,
            tail_filled_up_to_event: watch::Sender::new(EventId::ZERO),
            followers: Arc::default(),
            waiting_follower_count: AtomicUsize::new(0),
            last_read_at: Mutex::default(),
            filler_wakeup: Notify::new(),
            stopped_signal: CancellationToken::new(),
        }
    }

    /// Reads matching events after `after` and up to `until`, at most `limit` and possibly fewer: continue after
    /// `page.scanned_up_to`. Does not wait for new events. `page.journal_range` shows whether `after` is torn.
    pub async fn read_page(
        &self,
        filter: &EventFilter,
        after: EventId,
        until: Option<EventId>,
        limit: usize,
    ) -> Result<EventPage, StoreError> {
        self.record_read_and_wake_filler();
        if self.has_tail() {
            // Events that were committed before this call must be in the page.
            let journal_head = *self.wake_signals.journal_head.borrow();
            let mut filled = self.tail_filled_up_to_event.subscribe();
            let caught_up =
                timeout(TAIL_CATCH_UP_TIMEOUT, filled.wait_for(|filled| *filled >= journal_head)).await;
            if caught_up.is_ok()
                && let Some(page) = self.read_from_tail(filter, after, until, limit)
            {
                return Ok(page);
            }
        }
        self.read_from_journal(JournalQuery {
            after_event_id: after,
            up_to_event_id: until,
            filter: filter.clone(),
            limit,
            backwards: false,
        })
        .await
    }

    /// Reads the newest `limit` matching events after `after`, newest first.
    pub async fn read_newest_events(
        &self,
        filter: &EventFilter,
        after: EventId,
        limit: usize,
    ) -> Result<EventPage, StoreError> {
        self.read_from_journal(JournalQuery {
            after_event_id: after,
            up_to_event_id: None,
            filter: filter.clone(),
            limit,
            backwards: true,
        })
        .await
    }

    /// Reads the range of the journal from the store: the id up to which events have expired, and the newest id.
    pub async fn read_journal_range(&self) -> Result<JournalRange, StoreError> {
        self.metrics.journal_reads.inc();
        self.journal.read_journal_range().await.inspect_err(|_| self.count_store_error())
    }

    /// Drops expired events from the tail. Called after pruning, because no commit notifies the filler of it.
    pub(crate) async fn drop_expired_tail_events(&self) -> Result<(), StoreError> {
        if !self.has_tail() {
            return Ok(());
        }
        let expired_up_to = self.read_journal_range().await?.last_expired_event_id;
        if let Some(tail) = &mut *self.journal_tail.write().unwrap_or_else(PoisonError::into_inner) {
            tail.drop_expired_events(expired_up_to);
        }
        Ok(())
    }

    /// Waits until a matching event exists after `after`, and advances `after` past events that do not match, also when
    /// the future is dropped. Costs nothing while nothing matches.
    pub async fn wait_for_matching_event(&self, filter: &EventFilter, after: &mut EventId) {
        let _waiting_guard = WaitingFollowerGuard::new(self);
        self.record_read_and_wake_filler();
        let from = *after;
        let follower = self.followers.add(filter, from, || self.find_unmatched_up_to(filter, from));
        FollowerCursorGuard { follower, cursor: after }.follower.wait_until_woken().await;
    }

    /// The id up to which no event of the tail after `after` matches. `None` if an event matches, or if the tail begins
    /// later than `after`.
    fn find_unmatched_up_to(&self, filter: &EventFilter, after: EventId) -> Option<EventId> {
        let tail = self.journal_tail.read().unwrap_or_else(PoisonError::into_inner);
        match &*tail {
            // The follower is woken if the tail later begins after this cursor.
            None => Some(after),
            Some(tail) if tail.head() <= after => Some(after),
            Some(tail) => tail
                .find_cached_page(filter, after, None, 1)
                .filter(|page| page.events.is_empty())
                .map(|page| page.last_scanned_event_id),
        }
    }

    /// Waits until the observer has stopped; from then on followers are no longer woken.
    pub async fn wait_until_stopped(&self) {
        self.stopped_signal.cancelled().await;
    }

    /// Runs the filler: reads once for all followers, as long as there are any.
    pub(crate) async fn run_tail_filler(&self, stop: CancellationToken) {
        let filling = async {
            let mut backoff = StoreBackoff::new();
            loop {
                // A failed run may have left an incomplete tail.
                self.drop_tail();
                // A reader that arrived before the tail was dropped has not woken the filler.
                if !self.has_recent_or_waiting_readers() {
                    self.filler_wakeup.notified().await;
                }
                while self.has_recent_or_waiting_readers() {
                    if let Err(error) = self.fill_tail_while_readers_exist(&mut backoff).await {
                        tracing::debug!(
                            error = %ErrorChain(&error),
                            "could not read the journal for followers; retrying, they get new events later"
                        );
                        sleep(backoff.next_delay()).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(filling).await;
        // The tail is no longer filled: later reads go to the store.
        self.drop_tail();
        self.stopped_signal.cancel();
    }

    async fn fill_tail_while_readers_exist(&self, backoff: &mut StoreBackoff) -> Result<(), StoreError> {
        let mut head_changes = self.wake_signals.journal_head.subscribe();
        if !self.has_tail() {
            let journal_range = self.read_journal_range().await?;
            self.wake_signals.advance_journal_head(journal_range.newest_event_id);
            self.set_tail(Some(JournalTail::new_empty(journal_range)));
            self.followers.restart_notifications_after(journal_range.newest_event_id);
            self.tail_filled_up_to_event.send_replace(journal_range.newest_event_id);
        }
        while self.has_recent_or_waiting_readers() {
            head_changes.borrow_and_update();
            self.fill_tail_to_head().await?;
            backoff.reset();
            // A lost signal does no harm: the next read follows soon.
            let _ = timeout(JOURNAL_POLL_INTERVAL, head_changes.changed()).await;
        }
        Ok(())
    }

    /// Reads until the head is reached.
    async fn fill_tail_to_head(&self) -> Result<(), StoreError> {
        loop {
            let after = *self.tail_filled_up_to_event.borrow();
            let everything = EventFilter::default();
            let query = JournalQuery {
                after_event_id: after,
                up_to_event_id: None,
                filter: everything,
                limit: MAX_EVENTS_PER_FILLER_READ,
                backwards: false,
            };
            let page = self.read_from_journal(query).await?;
            let head = page.journal_range.newest_event_id;
            let filled = page.last_scanned_event_id.max(after);
            let events = page.events.clone();
            if let Some(tail) = &mut *self.journal_tail.write().unwrap_or_else(PoisonError::into_inner) {
                tail.append_page(page);
            }
            self.wake_signals.advance_journal_head(head);
            self.followers.wake_followers_of_events(&events, filled);
            self.tail_filled_up_to_event.send_if_modified(|was| std::mem::replace(was, filled) != filled);
            if filled >= head || filled == after {
                return Ok(());
            }
        }
    }

    async fn read_from_journal(&self, query: JournalQuery) -> Result<EventPage, StoreError> {
        self.metrics.journal_reads.inc();
        self.journal.read_events(query).await.inspect_err(|_| self.count_store_error())
    }

    fn count_store_error(&self) {
        self.metrics.store_errors.inc();
    }

    fn read_from_tail(
        &self,
        filter: &EventFilter,
        after: EventId,
        until: Option<EventId>,
        limit: usize,
    ) -> Option<EventPage> {
        let tail = self.journal_tail.read().unwrap_or_else(PoisonError::into_inner);
        tail.as_ref()?.find_cached_page(filter, after, until, limit)
    }

    /// Whether the tail is in memory and being filled.
    pub(crate) fn has_tail(&self) -> bool {
        self.journal_tail.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Drops the tail from memory and wakes all followers, which then read from the store.
    fn drop_tail(&self) {
        self.followers.restart_notifications_after(EventId::ZERO);
        self.set_tail(None);
    }

    fn set_tail(&self, tail: Option<JournalTail>) {
        *self.journal_tail.write().unwrap_or_else(PoisonError::into_inner) = tail;
    }

    /// Records a read, and wakes the filler if there is no tail.
    fn record_read_and_wake_filler(&self) {
        *self.last_read_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if !self.has_tail() {
            self.filler_wakeup.notify_one();
        }
    }

    fn has_recent_or_waiting_readers(&self) -> bool {
        let read_at = *self.last_read_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting_follower_count.load(Ordering::Acquire) > 0
            || read_at.is_some_and(|read_at| read_at.elapsed() < TAIL_IDLE_TIMEOUT)
    }
}

/// A follower that writes its cursor back however its wait ends.
struct FollowerCursorGuard<'a> {
    follower: Follower,
    cursor: &'a mut EventId,
}

impl Drop for FollowerCursorGuard<'_> {
    fn drop(&mut self) {
        *self.cursor = self.follower.stop_and_get_cursor().max(*self.cursor);
    }
}

/// Counts a follower for as long as it waits.
struct WaitingFollowerGuard<'a>(&'a Observer);

impl<'a> WaitingFollowerGuard<'a> {
    fn new(observer: &'a Observer) -> Self {
        observer.waiting_follower_count.fetch_add(1, Ordering::AcqRel);
        Self(observer)
    }
}

impl Drop for WaitingFollowerGuard<'_> {
    fn drop(&mut self) {
        self.0.waiting_follower_count.fetch_sub(1, Ordering::AcqRel);
    }
}
