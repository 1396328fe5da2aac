//! Notifications between nodes: a node publishes its commits with events or tasks on a channel, the first one at once, and
//! under load many in one message. One connection listens. While it is down, polling twice a second finds the same changes.

use std::sync::{Arc, Weak};

use futures::StreamExt;
use pointsman_core::store::StoreSignal;
use pointsman_core::{ErrorChain, EventId};
use pointsman_store::Writer;
use pointsman_store::notifier::{
    LISTENER_RECONNECT_DELAY, NOTIFICATION_COALESCE_WINDOW, PEER_COMMIT_POLL_INTERVAL, PeerNotifier,
};
use redis::aio::MultiplexedConnection;

use crate::connect::Endpoint;
use crate::error::{DriverError, OpenError};
use crate::keys::Keys;
use crate::reader_pool::ReaderPool;
use crate::tables::RedisTables;

/// Returns the channel name. It contains the database, because all databases of a server share channels.
fn channel_name(endpoint: &Endpoint) -> Vec<u8> {
    Keys::new(endpoint.key_prefix()).with_prefix(&format!("pointsman:notifications:{}", endpoint.database()))
}

/// Publishes notifications as long as the store is open.
pub(crate) async fn publish_notifications(notifier: Weak<PeerNotifier>, endpoint: Arc<Endpoint>) {
    let channel = channel_name(&endpoint);
    let mut connection = None;
    loop {
        let Some(notifier) = notifier.upgrade() else { return };
        let Some(payload) = notifier.wait_for_outgoing_message().await else { continue };
        match publish(&mut connection, &endpoint, &channel, &payload).await {
            Ok(()) => notifier.record_sent_message(),
            Err(error) => {
                connection = None;
                tracing::debug!(
                    error = %ErrorChain(&*error),
                    "could not notify peers of a commit; they find it by polling, up to half a second later"
                );
            }
        }
        tokio::time::sleep(NOTIFICATION_COALESCE_WINDOW).await;
    }
}

async fn publish(
    connection: &mut Option<MultiplexedConnection>,
    endpoint: &Endpoint,
    channel: &[u8],
    payload: &str,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let open = match connection {
        Some(open) => open,
        None => connection.insert(endpoint.connect().await?),
    };
    Ok(redis::cmd("PUBLISH").arg(channel).arg(payload).query_async(open).await?)
}

/// Listens for notifications of peers, and reconnects.
pub(crate) async fn listen_for_notifications(
    notifier: Arc<PeerNotifier>,
    endpoint: Arc<Endpoint>,
    writer: Writer<RedisTables>,
) {
    loop {
        if let Err(error) = listen_until_disconnected(&notifier, &endpoint, &writer).await {
            tracing::debug!(error = %ErrorChain(&error), "notification listener disconnected; polling until it is reconnected");
        }
        tokio::time::sleep(LISTENER_RECONNECT_DELAY).await;
    }
}

async fn listen_until_disconnected(
    notifier: &PeerNotifier,
    endpoint: &Endpoint,
    writer: &Writer<RedisTables>,
) -> Result<(), OpenError> {
    let mut listener = endpoint.connect_for_listening().await?;
    let to_open_error = |error: redis::RedisError| OpenError::OpenFailed {
        address: endpoint.display_location(),
        source: DriverError(error).into(),
    };
    listener.subscribe(channel_name(endpoint)).await.map_err(to_open_error)?;
    notifier.signal_possibly_missed_messages(writer);
    let mut messages = listener.on_message();
    while let Some(message) = messages.next().await {
        if let Ok(payload) = message.get_payload::<String>() {
            notifier.handle_received_message(&payload, writer);
        }
    }
    Ok(())
}

/// State of the store that a poll read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PolledState {
    last_event: EventId,
    commit_version: i64,
    has_peers: bool,
}

/// Polls for changes, so that they are found even if the listener is down.
pub(crate) async fn poll_for_changes(
    notifier: Arc<PeerNotifier>,
    readers: ReaderPool,
    writer: Writer<RedisTables>,
) {
    let mut before = PolledState::default();
    loop {
        tokio::time::sleep(PEER_COMMIT_POLL_INTERVAL).await;
        let polling = readers.read_snapshot(|overlay, store_state| {
            let live_nodes =
                overlay.read_all_nodes(false)?.iter().filter(|node| !node.has_left_or_died).count();
            let (last_event, commit_version) =
                (store_state.counters.last_event, store_state.commit_version.number);
            Ok(PolledState { last_event, commit_version, has_peers: live_nodes > 1 })
        });
        let Ok(found) = polling.await else { continue };
        notifier.set_has_peers(found.has_peers);
        if found.last_event > before.last_event {
            writer.notify_listeners_of_peer_commit(StoreSignal::JournalGrew(found.last_event));
        }
        if found.commit_version != before.commit_version && found.has_peers {
            writer.notify_listeners_of_peer_commit(StoreSignal::TasksReady);
        }
        before = found;
    }
}
