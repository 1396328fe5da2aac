//! Nodes notify each other of commits with new events or work by NOTIFY: the first commit at once, under load many
//! commits together. One connection listens. While it is disconnected, polling every half second finds the same
//! changes.

use std::sync::{Arc, Weak};

use futures::future::poll_fn;
use pointsman_core::EventId;
use pointsman_core::store::Signal;
use pointsman_store::Writer;
use pointsman_store::news::{LOOK, News, RECONNECT, SHARED};
use tokio_postgres::AsyncMessage;

use crate::connect::Endpoint;
use crate::pool::Pool;
use crate::rows::read_column;
use crate::session::query;
use crate::tables::PgTables;

/// Sends notifications to the other nodes, as long as the store is open.
pub(crate) async fn send_notifications(notifier: Weak<News>, pool: Pool) {
    loop {
        let Some(notifier_handle) = notifier.upgrade() else { return };
        let Some(payload) = notifier_handle.next().await else { continue };
        let sent = pool.read_statement(payload, |session, payload| {
            Box::pin(
                async move { Ok(session.query(query!("notifications/notify", TEXT), &[payload]).await?) },
            )
        });
        match sent.await {
            Ok(_) => notifier_handle.was_sent(),
            Err(error) => {
                tracing::debug!(
                    %error,
                    "could not notify the other nodes of new events or work; they find them by polling"
                )
            }
        }
        tokio::time::sleep(SHARED).await;
    }
}

/// Listens for notifications, and reconnects when the connection is lost.
pub(crate) async fn listen_for_notifications(
    notifier: Arc<News>,
    endpoint: Endpoint,
    writer: Writer<PgTables>,
) {
    loop {
        if let Err(error) = listen_until_disconnected(&notifier, &endpoint, &writer).await {
            tracing::debug!(%error, "notification listener disconnected; reconnecting, polling meanwhile");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn listen_until_disconnected(
    notifier: &News,
    endpoint: &Endpoint,
    writer: &Writer<PgTables>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (client, mut connection) = endpoint.open_with_timeout().await?;
    let listening = client.batch_execute("LISTEN pointsman");
    tokio::pin!(listening);
    let mut is_listening = false;
    loop {
        tokio::select! {
            done = &mut listening, if !is_listening => {
                done?;
                is_listening = true;
                notifier.may_have_missed(writer);
            }
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                Some(Ok(AsyncMessage::Notification(notification))) => notifier.hear(notification.payload(), writer),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err("the server closed the connection".into()),
            },
        }
    }
}

/// The state that polling compares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ObservedState {
    last_event: EventId,
    version: i64,
    live_nodes: i64,
    rules_digest: String,
}

/// Polls for changes, so that nothing waits longer than the interval if the listener is disconnected; also finds rules
/// that were written in SQL.
pub(crate) async fn poll_for_changes(notifier: Arc<News>, pool: Pool, writer: Writer<PgTables>) {
    let mut previous = ObservedState::default();
    loop {
        tokio::time::sleep(LOOK).await;
        let Ok(found) = read_observed_state(&pool).await else { continue };
        notifier.others_are_there(found.live_nodes > 1);
        if found.last_event > previous.last_event {
            writer.tell(Signal::Journal(found.last_event));
        }
        if found.version != previous.version && found.live_nodes > 1 {
            writer.tell(Signal::Work);
        }
        let reloaded = match found.rules_digest == previous.rules_digest {
            true => Ok(()),
            false => writer.run(|txn| txn.rules_changed(txn.state.last_seen())).await,
        };
        if reloaded.is_ok() {
            previous = found;
        }
    }
}

async fn read_observed_state(pool: &Pool) -> pointsman_core::store::Result<ObservedState> {
    let read = pool.read_statement((), |session, ()| {
        Box::pin(async move {
            let rows = session.query(query!("notifications/read_state"), &[]).await?;
            let Some(row) = rows.first() else { return Ok(ObservedState::default()) };
            Ok(ObservedState {
                last_event: EventId::from_i64(read_column(row, 0)?),
                version: read_column(row, 1)?,
                live_nodes: read_column(row, 2)?,
                rules_digest: read_column(row, 3)?,
            })
        })
    });
    read.await
}
