//! The sequencer: appends emissions to the journal in batches.
//!
//! ```text
//!   producers ─▶ [ waiting ] ─▶ one batch ─▶ store.append + claim ─▶ receipts to the producers
//!                                                        └─────────▶ claimed tasks straight into their slots
//! ```
//!
//! Everything that arrives while a commit runs goes into the next one: the busier, the larger the batches. A lone emit
//! does not wait. Under load, producers that just got their receipt emit again within a moment that is short compared
//! to a commit, so the next batch lingers: it waits for them. The queue is bounded in emissions, events and bytes;
//! beyond that an emit is refused at once.
//!
//! A producer that disconnects does not withdraw its emission, and other producers are not affected.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::store::{EmitBatch, EmitReceipt, IdempotencyError, StoreError};
use pointsman_core::{ErrorChain, NewEvent};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::EmitError;
use crate::node::Node;
use crate::slots::ReservedSlots;
use crate::supervisor::Service;
use crate::unstarted_claim::UnstartedClaim;

/// The maximum load of one transaction.
const MAX_BATCH_LOAD: EmissionLoad = EmissionLoad { emissions: usize::MAX, events: 10_000, bytes: 16 << 20 };
/// The maximum load that may wait in the queue.
const MAX_WAITING_LOAD: EmissionLoad = EmissionLoad { emissions: 50_000, events: 200_000, bytes: 64 << 20 };

/// A batch lingers until it has as many emissions as the last one, for at most the duration of the last commit divided
/// by this: producers may have disconnected.
const LINGER_DIVISOR: u32 = 8;
/// The maximum time that a batch lingers, however long the last commit took.
const MAX_LINGER: Duration = Duration::from_millis(5);

/// The resolution of timers. A batch does not linger for less.
const TIMER_RESOLUTION: Duration = Duration::from_millis(1);

/// The size of emissions, as it counts against a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct EmissionLoad {
    emissions: usize,
    events: usize,
    bytes: usize,
}

impl EmissionLoad {
    const EMPTY: Self = Self { emissions: 0, events: 0, bytes: 0 };
    /// The load of the smallest emission.
    const SMALLEST: Self = Self { emissions: 1, events: 1, bytes: size_of::<NewEvent>() };

