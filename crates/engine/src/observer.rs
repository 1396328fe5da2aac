//! Reading the journal as it grows.
//!
//! ```text
//!   store ──a commit─▶ signals ─▶ filler ──one read──▶ tail (in memory) ─▶ a thousand readers
//!     └──────────────────────────── far behind the head ───────────────▶ each for itself
//! ```
//!
//! While somebody follows the journal, one filler reads what is new, once, after each commit that it hears of,
//! and all followers take it from memory. Who waits for something of its own is left alone until that has come
//! ([`Observer::matched`]). When nobody has read for a while, the tail is let go of, and the
//! journal is not read until somebody looks again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use pointsman_core::EventId;
use pointsman_core::journal::{Extent, Filter, Page};
use pointsman_core::store::{Read, Store, StoreError};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::followers::{Follower, Followers};
use crate::journal_tail::JournalTail;
use crate::metrics::Metrics;
use crate::time::StoreBackoff;
use crate::wake_signals::WakeSignals;

/// How long the tail is kept for nobody.
const TAIL_IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the filler waits for a signal before it looks anyway.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a reader waits for the filler to catch up before it reads by itself.
const CATCH_UP_TIMEOUT: Duration = Duration::from_millis(100);
/// How many events the filler reads at a time.
const READ_BATCH: usize = 2_000;

/// Reads for those who follow the journal: from memory near its head, from the store behind it.
pub struct Observer {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    tail: RwLock<Option<JournalTail>>,
    signals: Arc<WakeSignals>,
    /// The newest id that the tail has reached.
    filled_until: watch::Sender<EventId>,
    followers: Arc<Followers>,
    /// Followers that wait for growth.
    waiting_followers: AtomicUsize,
    last_read_at: Mutex<Instant>,
    filler_wakeup: Notify,
    stopped: CancellationToken,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("head", &*self.signals.journal_head.borrow()).finish_non_exhaustive()
    }
}

