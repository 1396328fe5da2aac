//! Nodes notify each other by NOTIFY of commits with new events or work: of a first commit at once, under load of many
//! commits together. Each node listens on one connection. While that is disconnected, polling every half second finds
//! the same changes.

use std::sync::{Arc, Weak};

use futures::future::poll_fn;
use pointsman_core::store::StoreSignal;
use pointsman_core::{ErrorChain, EventId};
use pointsman_store::Writer;
use pointsman_store::notifier::{
    LISTENER_RECONNECT_DELAY, NOTIFICATION_COALESCE_WINDOW, PEER_COMMIT_POLL_INTERVAL, PeerNotifier,
};
use tokio_postgres::AsyncMessage;

use crate::connect::Endpoint;
use crate::pool::SessionPool;
use crate::rows::read_column;
use crate::session::query;
use crate::tables::PgTables;

/// Sends notifications to the other nodes, as long as the store is open.
pub(crate) async fn send_notifications(notifier: Weak<PeerNotifier>, pool: SessionPool) {
    loop {
        let Some(notifier_handle) = notifier.upgrade() else { return };
        let Some(payload) = notifier_handle.wait_for_outgoing_message().await else { continue };
        let sent = pool.run_single_statement(payload, |session, payload| {
            Box::pin(async move {
                Ok(session.query(query!("notification/notify_nodes", TEXT), &[payload]).await?)
            })
        });
        match sent.await {
            Ok(_) => notifier_handle.record_sent_message(),
            Err(error) => {
                tracing::debug!(
                    error = %ErrorChain(&error),
                    "could not notify the other nodes of new events or work; they find them by polling"
                )
            }
        }
        tokio::time::sleep(NOTIFICATION_COALESCE_WINDOW).await;
    }
}

/// Listens for notifications, as long as the store is open, and reconnects when the connection is lost.
pub(crate) async fn listen_for_notifications(
    notifier: Arc<PeerNotifier>,
    endpoint: Endpoint,
    writer: Writer<PgTables>,
) {
    loop {
        if let Err(error) = listen_until_disconnected(&notifier, &endpoint, &writer).await {
            tracing::debug!(error = %ErrorChain(&*error), "notification listener disconnected; reconnecting, polling meanwhile");
        }
        tokio::time::sleep(LISTENER_RECONNECT_DELAY).await;
    }
}

async fn listen_until_disconnected(
    notifier: &PeerNotifier,
    endpoint: &Endpoint,
    writer: &Writer<PgTables>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (client, mut connection) = endpoint.open_driver_connection_with_timeout().await?;
    let listening = client.batch_execute("LISTEN pointsman");
    tokio::pin!(listening);
    let mut is_listening = false;
    loop {
        tokio::select! {
            done = &mut listening, if !is_listening => {
                done?;
                is_listening = true;
                notifier.signal_possibly_missed_messages(writer);
            }
            message = poll_fn(|cx| connection.poll_message(cx)) => match message {
                Some(Ok(AsyncMessage::Notification(notification))) => notifier.handle_received_message(notification.payload(), writer),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err("the server closed the connection".into()),
            },
        }
    }
}

/// The state that polling compares with that of the last poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PolledState {
    last_event: EventId,
    commit_version: i64,
    live_node_count: i64,
    rules_digest: String,
}

/// Polls for changes, as long as the store is open: nothing waits longer than the interval if the listener is
/// disconnected, and rules that were written in SQL take effect.
pub(crate) async fn poll_for_changes(
    notifier: Arc<PeerNotifier>,
    pool: SessionPool,
    writer: Writer<PgTables>,
) {
    let mut previous = PolledState::default();
    loop {
        tokio::time::sleep(PEER_COMMIT_POLL_INTERVAL).await;
        let Ok(current) = read_polled_state(&pool).await else { continue };
        notifier.set_has_peers(current.live_node_count > 1);
        if current.last_event > previous.last_event {
            writer.notify_listeners_of_peer_commit(StoreSignal::JournalGrew(current.last_event));
        }
        if current.commit_version != previous.commit_version && current.live_node_count > 1 {
            writer.notify_listeners_of_peer_commit(StoreSignal::TasksReady);
        }
        let rules_reloaded = match current.rules_digest == previous.rules_digest {
            true => Ok(()),
            false => writer.run_in_transaction(|txn| txn.reload_rules(txn.state.last_observed_time())).await,
        };
        if rules_reloaded.is_ok() {
            previous = current;
        }
    }
}

async fn read_polled_state(pool: &SessionPool) -> pointsman_core::store::StoreResult<PolledState> {
    let read = pool.run_single_statement((), |session, ()| {
        Box::pin(async move {
            let rows = session.query(query!("notification/read_polled_state"), &[]).await?;
            let Some(row) = rows.first() else { return Ok(PolledState::default()) };
            Ok(PolledState {
                last_event: EventId::from_i64(read_column(row, 0)?),
                commit_version: read_column(row, 1)?,
                live_node_count: read_column(row, 2)?,
                rules_digest: read_column(row, 3)?,
            })
        })
    });
    read.await
}
