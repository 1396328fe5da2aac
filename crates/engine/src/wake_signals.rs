//! Notifications of the store after a commit, and the services that they wake.
//!
//! This is the only part of a node that the store references. It has no reference to the store, so that a store is
//! never dropped on one of its own threads.

use pointsman_core::EventId;
use pointsman_core::store::{StoreListener, StoreSignal};
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub(crate) struct WakeSignals {
    /// Wakes the worker: there may be work.
    pub(crate) worker_wakeup: Notify,
    /// Wakes the long-poll broker, where pull workers wait: there may be work.
    pub(crate) pull_broker_wakeup: Notify,
    /// The id of the newest event that a commit has reported.
    pub(crate) journal_head: watch::Sender<EventId>,
}

impl WakeSignals {
    pub(crate) fn new() -> Self {
        Self {
            worker_wakeup: Notify::new(),
            pull_broker_wakeup: Notify::new(),
            journal_head: watch::Sender::new(EventId::ZERO),
        }
    }

    /// Wakes the worker and the long-poll broker: there may be work.
    pub(crate) fn notify_work(&self) {
        self.worker_wakeup.notify_one();
        self.pull_broker_wakeup.notify_one();
    }

    /// Records that the journal has grown up to this id, and wakes its readers.
    pub(crate) fn advance_journal_head(&self, head: EventId) {
        self.journal_head.send_if_modified(|current| {
            let newer = head > *current;
            *current = head.max(*current);
            newer
        });
    }
}

impl StoreListener for WakeSignals {
    fn on_signal(&self, signal: StoreSignal) {
        match signal {
            StoreSignal::JournalGrew(head) => self.advance_journal_head(head),
            StoreSignal::TasksReady => self.notify_work(),
        }
    }
}