    fn from_emission(emission: &EmitBatch) -> Self {
        let bytes = emission.events.iter().map(approximate_event_bytes).sum();
        Self { emissions: 1, events: emission.events.len(), bytes }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            emissions: self.emissions.saturating_add(other.emissions),
            events: self.events.saturating_add(other.events),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            emissions: self.emissions.saturating_sub(other.emissions),
            events: self.events.saturating_sub(other.events),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    fn fits_into(self, limit: Self) -> bool {
        self.emissions <= limit.emissions && self.events <= limit.events && self.bytes <= limit.bytes
    }
}

/// The approximate size of an event in memory, in bytes.
fn approximate_event_bytes(event: &NewEvent) -> usize {
    let context_bytes: usize = event.context.iter().map(|(name, value)| name.len() + value.len()).sum();
    size_of::<NewEvent>() + event.value.as_str().len() + context_bytes
}

/// A part of the queue's capacity, released when dropped.
#[derive(Debug)]
struct LoadReservation {
    load: EmissionLoad,
    waiting_load: Arc<Mutex<EmissionLoad>>,
}

impl LoadReservation {
    /// Reserves capacity, or returns `None` if the queue is full. An emission that exceeds the limit alone is admitted
    /// when nothing else waits: it is in memory already.
    fn try_reserve(waiting_load: &Arc<Mutex<EmissionLoad>>, load: EmissionLoad) -> Option<Self> {
        let mut current_load = waiting_load.lock().unwrap_or_else(PoisonError::into_inner);
        let new_load = current_load.plus(load);
        if !new_load.fits_into(MAX_WAITING_LOAD) && *current_load != EmissionLoad::EMPTY {
            return None;
        }
        *current_load = new_load;
        Some(Self { load, waiting_load: waiting_load.clone() })
    }
}

impl Drop for LoadReservation {
    fn drop(&mut self) {
        let mut current_load = self.waiting_load.lock().unwrap_or_else(PoisonError::into_inner);
        *current_load = current_load.minus(self.load);
    }
}

type EmitResult = Result<EmitReceipt, EmitError>;

#[derive(Debug)]
struct PendingEmission {
    emission: EmitBatch,
    reply_sender: oneshot::Sender<EmitResult>,
    reservation: LoadReservation,
}

/// Hands emissions of producers to the sequencer.
#[derive(Clone, Debug)]
pub(crate) struct EmissionSender {
    pending_sender: mpsc::UnboundedSender<PendingEmission>,
    waiting_load: Arc<Mutex<EmissionLoad>>,
}

impl EmissionSender {
    /// Hands events to the sequencer, and returns when they are durable.
    pub(crate) async fn emit(&self, emission: EmitBatch) -> EmitResult {
        let reservation =
            LoadReservation::try_reserve(&self.waiting_load, EmissionLoad::from_emission(&emission))
                .ok_or(EmitError::Overloaded)?;
        let (reply_sender, reply_receiver) = oneshot::channel();
        // Only a sequencer that panicked drops a reply sender unused; its batch may have been committed.
        let sequencer_failed =
            |_| EmitError::Store(StoreError::unavailable("the sequencer failed; it is restarted"));
        self.pending_sender
            .send(PendingEmission { emission, reply_sender, reservation })
            .map_err(|_| EmitError::Store(StoreError::Closed))?;
        reply_receiver.await.map_err(sequencer_failed)?
    }
}

/// The service that journals emissions.
pub(crate) struct Sequencer {
    node: Arc<Node>,
    queue: EmissionQueue,
}

/// Emissions that wait to be journaled.
#[derive(Debug)]
struct EmissionQueue {
    pending_receiver: mpsc::UnboundedReceiver<PendingEmission>,
    /// An emission that no longer fitted into the last batch.
    carried_over_emission: Option<PendingEmission>,
    /// The number of emissions in the last batch, and until when the next batch waits for as many.
    last_batch_len: usize,
    linger_until: Instant,
}

impl EmissionQueue {
    fn new(pending: mpsc::UnboundedReceiver<PendingEmission>) -> Self {
        Self {
            pending_receiver: pending,
            carried_over_emission: None,
            last_batch_len: 0,
            linger_until: Instant::now(),
        }
    }

    /// Waits for the first emission of the next batch; none after the sequencer was stopped.
    async fn wait_for_first_emission(&mut self, stop: &CancellationToken) -> Option<PendingEmission> {
        loop {
            if let Some(pending) = self.carried_over_emission.take() {
                return Some(pending);
            }
            tokio::select! {
                biased;
                pending = self.pending_receiver.recv() => return pending,
                () = stop.cancelled(), if !self.pending_receiver.is_closed() => self.pending_receiver.close(),
            }
        }
    }

    /// Fills a batch with the first emission and all others that wait or arrive within the linger time, up to the
    /// limit.
    async fn fill_batch(&mut self, first: PendingEmission) -> Vec<PendingEmission> {
        // Producers that just got their receipt may have the next emission ready.
        tokio::task::yield_now().await;
        let mut load = first.reservation.load;
        let mut batch = vec![first];
        while load.plus(EmissionLoad::SMALLEST).fits_into(MAX_BATCH_LOAD)
            && let Some(next) = self.next_emission_for_batch(batch.len()).await
        {
            load = load.plus(next.reservation.load);
            if !load.fits_into(MAX_BATCH_LOAD) {
                self.carried_over_emission = Some(next);
                break;
            }
            batch.push(next);
        }
        batch
    }

    /// Returns the next emission for a batch that has `batch_len` of them; `None` once the batch need not linger.
    async fn next_emission_for_batch(&mut self, batch_len: usize) -> Option<PendingEmission> {
        match self.pending_receiver.try_recv() {
            Ok(pending) => Some(pending),
            Err(_)
                if batch_len >= self.last_batch_len
                    || self.linger_until < Instant::now() + TIMER_RESOLUTION =>
            {
                None
            }
            Err(_) => timeout_at(self.linger_until, self.pending_receiver.recv()).await.ok().flatten(),
        }
    }

