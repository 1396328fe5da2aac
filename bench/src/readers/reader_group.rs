//! A group of readers, and the check that they have received everything that was emitted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::bench_server::{BenchServer, micros_since_clock_start};
use super::reader::{JournalReader, ReadProtocol};
use crate::fixtures::EventCounter;

/// The time without any delivery after which the measurement fails, while events are missing.
const STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The objects that each reader follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReaderScope {
    /// The n-th reader follows the n-th object.
    OneObjectEach,
    AllObjects,
}

pub(super) struct ReaderGroup {
    scope: ReaderScope,
    reader_count: usize,
    /// The number of events of each object before the readers started.
    initial_event_counts: Vec<u64>,
    delivery_tracker: Arc<DeliveryTracker>,
    spawned_readers: JoinSet<anyhow::Result<()>>,
    _thread: ReaderThread,
}

impl ReaderGroup {
    /// Starts readers, half of them by long poll and half by server-sent events. Each has received an event when this
    /// returns, so that all of them are connected. Nothing else may be emitted meanwhile.
    pub(super) async fn start(
        bench_server: &BenchServer,
        scope: ReaderScope,
        readers: usize,
    ) -> anyhow::Result<Self> {
        let thread = ReaderThread::start()?;
        let (initial_event_counts, head) =
            (bench_server.event_counts_by_object(), bench_server.last_event_id().await?);
        let readers_per_event = if scope == ReaderScope::AllObjects { readers } else { 1 };
        let deliveries = Arc::new(DeliveryTracker::new(readers_per_event));
        let mut reader_tasks = JoinSet::new();
        for n in 0..readers {
            let (first_followed_object, next_event_numbers) = match scope {
                ReaderScope::OneObjectEach => (n, initial_event_counts[n..=n].to_vec()),
                ReaderScope::AllObjects => (0, initial_event_counts.clone()),
            };
            let reader = JournalReader {
                protocol: if n % 2 == 0 { ReadProtocol::LongPoll } else { ReadProtocol::ServerSentEvents },
                followed_object: (scope == ReaderScope::OneObjectEach).then_some(n),
                first_followed_object,
                next_event_numbers,
                last_event_id: head.get(),
                delivery_tracker: deliveries.clone(),
            };
            let read = reader.read_until_error(bench_server.address(), bench_server.token().to_owned());
            reader_tasks.spawn_on(
                async move { read.await.with_context(|| format!("reader {n}")) },
                thread.runtime_handle()?,
            );
        }
        let mut group = Self {
            scope,
            reader_count: readers,
            initial_event_counts,
            delivery_tracker: deliveries,
            spawned_readers: reader_tasks,
            _thread: thread,
        };
        bench_server.emit_one_per_object().await?;
        group.wait_until_caught_up(bench_server).await?;
        Ok(group)
    }

    /// Waits until every reader has received all events that were emitted for it.
    pub(super) async fn wait_until_caught_up(&mut self, bench_server: &BenchServer) -> anyhow::Result<()> {
        let expected = self.expected_delivery_count(bench_server);
        loop {
            let delivered_count = self.delivery_tracker.delivery_counter.count();
            tokio::select! {
                () = self.delivery_tracker.delivery_counter.wait_until_count_reached(expected) => break,
                Some(ended) = self.spawned_readers.join_next() => {
                    ended??;
                    bail!("a reader ended unexpectedly");
                }
                () = sleep(STALL_TIMEOUT) => {
                    if self.delivery_tracker.delivery_counter.count() == delivered_count {
                        bail!("{} readers received {delivered_count} events instead of {expected}", self.reader_count);
                    }
                }
            }
        }
        // A reader that received too much has failed, even if all others have received their events.
        if let Some(ended) = self.spawned_readers.try_join_next() {
            ended??;
        }
        let delivered_count = self.delivery_tracker.delivery_counter.count();
        if delivered_count != expected {
            bail!("{} readers received {delivered_count} events instead of {expected}", self.reader_count);
        }
        Ok(())
    }

    /// Returns the number of events that all readers together must have received.
    fn expected_delivery_count(&self, bench_server: &BenchServer) -> u64 {
        let emitted = bench_server.event_counts_by_object();
        let since = emitted.iter().zip(&self.initial_event_counts).map(|(now, initial)| now - initial);
        match self.scope {
            ReaderScope::OneObjectEach => since.take(self.reader_count).sum(),
            ReaderScope::AllObjects => since.sum::<u64>() * self.reader_count as u64,
        }
    }

    /// Takes the delivery times of events with an emit time: until each had reached all of its readers, in milliseconds.
    pub(super) fn take_delivery_times(&self) -> Vec<f64> {
        std::mem::take(&mut self.delivery_tracker.lock_state().delivery_times_ms)
    }
}

/// The deliveries to all readers.
pub(super) struct DeliveryTracker {
    delivery_counter: EventCounter,
    /// The number of readers of each event.
    readers_per_event: usize,
    state: Mutex<DeliveryState>,
}

#[derive(Default)]
struct DeliveryState {
    /// The number of readers that have received an event, for events that have not reached all of their readers.
    reached_reader_counts: HashMap<u64, usize>,
    delivery_times_ms: Vec<f64>,
}

impl DeliveryTracker {
    pub(super) fn new(readers_per_event: usize) -> Self {
        Self { delivery_counter: EventCounter::default(), readers_per_event, state: Mutex::default() }
    }

    fn lock_state(&self) -> MutexGuard<'_, DeliveryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a reader has received this event.
    pub(super) fn record_delivery(&self, event: u64, emitted_at: Option<u64>) {
        if let Some(emitted_at) = emitted_at {
            let mut state = self.lock_state();
            let reached = state.reached_reader_counts.entry(event).or_default();
            *reached += 1;
            if *reached == self.readers_per_event {
                state.reached_reader_counts.remove(&event);
                state
                    .delivery_times_ms
                    .push(micros_since_clock_start().saturating_sub(emitted_at) as f64 / 1000.0);
            }
        }
        self.delivery_counter.increment();
    }
}

/// The thread on which all readers run. Readers of a real server are on other machines, so they must not compete with
/// the server's own work in its runtime.
struct ReaderThread(Option<Runtime>);

impl ReaderThread {
    fn start() -> anyhow::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("readers").enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    fn runtime_handle(&self) -> anyhow::Result<&tokio::runtime::Handle> {
        Ok(self.0.as_ref().context("the thread of the readers has ended")?.handle())
    }
}

impl Drop for ReaderThread {
    fn drop(&mut self) {
        // An async task must not wait for the thread to end, as dropping a runtime would.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
