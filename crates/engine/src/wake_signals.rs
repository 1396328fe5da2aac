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
    pub(crate) desk: Notify,
    /// The newest id that somebody has told of.
    pub(crate) head: watch::Sender<EventId>,
}

impl WakeSignals {
    pub(crate) fn new() -> Self {
        Self { worker: Notify::new(), desk: Notify::new(), head: watch::Sender::new(EventId::ZERO) }
    }

    /// There may be work.
    pub(crate) fn work(&self) {
        self.worker.notify_one();
        self.desk.notify_one();
    }

    /// The journal has grown up to this id.
    pub(crate) fn grown(&self, head: EventId) {
        self.head.send_if_modified(|known| {
            let newer = head > *known;
            *known = head.max(*known);
            newer
        });
    }
}

impl Listener for WakeSignals {
    fn heard(&self, signal: Signal) {
        match signal {
            Signal::Journal(head) => self.grown(head),
            Signal::Work => self.work(),
        }
    }
}