impl Observer {
    pub(crate) fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>, signals: Arc<WakeSignals>) -> Self {
        Self {
            store,
            metrics,
            tail: RwLock::new(None),
            signals,
            filled_until: watch::Sender::new(EventId::ZERO),
            followers: Arc::default(),
            waiting_followers: AtomicUsize::new(0),
            last_read_at: Mutex::new(Instant::now()),
            filler_wakeup: Notify::new(),
            stopped: CancellationToken::new(),
        }
    }

    /// What matches after `after` and up to `until`, at most `limit` and possibly fewer: read on after
    /// `page.scanned`. Does not wait for events to come. The page's extent tells whether `after` is torn.
    pub async fn read_page(
        &self,
        filter: &Filter,
        after: EventId,
        until: Option<EventId>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.record_read();
        if self.has_tail() {
            // What was committed before the question belongs to the answer.
            let newest = *self.signals.journal_head.borrow();
            let mut filled = self.filled_until.subscribe();
            let caught_up = timeout(CATCH_UP_TIMEOUT, filled.wait_for(|filled| *filled >= newest)).await;
            if caught_up.is_ok()
                && let Some(page) = self.read_from_tail(filter, after, until, limit)
            {
                return Ok(page);
            }
        }
        self.read_from_store(Read { after, until, filter: filter.clone(), limit, backwards: false }).await
    }

    /// The newest `limit` matches, newest first, that come after `after`.
    pub async fn read_newest(
        &self,
        filter: &Filter,
        after: EventId,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.read_from_store(Read { after, until: None, filter: filter.clone(), limit, backwards: true })
            .await
    }

    /// Where the journal begins and ends, from the store.
    pub async fn read_extent(&self) -> Result<Extent, StoreError> {
        self.metrics.journal_reads.inc();
        self.store.extent().await.inspect_err(|_| self.count_store_error())
    }

    /// The journal has forgotten something: from now on the tail does not tell of it either, though nothing is
    /// committed that it would learn it from.
    pub(crate) async fn drop_expired_from_tail(&self) -> Result<(), StoreError> {
        if !self.has_tail() {
            return Ok(());
        }
        let forgotten = self.read_extent().await?.forgotten;
        if let Some(tail) = &mut *self.tail.write().unwrap_or_else(PoisonError::into_inner) {
            tail.drop_expired(forgotten);
        }
        Ok(())
    }

    /// Waits until something that matches lies after `after`, and moves `after` over what does not match; also when the
    /// wait is given up by dropping it. Costs nothing while nothing matches.
    pub async fn wait_for_match(&self, filter: &Filter, after: &mut EventId) {
        let _waiting = WaitingFollower::new(self);
        self.record_read();
        let from = *after;
        let follower = self.followers.add(filter, from, || self.unmatched_until(filter, from));
        FollowerCursor { follower, cursor: after }.follower.wait_until_woken().await;
    }

    /// Up to where nothing matches that the tail knows of. None: something does, or it does not reach back so far.
    fn unmatched_until(&self, filter: &Filter, after: EventId) -> Option<EventId> {
        let tail = self.tail.read().unwrap_or_else(PoisonError::into_inner);
        match &*tail {
            // Whoever waits is told when the tail begins beyond it.
            None => Some(after),
            Some(tail) if tail.head() <= after => Some(after),
            Some(tail) => tail
                .find_page(filter, after, None, 1)
                .filter(|page| page.events.is_empty())
                .map(|page| page.scanned),
        }
    }

    /// Waits until the node has stopped: from then on nobody is told of the journal's growth.
    pub async fn wait_until_stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// The filler: reads once for all who follow, for as long as somebody does.
    pub(crate) async fn run_filler(&self, stop: CancellationToken) {
        let filling = async {
            let mut backoff = StoreBackoff::new();
            loop {
                self.filler_wakeup.notified().await;
                loop {
                    if let Err(error) = self.fill_while_read(&mut backoff).await {
                        tracing::debug!(%error, "followers of the journal wait for the store");
                        sleep(backoff.next_delay()).await;
                    }
                    if self.has_readers() {
                        continue;
                    }
                    self.drop_tail();
                    // Whoever came while the tail was still there has woken nobody.
                    if !self.has_readers() {
                        break;
                    }
                }
            }
        };
        stop.run_until_cancelled(filling).await;
        // Nobody fills it any more: what is read from now on comes from the store.
        self.drop_tail();
        self.stopped.cancel();
    }

    async fn fill_while_read(&self, backoff: &mut StoreBackoff) -> Result<(), StoreError> {
        let mut head_changes = self.signals.journal_head.subscribe();
        if !self.has_tail() {
            let extent = self.read_extent().await?;
            self.signals.advance_journal_head(extent.head);
            self.set_tail(Some(JournalTail::starting_at(extent)));
            self.followers.restart_after(extent.head);
            self.filled_until.send_replace(extent.head);
        }
        while self.has_readers() {
            head_changes.borrow_and_update();
            self.read_to_head().await?;
            backoff.reset();
            // Nobody minds a signal that does not come: the next look is never far.
            let _ = timeout(POLL_INTERVAL, head_changes.changed()).await;
        }
        Ok(())
    }

    /// Reads until the head is reached.
    async fn read_to_head(&self) -> Result<(), StoreError> {
        loop {
            let after = *self.filled_until.borrow();
            let everything = Filter::default();
            let read = Read { after, until: None, filter: everything, limit: READ_BATCH, backwards: false };
            let page = self.read_from_store(read).await?;
            let head = page.extent.head;
            let filled = page.scanned.max(after);
            let events = page.events.clone();
            if let Some(tail) = &mut *self.tail.write().unwrap_or_else(PoisonError::into_inner) {
                tail.append_page(page);
            }
            self.signals.advance_journal_head(head);
            self.followers.notify_events(&events, filled);
            self.filled_until.send_if_modified(|was| std::mem::replace(was, filled) != filled);
            if filled >= head || filled == after {
                return Ok(());
            }
        }
    }

    async fn read_from_store(&self, read: Read) -> Result<Page, StoreError> {
        self.metrics.journal_reads.inc();
        self.store.read(read).await.inspect_err(|_| self.count_store_error())
    }

    fn count_store_error(&self) {
        self.metrics.store_errors.inc();
    }

    fn read_from_tail(
        &self,
        filter: &Filter,
        after: EventId,
        until: Option<EventId>,
        limit: usize,
    ) -> Option<Page> {
        let tail = self.tail.read().unwrap_or_else(PoisonError::into_inner);
        tail.as_ref()?.find_page(filter, after, until, limit)
    }

    /// The tail is there.
    pub(crate) fn has_tail(&self) -> bool {
        self.tail.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// From now on nothing is known of what is new.
    fn drop_tail(&self) {
        self.followers.restart_after(EventId::ZERO);
        self.set_tail(None);
    }

    fn set_tail(&self, tail: Option<JournalTail>) {
        *self.tail.write().unwrap_or_else(PoisonError::into_inner) = tail;
    }

    /// Somebody reads. The filler is woken if it sleeps.
    fn record_read(&self) {
        *self.last_read_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if !self.has_tail() {
            self.filler_wakeup.notify_one();
        }
    }

    fn has_readers(&self) -> bool {
        let read_at = *self.last_read_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting_followers.load(Ordering::Acquire) > 0 || read_at.elapsed() < TAIL_IDLE_TIMEOUT
    }
}

/// A follower whose cursor is kept, however its wait ends.
struct FollowerCursor<'a> {
    follower: Follower,
    cursor: &'a mut EventId,
}

impl Drop for FollowerCursor<'_> {
    fn drop(&mut self) {
        *self.cursor = self.follower.stop_and_get_cursor().max(*self.cursor);
    }
}

/// Counts a follower for as long as it waits.
struct WaitingFollower<'a>(&'a Observer);

impl<'a> WaitingFollower<'a> {
    fn new(observer: &'a Observer) -> Self {
        observer.waiting_followers.fetch_add(1, Ordering::AcqRel);
        Self(observer)
    }
}

impl Drop for WaitingFollower<'_> {
    fn drop(&mut self) {
        self.0.waiting_followers.fetch_sub(1, Ordering::AcqRel);
    }
}
