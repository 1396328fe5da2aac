//! Nodes wake each other: a commit that has brought events or work is told to the others by NOTIFY, the first at once, and
//! under load many together. One connection listens. Should it be cut, a look every half second
//! finds what it would have told.

use std::sync::{Arc, Weak};

use futures::future::poll_fn;
use pointsman_core::EventId;
use pointsman_core::store::Signal;
use pointsman_store::Writer;
use pointsman_store::news::{LOOK, News, RECONNECT, SHARED};
use tokio_postgres::AsyncMessage;

use crate::connect::Endpoint;
use crate::pool::Pool;
use crate::rows::get;
use crate::session::query;
use crate::tables::PgTables;

/// Tells the others, as long as the store is open.
pub(crate) async fn tell(news: Weak<News>, pool: Pool) {
    loop {
        let Some(fresh) = news.upgrade() else { return };
        let Some(words) = fresh.next().await else { continue };
        let told = pool.glance(words, |session, words| {
            Box::pin(async move { Ok(session.query(query!("watch/notify", TEXT), &[words]).await?) })
        });
        match told.await {
            Ok(_) => fresh.was_sent(),
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
                news.may_have_missed(writer);
            }
            message = poll_fn(|cx| wire.poll_message(cx)) => match message {
                Some(Ok(AsyncMessage::Notification(told))) => news.hear(told.payload(), writer),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err("the connection was closed".into()),
            },
        }
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
        news.others_are_there(found.nodes > 1);
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