    /// Records the size and the duration of a commit, from which the linger time of the next batch follows.
    fn record_commit(&mut self, batch_len: usize, duration: Duration) {
        self.last_batch_len = batch_len;
        self.linger_until = Instant::now() + (duration / LINGER_DIVISOR).min(MAX_LINGER);
    }
}

impl Service for Sequencer {
    /// Journals until stopped; emissions that were handed over before are still journaled.
    async fn run(&mut self, stop: CancellationToken) {
        while let Some(first) = self.queue.wait_for_first_emission(&stop).await {
            let batch = self.queue.fill_batch(first).await;
            let (batch_len, began) = (batch.len(), Instant::now());
            self.commit_batch(batch).await;
            self.queue.record_commit(batch_len, began.elapsed());
        }
    }
}

impl Sequencer {
    pub(crate) fn new(node: Arc<Node>) -> (EmissionSender, Self) {
        let (sender, pending) = mpsc::unbounded_channel();
        let emission_sender = EmissionSender { pending_sender: sender, waiting_load: Arc::default() };
        (emission_sender, Self { node, queue: EmissionQueue::new(pending) })
    }

    async fn commit_batch(&self, batch: Vec<PendingEmission>) {
        let node = &self.node;
        let mut emissions = Vec::with_capacity(batch.len());
        let mut producers = Vec::with_capacity(batch.len());
        for PendingEmission { emission, reply_sender, reservation } in batch {
            emissions.push(emission);
            producers.push((reply_sender, reservation));
        }
        let watched_emissions = node.task_changes.has_subscribers().then(|| emissions.clone());
        let has_delayed_events =
            emissions.iter().flat_map(|emission| &emission.events).any(|event| event.due.is_some());
        let now = node.time_source.now();
        let mut reserved_slots = self.reserve_slots(&emissions);
        let pause_version = node.start_gate.pause_version();
        match node.store.append(emissions, node.build_claim_request(&reserved_slots), now).await {
            Ok((receipts, claim)) => {
                let claim = UnstartedClaim::new(node, claim);
                self.report_journaled_events(&receipts, watched_emissions.as_deref());
                if claim.new_task_count_without_slot > 0 {
                    node.slots.record_tasks_without_slot(claim.new_task_count_without_slot);
                }
                // The worker claims the tasks that this claim left, and delayed ones when they are due.
                let needs_worker = claim.has_more_ready_tasks || has_delayed_events;
                claim.start_tasks(&mut reserved_slots, pause_version);
                if needs_worker {
                    node.wake_signals.notify_work();
                }
                for ((reply_sender, _reservation), receipt) in producers.into_iter().zip(receipts) {
                    // The events of a producer that has disconnected are journaled all the same.
                    let _ = reply_sender.send(receipt.map_err(EmitError::IdempotencyKeyConflict));
                }
            }
            Err(error) => {
                node.count_store_error();
                tracing::debug!(
                    error = %ErrorChain(&error), emission_count = producers.len(),
                    "could not append to the journal; the producers get the error and may retry"
                );
                for (reply_sender, _reservation) in producers {
                    let _ = reply_sender.send(Err(EmitError::Store(error.clone())));
                }
            }
        }
        node.slots.return_unused(reserved_slots);
    }

    /// Reserves slots for the tasks that this batch is estimated to make ready.
    fn reserve_slots(&self, emissions: &[EmitBatch]) -> ReservedSlots {
        let slots = &self.node.slots;
        let free = slots.available_count();
        if free == 0 || slots.is_store_failing() {
            return ReservedSlots::empty();
        }
        let events = emissions.iter().flat_map(|emission| &emission.events);
        slots.reserve_up_to(self.node.active_setup().estimate_tasks_ready_on_emit(
            events,
            free,
            self.node.time_source.now(),
        ))
    }

