//! Notifications of the store after a commit, and the services that they wake.
//!
//! This is the only part of a node that the store references. It has no reference to the store, so that a store is
//! never dropped on one of its own threads.

use pointsman_core::EventId;
use pointsman_core::store::{Listener, Signal};
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub(crate) struct WakeSignals {
    /// Wakes the worker: there may be work.
    pub(crate) worker: Notify,
    /// Wakes the long-poll broker, where pull workers wait: there may be work.
    pub(crate) pull_broker: Notify,
    /// The newest event id that was reported.
    pub(crate) journal_head: watch::Sender<EventId>,
}

impl WakeSignals {
    pub(crate) fn new() -> Self {
        Self {
            worker: Notify::new(),
            pull_broker: Notify::new(),
            journal_head: watch::Sender::new(EventId::ZERO),
        }
    }

    /// Wakes the worker and the long-poll broker: there may be work.
    pub(crate) fn notify_work(&self) {
        self.worker.notify_one();
        self.pull_broker.notify_one();
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

impl Listener for WakeSignals {
    fn heard(&self, signal: Signal) {
        match signal {
            Signal::Journal(head) => self.advance_journal_head(head),
            Signal::Work => self.notify_work(),
        }
    }
}
