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
    filled: watch::Sender<EventId>,
    followers: Arc<Followers>,
    /// Followers that wait for growth.
    waiting: AtomicUsize,
    read_at: Mutex<Instant>,
    wanted: Notify,
    stopped: CancellationToken,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("head", &*self.signals.head.borrow()).finish_non_exhaustive()
    }
}

impl Observer {
    pub(crate) fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>, signals: Arc<WakeSignals>) -> Self {
        Self {
            store,
            metrics,
            tail: RwLock::new(None),
            signals,
            filled: watch::Sender::new(EventId::ZERO),
            followers: Arc::default(),
            waiting: AtomicUsize::new(0),
            read_at: Mutex::new(Instant::now()),
            wanted: Notify::new(),
            stopped: CancellationToken::new(),
        }
    }

    /// What matches after `after` and up to `until`, at most `limit` and possibly fewer: read on after
    /// `page.scanned`. Does not wait for events to come. The page's extent tells whether `after` is torn.
    pub async fn page(
        &self,
        filter: &Filter,
        after: EventId,
        until: Option<EventId>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.touch();
        if self.is_filling() {
            // What was committed before the question belongs to the answer.
            let newest = *self.signals.head.borrow();
            let mut filled = self.filled.subscribe();
            let caught_up = timeout(CATCH_UP_TIMEOUT, filled.wait_for(|filled| *filled >= newest)).await;
            if caught_up.is_ok()
                && let Some(page) = self.remembered(filter, after, until, limit)
            {
                return Ok(page);
            }
        }
        self.read(Read { after, until, filter: filter.clone(), limit, backwards: false }).await
    }

    /// The newest `limit` matches, newest first, that come after `after`.
    pub async fn newest(&self, filter: &Filter, after: EventId, limit: usize) -> Result<Page, StoreError> {
        self.read(Read { after, until: None, filter: filter.clone(), limit, backwards: true }).await
    }

    /// Where the journal begins and ends, from the store.
    pub async fn extent(&self) -> Result<Extent, StoreError> {
        self.metrics.journal_reads.inc();
        self.store.extent().await.inspect_err(|_| self.failed())
    }

    /// The journal has forgotten something: from now on the tail does not tell of it either, though nothing is
    /// committed that it would learn it from.
    pub(crate) async fn forget(&self) -> Result<(), StoreError> {
        if !self.is_filling() {
            return Ok(());
        }
        let forgotten = self.extent().await?.forgotten;
        if let Some(tail) = &mut *self.tail.write().unwrap_or_else(PoisonError::into_inner) {
            tail.forget(forgotten);
        }
        Ok(())
    }

    /// Waits until something that matches lies after `after`, and moves `after` over what does not match; also when the
    /// wait is given up by dropping it. Costs nothing while nothing matches.
    pub async fn matched(&self, filter: &Filter, after: &mut EventId) {
        let _waiter = WaitingFollower::new(self);
        self.touch();
        let from = *after;
        let follower = self.followers.join(filter, from, || self.unmatched(filter, from));
        FollowerCursor { follower, after }.follower.woken().await;
    }

    /// Up to where nothing matches that the tail knows of. None: something does, or it does not reach back so far.
    fn unmatched(&self, filter: &Filter, after: EventId) -> Option<EventId> {
        let tail = self.tail.read().unwrap_or_else(PoisonError::into_inner);
        match &*tail {
            // Whoever waits is told when the tail begins beyond it.
            None => Some(after),
            Some(tail) if tail.head() <= after => Some(after),
            Some(tail) => tail
                .page(filter, after, None, 1)
                .filter(|page| page.events.is_empty())
                .map(|page| page.scanned),
        }
    }

    /// Waits until the node has stopped: from then on nobody is told of the journal's growth.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// The filler: reads once for all who follow, for as long as somebody does.
    pub(crate) async fn fill(&self, stop: CancellationToken) {
        let filling = async {
            let mut patience = StoreBackoff::new();
            loop {
                self.wanted.notified().await;
                loop {
                    if let Err(error) = self.fill_while_wanted(&mut patience).await {
                        tracing::debug!(%error, "followers of the journal wait for the store");
                        sleep(patience.wait()).await;
                    }
                    if self.is_wanted() {
                        continue;
                    }
                    self.let_go();
                    // Whoever came while the tail was still there has woken nobody.
                    if !self.is_wanted() {
                        break;
                    }
                }
            }
        };
        stop.run_until_cancelled(filling).await;
        // Nobody fills it any more: what is read from now on comes from the store.
        self.let_go();
        self.stopped.cancel();
    }

    async fn fill_while_wanted(&self, patience: &mut StoreBackoff) -> Result<(), StoreError> {
        let mut heard = self.signals.head.subscribe();
        if !self.is_filling() {
            let extent = self.extent().await?;
            self.signals.grown(extent.head);
            self.set_tail(Some(JournalTail::starting(extent)));
            self.followers.begin(extent.head);
            self.filled.send_replace(extent.head);
        }
        while self.is_wanted() {
            heard.borrow_and_update();
            self.catch_up().await?;
            patience.reset();
            // Nobody minds a signal that does not come: the next look is never far.
            let _ = timeout(POLL_INTERVAL, heard.changed()).await;
        }
        Ok(())
    }

    /// Reads until the head is reached.
    async fn catch_up(&self) -> Result<(), StoreError> {
        loop {
            let after = *self.filled.borrow();
            let everything = Filter::default();
            let read = Read { after, until: None, filter: everything, limit: READ_BATCH, backwards: false };
            let page = self.read(read).await?;
            let head = page.extent.head;
            let filled = page.scanned.max(after);
            let events = page.events.clone();
            if let Some(tail) = &mut *self.tail.write().unwrap_or_else(PoisonError::into_inner) {
                tail.extend(page);
            }
            self.signals.grown(head);
            self.followers.show(&events, filled);
            self.filled.send_if_modified(|was| std::mem::replace(was, filled) != filled);
            if filled >= head || filled == after {
                return Ok(());
            }
        }
    }

    async fn read(&self, read: Read) -> Result<Page, StoreError> {
        self.metrics.journal_reads.inc();
        self.store.read(read).await.inspect_err(|_| self.failed())
    }

    fn failed(&self) {
        self.metrics.store_errors.inc();
    }

    fn remembered(
        &self,
        filter: &Filter,
        after: EventId,
        until: Option<EventId>,
        limit: usize,
    ) -> Option<Page> {
        let tail = self.tail.read().unwrap_or_else(PoisonError::into_inner);
        tail.as_ref()?.page(filter, after, until, limit)
    }

    /// The tail is there.
    pub(crate) fn is_filling(&self) -> bool {
        self.tail.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// From now on nothing is known of what is new.
    fn let_go(&self) {
        self.followers.begin(EventId::ZERO);
        self.set_tail(None);
    }

    fn set_tail(&self, tail: Option<JournalTail>) {
        *self.tail.write().unwrap_or_else(PoisonError::into_inner) = tail;
    }

    /// Somebody reads. The filler is woken if it sleeps.
    fn touch(&self) {
        *self.read_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if !self.is_filling() {
            self.wanted.notify_one();
        }
    }

    fn is_wanted(&self) -> bool {
        let read_at = *self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        self.waiting.load(Ordering::Acquire) > 0 || read_at.elapsed() < TAIL_IDLE_TIMEOUT
    }
}

/// A follower whose cursor is kept, however its wait ends.
struct FollowerCursor<'a> {
    follower: Follower,
    after: &'a mut EventId,
}

impl Drop for FollowerCursor<'_> {
    fn drop(&mut self) {
        *self.after = self.follower.passed().max(*self.after);
    }
}

/// Counts a follower for as long as it waits.
struct WaitingFollower<'a>(&'a Observer);

impl<'a> WaitingFollower<'a> {
    fn new(observer: &'a Observer) -> Self {
        observer.waiting.fetch_add(1, Ordering::AcqRel);
        Self(observer)
    }
}

impl Drop for WaitingFollower<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}
