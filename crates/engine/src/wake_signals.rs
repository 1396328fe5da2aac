//! What the store tells of its commits, and who is woken by it.
//!
//! This is all that the store keeps of a node. It holds nothing of the store's in turn, so that a store is
//! never dropped on one of its own threads.

use pointsman_core::EventId;
use pointsman_core::store::{Listener, Signal};
use tokio::sync::{Notify, watch};

#[derive(Debug)]
pub(crate) struct WakeSignals {
    /// Wakes the worker: there may be work.
    pub(crate) worker: Notify,
    /// Wakes the desk where workers elsewhere wait: there may be work.
    pub(crate) pull_broker: Notify,
    /// The newest id that somebody has told of.
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

    /// There may be work.
    pub(crate) fn notify_work(&self) {
        self.worker.notify_one();
        self.pull_broker.notify_one();
    }

    /// The journal has grown up to this id.
    pub(crate) fn advance_journal_head(&self, head: EventId) {
        self.journal_head.send_if_modified(|known| {
            let newer = head > *known;
            *known = head.max(*known);
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
