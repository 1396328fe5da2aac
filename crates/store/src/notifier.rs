//! What this node's commits have brought, for the other nodes of a store. However they are told, the first news goes at
//! once, and under load many go together.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pointsman_core::EventId;
use pointsman_core::store::Signal;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::tables::Tables;
use crate::writer::{CommitHook, Writer};

/// What has come within this time after something was told is told together: telling costs something, too.
pub const COALESCE_WINDOW: Duration = Duration::from_millis(5);
/// How often a node looks by itself.
pub const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How soon a listener that was cut tries again.
pub const RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// What is said when something lies in the outbox.
const OUTBOX_MESSAGE: &str = "outbox";

/// What this node's commits have brought and the others do not know yet.
#[derive(Debug)]
pub struct PeerNotifier {
    /// Tells this process from the others.
    me: Uuid,
    head: AtomicU64,
    work: AtomicBool,
    /// There are other nodes to be told. Until the first look finds them, they find out by looking.
    others: AtomicBool,
    fresh: Notify,
    /// Something lies in the outbox.
    pub outbox: Notify,
    /// How many times others were told.
    sent: AtomicU64,
}

impl Default for PeerNotifier {
    fn default() -> Self {
        Self {
            me: Uuid::new_v4(),
            head: AtomicU64::new(0),
            work: AtomicBool::new(false),
            others: AtomicBool::new(false),
            fresh: Notify::new(),
            outbox: Notify::new(),
            sent: AtomicU64::new(0),
        }
    }
}

impl PeerNotifier {
    pub fn messages_sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn count_sent_message(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub fn set_has_peers(&self, there: bool) {
        self.others.store(there, Ordering::Relaxed);
    }

    /// Waits until there may be something to tell; answers it in the words of the channel.
    pub async fn next_message(&self) -> Option<String> {
        self.fresh.notified().await;
        self.take_message()
    }

    fn take_message(&self) -> Option<String> {
        let head = self.head.swap(0, Ordering::AcqRel);
        let work = self.work.swap(false, Ordering::AcqRel);
        (head > 0 || work).then(|| format!("{} {head} {}", self.me, u8::from(work)))
    }

    /// What others have told; nothing if it was this node itself.
    fn parse_message(&self, words: &str) -> Option<(EventId, bool)> {
        let mut words = words.split(' ');
        let from: Uuid = words.next()?.parse().ok()?;
        let head = words.next()?.parse().ok()?;
        let work = words.next()? == "1";
        (from != self.me).then_some((head, work))
    }

    /// Passes on what was said on the channel.
    pub fn handle_message<T: Tables>(&self, words: &str, writer: &Writer<T>) {
        if words == OUTBOX_MESSAGE {
            self.outbox.notify_one();
            return;
        }
        let Some((head, work)) = self.parse_message(words) else { return };
        if head > EventId::ZERO {
            writer.notify_listeners(Signal::Journal(head));
        }
        if work {
            writer.notify_listeners(Signal::Work);
        }
    }

    /// Somebody listens again: what was told before is not told a second time, so that everybody looks.
    pub fn assume_missed_messages<T: Tables>(&self, writer: &Writer<T>) {
        writer.notify_listeners(Signal::Work);
        self.outbox.notify_one();
    }
}

impl CommitHook for PeerNotifier {
    fn on_commit(&self, head: Option<EventId>, work: bool) {
        if !self.others.load(Ordering::Relaxed) {
            return;
        }
        self.head.fetch_max(head.map_or(0, EventId::get), Ordering::AcqRel);
        self.work.fetch_or(work, Ordering::AcqRel);
        self.fresh.notify_one();
    }
}