    fn report_journaled_events(
        &self,
        receipts: &[Result<EmitReceipt, IdempotencyError>],
        watched_emissions: Option<&[EmitBatch]>,
    ) {
        let node = &self.node;
        let is_new = |receipt: &&EmitReceipt| !receipt.repeated;
        let new_receipts = receipts.iter().flatten().filter(is_new);
        node.metrics
            .events_emitted
            .inc_by(new_receipts.clone().map(|receipt| receipt.events.len() as u64).sum());
        // The journal head advances now, so that a producer that emits and then reads finds its events.
        if let Some(last) = new_receipts.flat_map(|receipt| &receipt.events).map(|event| event.id).max() {
            node.wake_signals.advance_journal_head(last);
        }
        let at = node.time_source.now();
        for (receipt, emission) in receipts.iter().zip(watched_emissions.unwrap_or_default()) {
            if let Some(receipt) = receipt.as_ref().ok().filter(is_new) {
                node.task_changes.notify_tasks_created(&emission.events, &receipt.events, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waiting_load_is_bounded_and_released_on_drop() {
        let waiting = Arc::new(Mutex::new(EmissionLoad::EMPTY));
        let half = EmissionLoad { emissions: 1, events: 1, bytes: MAX_WAITING_LOAD.bytes / 2 };
        let first = LoadReservation::try_reserve(&waiting, half).unwrap();
        let second = LoadReservation::try_reserve(&waiting, half).unwrap();
        assert!(LoadReservation::try_reserve(&waiting, half).is_none());
        drop(first);
        assert!(LoadReservation::try_reserve(&waiting, half).is_some());
        drop(second);
        assert_eq!(*waiting.lock().unwrap(), EmissionLoad::EMPTY);
    }

    fn enqueue_emission(sender: &mpsc::UnboundedSender<PendingEmission>) {
        let emission = EmitBatch { events: vec![], idempotency_key: None };
        let reservation =
            LoadReservation::try_reserve(&Arc::default(), EmissionLoad::from_emission(&emission)).unwrap();
        sender.send(PendingEmission { emission, reply_sender: oneshot::channel().0, reservation }).unwrap();
    }

    /// The size of a batch whose second and third emission arrive after `delay`.
    async fn batch_len_with_delayed_emissions(
        last_batch_len: usize,
        commit_duration: Duration,
        delay: Duration,
    ) -> usize {
        let (sender, pending) = mpsc::unbounded_channel();
        let mut queue = EmissionQueue::new(pending);
        queue.record_commit(last_batch_len, commit_duration);
        enqueue_emission(&sender);
        let first = queue.wait_for_first_emission(&CancellationToken::new()).await.unwrap();
        let others = async {
            tokio::time::sleep(delay).await;
            (0..2).for_each(|_| enqueue_emission(&sender));
        };
        let (batch, ()) = tokio::join!(queue.fill_batch(first), others);
        batch.len()
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_lingers_for_producers_of_the_last_batch() {
        let ms = Duration::from_millis;
        assert_eq!(batch_len_with_delayed_emissions(3, ms(24), ms(2)).await, 3);
        assert_eq!(
            batch_len_with_delayed_emissions(1, ms(24), ms(2)).await,
            1,
            "a lone emission does not wait"
        );
        assert_eq!(
            batch_len_with_delayed_emissions(3, ms(24), ms(4)).await,
            1,
            "the linger time is bounded by a fraction of the commit"
        );
        assert_eq!(
            batch_len_with_delayed_emissions(3, ms(20_000), ms(6)).await,
            1,
            "the linger time has an absolute maximum"
        );
        assert_eq!(
            batch_len_with_delayed_emissions(3, ms(4), ms(1)).await,
            1,
            "a linger time below the timer resolution is not waited for"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_emission_after_the_linger_period_does_not_wait() {
        let (sender, pending) = mpsc::unbounded_channel();
        let mut queue = EmissionQueue::new(pending);
        queue.record_commit(8, Duration::from_millis(40));
        tokio::time::sleep(Duration::from_millis(6)).await;
        enqueue_emission(&sender);
        let first = queue.wait_for_first_emission(&CancellationToken::new()).await.unwrap();
        let began = Instant::now();
        assert_eq!(queue.fill_batch(first).await.len(), 1);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[test]
    fn an_oversized_emission_is_admitted_only_alone() {
        let waiting = Arc::new(Mutex::new(EmissionLoad::EMPTY));
        let huge = EmissionLoad { emissions: 1, events: MAX_WAITING_LOAD.events + 1, bytes: 1 };
        let reservation = LoadReservation::try_reserve(&waiting, huge).unwrap();
        assert!(
            LoadReservation::try_reserve(&waiting, EmissionLoad { emissions: 1, events: 1, bytes: 1 })
                .is_none()
        );
        drop(reservation);
    }
}
