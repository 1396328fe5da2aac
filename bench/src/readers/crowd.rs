//! All readers together: who they are, and whether they have got what was emitted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::house::{House, micros};
use super::reader::{Reader, Way};
use crate::rig::Handled;

/// How long no reader at all may get anything while something is still to come.
const STUCK: Duration = Duration::from_secs(60);

/// What each reader follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    /// The n-th reader follows the n-th object.
    OneObjectEach,
    Everything,
}

pub(super) struct Crowd {
    follow: Follow,
    readers: usize,
    /// What each object had got before anybody read.
    before: Vec<u64>,
    ledger: Arc<Ledger>,
    reading: JoinSet<anyhow::Result<()>>,
    _thread: Thread,
}

impl Crowd {
    /// So many readers, half of them by long poll and half by server-sent events. Each has got an event when this
    /// answers, so that all of them are there. Nothing else may be emitted meanwhile.
    pub(super) async fn gather(house: &House, follow: Follow, readers: usize) -> anyhow::Result<Self> {
        let thread = Thread::start()?;
        let (before, head) = (house.emitted(), house.head().await?);
        let of_each = if follow == Follow::Everything { readers } else { 1 };
        let ledger = Arc::new(Ledger::new(of_each));
        let mut reading = JoinSet::new();
        for n in 0..readers {
            let (first, next) = match follow {
                Follow::OneObjectEach => (n, before[n..=n].to_vec()),
                Follow::Everything => (0, before.clone()),
            };
            let reader = Reader {
                way: if n % 2 == 0 { Way::LongPoll } else { Way::Stream },
                only: (follow == Follow::OneObjectEach).then_some(n),
                first,
                next,
                after: head.get(),
                ledger: ledger.clone(),
            };
            let read = reader.read(house.address(), house.token().to_owned());
            reading
                .spawn_on(async move { read.await.with_context(|| format!("reader {n}")) }, thread.handle()?);
        }
        let mut crowd = Self { follow, readers, before, ledger, reading, _thread: thread };
        house.round().await?;
        crowd.caught_up(house).await?;
        Ok(crowd)
    }

    /// Waits until every reader has got all that was emitted for it.
    pub(super) async fn caught_up(&mut self, house: &House) -> anyhow::Result<()> {
        let expected = self.expected(house);
        loop {
            let got = self.ledger.arrived.count();
            tokio::select! {
                () = self.ledger.arrived.reached(expected) => break,
                Some(ended) = self.reading.join_next() => {
                    ended??;
                    bail!("a reader has ended by itself");
                }
                () = sleep(STUCK) => {
                    if self.ledger.arrived.count() == got {
                        bail!("{} readers got {got} events instead of {expected}", self.readers);
                    }
                }
            }
        }
        // One that got too much has failed, though all the others may have what they want.
        if let Some(ended) = self.reading.try_join_next() {
            ended??;
        }
        let got = self.ledger.arrived.count();
        if got != expected {
            bail!("{} readers got {got} events instead of {expected}", self.readers);
        }
        Ok(())
    }

    /// How many events all readers together are to have got.
    fn expected(&self, house: &House) -> u64 {
        let emitted = house.emitted();
        let since = emitted.iter().zip(&self.before).map(|(now, before)| now - before);
        match self.follow {
            Follow::OneObjectEach => since.take(self.readers).sum(),
            Follow::Everything => since.sum::<u64>() * self.readers as u64,
        }
    }

    /// How long each event that told when it was emitted took to reach all of its readers, in milliseconds.
    pub(super) fn took(&self) -> Vec<f64> {
        std::mem::take(&mut self.ledger.book().took)
    }
}

/// What readers got.
pub(super) struct Ledger {
    arrived: Handled,
    /// How many readers an event has.
    of_each: usize,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    /// How many readers have got the events that have not reached all of theirs.
    partly: HashMap<u64, usize>,
    took: Vec<f64>,
}

impl Ledger {
    pub(super) fn new(of_each: usize) -> Self {
        Self { arrived: Handled::default(), of_each, book: Mutex::default() }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader has got this event.
    pub(super) fn enter(&self, event: u64, at: Option<u64>) {
        if let Some(at) = at {
            let mut book = self.book();
            let reached = book.partly.entry(event).or_default();
            *reached += 1;
            if *reached == self.of_each {
                book.partly.remove(&event);
                book.took.push(micros().saturating_sub(at) as f64 / 1000.0);
            }
        }
        self.arrived.add();
    }
}

/// The thread on which all readers run. Those of a server are elsewhere, and must not stand in line with its own work.
struct Thread(Option<Runtime>);

impl Thread {
    fn start() -> anyhow::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("readers").enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    fn handle(&self) -> anyhow::Result<&tokio::runtime::Handle> {
        Ok(self.0.as_ref().context("the readers' thread has ended")?.handle())
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // An async task must not wait for the thread to end, as dropping a runtime would.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
