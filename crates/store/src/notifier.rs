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
pub const NOTIFICATION_COALESCE_WINDOW: Duration = Duration::from_millis(5);
/// How often a node reads the store's state, so that it finds commits of its peers without a notification.
pub const PEER_COMMIT_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Delay before the listener for notifications reconnects after its connection broke.
pub const LISTENER_RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// Message by which a producer announces entries in the outbox.
const OUTBOX_MESSAGE: &str = "outbox";

/// Notifications about this node's commits that have not been sent to its peers yet.
#[derive(Debug)]
pub struct PeerNotifier {
    /// Identifies this process, so that it ignores its own messages.
    sender_id: Uuid,
    /// The newest event that peers have not been notified of; 0 if there is none.
    pending_journal_head: AtomicU64,
    /// Whether peers have yet to be notified of work: tasks that are ready, or due earlier than those before.
    has_pending_work: AtomicBool,
    /// Whether there are peers to notify. Until the first poll has found them, they find this node's commits by
    /// polling.
    has_peers: AtomicBool,
    /// Wakes the future that sends pending notifications.
    pending_signal: Notify,
    /// Signals that the outbox has entries.
    pub outbox_signal: Notify,
    /// Number of messages sent to peers.
    sent_message_count: AtomicU64,
}

impl Default for PeerNotifier {
    fn default() -> Self {
        Self {
            sender_id: Uuid::new_v4(),
            pending_journal_head: AtomicU64::new(0),
            has_pending_work: AtomicBool::new(false),
            has_peers: AtomicBool::new(false),
            pending_signal: Notify::new(),
            outbox_signal: Notify::new(),
            sent_message_count: AtomicU64::new(0),
        }
    }
}

impl PeerNotifier {
    pub fn sent_message_count(&self) -> u64 {
        self.sent_message_count.load(Ordering::Relaxed)
    }

    pub fn record_sent_message(&self) {
        self.sent_message_count.fetch_add(1, Ordering::Relaxed);
    }

    pub fn set_has_peers(&self, has_peers: bool) {
        self.has_peers.store(has_peers, Ordering::Relaxed);
    }

    /// Waits for a notification to send; returns its message. `None` if an earlier message has included it.
    pub async fn wait_for_outgoing_message(&self) -> Option<String> {
        self.pending_signal.notified().await;
        self.take_outgoing_message()
    }

    fn take_outgoing_message(&self) -> Option<String> {
        let head = self.pending_journal_head.swap(0, Ordering::AcqRel);
        let has_work = self.has_pending_work.swap(false, Ordering::AcqRel);
        (head > 0 || has_work).then(|| format!("{} {head} {}", self.sender_id, u8::from(has_work)))
    }

    /// Parses the message of a peer: the head of its journal, and whether there is new work. `None` if this node sent
    /// the message or it is malformed.
    fn parse_peer_message(&self, message: &str) -> Option<(EventId, bool)> {
        let mut fields = message.split(' ');
        let sender_id: Uuid = fields.next()?.parse().ok()?;
        let head = fields.next()?.parse().ok()?;
        let has_work = fields.next()? == "1";
        (sender_id != self.sender_id).then_some((head, has_work))
    }

    /// Forwards a message of the channel to the writer's listeners.
    pub fn handle_received_message<T: Tables>(&self, message: &str, writer: &Writer<T>) {
        if message == OUTBOX_MESSAGE {
            self.outbox_signal.notify_one();
            return;
        }
        let Some((head, has_work)) = self.parse_peer_message(message) else { return };
        if head > EventId::ZERO {
            writer.notify_listeners_of_peer_commit(StoreSignal::JournalGrew(head));
        }
        if has_work {
            writer.notify_listeners_of_peer_commit(StoreSignal::TasksReady);
        }
    }

    /// Signals ready tasks and outbox entries after the listener has reconnected, because missed messages are not
    /// repeated.
    pub fn signal_possibly_missed_messages<T: Tables>(&self, writer: &Writer<T>) {
        writer.notify_listeners_of_peer_commit(StoreSignal::TasksReady);
        self.outbox_signal.notify_one();
    }
}

impl CommitHook for PeerNotifier {
    fn after_commit(&self, head: Option<EventId>, has_new_work: bool) {
        if !self.has_peers.load(Ordering::Relaxed) {
            return;
        }
        self.pending_journal_head.fetch_max(head.map_or(0, EventId::get), Ordering::AcqRel);
        self.has_pending_work.fetch_or(has_new_work, Ordering::AcqRel);
        self.pending_signal.notify_one();
    }
}
