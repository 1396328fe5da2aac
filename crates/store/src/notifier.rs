//! Notifies the other nodes of a store about this node's commits. The first commit is published at once; under load,
//! several are combined into one message.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pointsman_core::EventId;
use pointsman_core::store::StoreSignal;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::tables::Tables;
use crate::writer::{CommitHook, Writer};

/// Commits within this time after a message share the next message, because each message has a cost.
pub const COALESCE_WINDOW: Duration = Duration::from_millis(5);
/// How often a node polls without a notification.
pub const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Delay before a disconnected listener reconnects.
pub const RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// Message that announces entries in the outbox.
const OUTBOX_MESSAGE: &str = "outbox";

/// Notifications about this node's commits that have not been sent to its peers yet.
#[derive(Debug)]
pub struct PeerNotifier {
    /// Identifies this process, so that it ignores its own messages.
    sender_id: Uuid,
    pending_journal_head: AtomicU64,
    has_pending_ready_tasks: AtomicBool,
    /// Whether other nodes are to be notified. Until the first check has found them, they find commits by polling.
    has_peers: AtomicBool,
    pending_signal: Notify,
    /// Signals that the outbox has entries.
    pub outbox_signal: Notify,
    /// Number of messages sent to peers.
    messages_sent: AtomicU64,
}

impl Default for PeerNotifier {
    fn default() -> Self {
        Self {
            sender_id: Uuid::new_v4(),
            pending_journal_head: AtomicU64::new(0),
            has_pending_ready_tasks: AtomicBool::new(false),
            has_peers: AtomicBool::new(false),
            pending_signal: Notify::new(),
            outbox_signal: Notify::new(),
            messages_sent: AtomicU64::new(0),
        }
    }
}

impl PeerNotifier {
    pub fn messages_sent(&self) -> u64 {
        self.messages_sent.load(Ordering::Relaxed)
    }

    pub fn count_sent_message(&self) {
        self.messages_sent.fetch_add(1, Ordering::Relaxed);
    }

    pub fn set_has_peers(&self, has_peers: bool) {
        self.has_peers.store(has_peers, Ordering::Relaxed);
    }

    /// Waits for something to publish; returns the message for the channel.
    pub async fn wait_for_message(&self) -> Option<String> {
        self.pending_signal.notified().await;
        self.take_pending_message()
    }

    fn take_pending_message(&self) -> Option<String> {
        let head = self.pending_journal_head.swap(0, Ordering::AcqRel);
        let work = self.has_pending_ready_tasks.swap(false, Ordering::AcqRel);
        (head > 0 || work).then(|| format!("{} {head} {}", self.sender_id, u8::from(work)))
    }

    /// Parses a message; `None` if this node sent it or it is malformed.
    fn parse_message(&self, message: &str) -> Option<(EventId, bool)> {
        let mut message = message.split(' ');
        let from: Uuid = message.next()?.parse().ok()?;
        let head = message.next()?.parse().ok()?;
        let work = message.next()? == "1";
        (from != self.sender_id).then_some((head, work))
    }

    /// Forwards a message of the channel to the writer's listeners.
    pub fn handle_message<T: Tables>(&self, message: &str, writer: &Writer<T>) {
        if message == OUTBOX_MESSAGE {
            self.outbox_signal.notify_one();
            return;
        }
        let Some((head, work)) = self.parse_message(message) else { return };
        if head > EventId::ZERO {
            writer.notify_listeners(StoreSignal::JournalGrew(head));
        }
        if work {
            writer.notify_listeners(StoreSignal::TasksReady);
        }
    }

    /// Signals ready tasks and outbox entries after the listener has reconnected, because missed messages are not
    /// repeated.
    pub fn signal_possibly_missed_messages<T: Tables>(&self, writer: &Writer<T>) {
        writer.notify_listeners(StoreSignal::TasksReady);
        self.outbox_signal.notify_one();
    }
}

impl CommitHook for PeerNotifier {
    fn on_commit(&self, head: Option<EventId>, work: bool) {
        if !self.has_peers.load(Ordering::Relaxed) {
            return;
        }
        self.pending_journal_head.fetch_max(head.map_or(0, EventId::get), Ordering::AcqRel);
        self.has_pending_ready_tasks.fetch_or(work, Ordering::AcqRel);
        self.pending_signal.notify_one();
    }
}
