//! Nodes wake each other: a commit that has brought events or work is told to the others by NOTIFY, the first at once, and
//! under load many together. One connection listens. Should it be cut, a look every half second
//! finds what it would have told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::poll_fn;
use pointsman_core::EventId;
use pointsman_core::store::Signal;
use pointsman_store::{Overhears, Writer};
use tokio::sync::Notify;
use tokio_postgres::AsyncMessage;
use uuid::Uuid;

use crate::connect::Endpoint;
use crate::pool::Pool;
use crate::rows::get;
use crate::session::query;
use crate::tables::PgTables;

/// How often a node looks by itself.
const LOOK: Duration = Duration::from_millis(500);
/// What has come within this time after something was told is told together: each NOTIFY is a transaction of its own.
const SHARED: Duration = Duration::from_millis(5);
/// How soon a listener that was cut tries again.
const RECONNECT: Duration = Duration::from_millis(500);
/// What is said on the channel when something lies in the outbox.
const OUTBOX: &str = "outbox";

/// What this node's commits have brought and the others do not know yet.
#[derive(Debug)]
pub(crate) struct News {
    /// Tells this process from the others.
    me: Uuid,
    head: AtomicU64,
    work: AtomicBool,
    /// There are other nodes to be told. Until the first look finds them, they find out by looking.
    others: AtomicBool,
    fresh: Notify,
    /// Something lies in the outbox.
    pub(crate) outbox: Notify,
    /// How many NOTIFYs were sent.
    sent: AtomicU64,
}

impl News {
    pub(crate) fn new() -> Self {
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

    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// What there is to tell, in the words of the channel.
    fn words(&self) -> Option<String> {
        let head = self.head.swap(0, Ordering::AcqRel);
        let work = self.work.swap(false, Ordering::AcqRel);
        (head > 0 || work).then(|| format!("{} {head} {}", self.me, u8::from(work)))
    }

    /// What others have told; nothing if it was this node itself.
    fn understand(&self, words: &str) -> Option<(EventId, bool)> {
        let mut words = words.split(' ');
        let from: Uuid = words.next()?.parse().ok()?;
        let head = words.next()?.parse().ok()?;
        let work = words.next()? == "1";
        (from != self.me).then_some((head, work))
    }
}

impl Overhears for News {
    fn committed(&self, head: Option<EventId>, work: bool) {
        if !self.others.load(Ordering::Relaxed) {
            return;
        }
        self.head.fetch_max(head.map_or(0, EventId::get), Ordering::AcqRel);
        self.work.fetch_or(work, Ordering::AcqRel);
        self.fresh.notify_one();
    }
}

/// Tells the others, as long as the store is open.
pub(crate) async fn tell(news: Weak<News>, pool: Pool) {
    loop {
        let Some(fresh) = news.upgrade() else { return };
        fresh.fresh.notified().await;
        let Some(words) = fresh.words() else { continue };
        let told = pool.glance(words, |session, words| {
            Box::pin(async move { Ok(session.query(query!("watch/notify", TEXT), &[words]).await?) })
        });
        match told.await {
            Ok(_) => drop(fresh.sent.fetch_add(1, Ordering::Relaxed)),
            Err(error) => tracing::debug!(%error, "the other nodes could not be told"),
        }
        tokio::time::sleep(SHARED).await;
    }
}

/// Listens for what others tell, and connects again when it is cut.
pub(crate) async fn listen(news: Arc<News>, endpoint: Endpoint, writer: Writer<PgTables>) {
    loop {
        if let Err(error) = listen_once(&news, &endpoint, &writer).await {
            tracing::debug!(%error, "nobody listens to the other nodes for a moment");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn listen_once(
    news: &News,
    endpoint: &Endpoint,
    writer: &Writer<PgTables>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (client, mut wire) = endpoint.open_in_time().await?;
    let listening = client.batch_execute("LISTEN pointsman");
    tokio::pin!(listening);
    let mut begun = false;
    loop {
        tokio::select! {
            done = &mut listening, if !begun => {
                done?;
                begun = true;
                // What was told before is not told again.
                writer.tell(Signal::Work);
                news.outbox.notify_one();
            }
            message = poll_fn(|cx| wire.poll_message(cx)) => match message {
                Some(Ok(AsyncMessage::Notification(told))) => hear(news, told.payload(), writer),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err("the connection was closed".into()),
            },
        }
    }
}

fn hear(news: &News, words: &str, writer: &Writer<PgTables>) {
    if words == OUTBOX {
        news.outbox.notify_one();
        return;
    }
    let Some((head, work)) = news.understand(words) else { return };
    if head > EventId::ZERO {
        writer.tell(Signal::Journal(head));
    }
    if work {
        writer.tell(Signal::Work);
    }
}

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Glance {
    head: EventId,
    version: i64,
    nodes: i64,
    rules: String,
}

/// Looks by itself, so that nothing waits longer than that, whatever became of the listener; and finds rules that were
/// written by hand.
pub(crate) async fn look(news: Arc<News>, pool: Pool, writer: Writer<PgTables>) {
    let mut before = Glance::default();
    loop {
        tokio::time::sleep(LOOK).await;
        let Ok(found) = glance(&pool).await else { continue };
        news.others.store(found.nodes > 1, Ordering::Relaxed);
        if found.head > before.head {
            writer.tell(Signal::Journal(found.head));
        }
        if found.version != before.version && found.nodes > 1 {
            writer.tell(Signal::Work);
        }
        let looked_up = match found.rules == before.rules {
            true => Ok(()),
            false => writer.run(|txn| txn.rules_changed(txn.state.last_seen())).await,
        };
        if looked_up.is_ok() {
            before = found;
        }
    }
}

async fn glance(pool: &Pool) -> pointsman_core::store::Result<Glance> {
    let look = pool.glance((), |session, ()| {
        Box::pin(async move {
            let rows = session.query(query!("watch/glance"), &[]).await?;
            let Some(row) = rows.first() else { return Ok(Glance::default()) };
            Ok(Glance {
                head: EventId::from_i64(get(row, 0)?),
                version: get(row, 1)?,
                nodes: get(row, 2)?,
                rules: get(row, 3)?,
            })
        })
    });
    look.await
}
