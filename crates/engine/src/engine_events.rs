//! What a node tells of itself in the journal: that it starts, runs, stops, and is gone.
//!
//! A guest tells nothing: it comes and goes beside the one that runs for good.

use std::time::Duration;

use pointsman_core::engine_event::{EngineEvent, SchedulerState};
use pointsman_core::store::Store;
use tokio::time::timeout;

use crate::Settings;
use crate::metrics::Metrics;

/// How long the store may take. Nothing waits for it longer: it is good to know, and no more.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);

/// Tells how the node stands.
pub(crate) async fn publish_node_state(
    store: &dyn Store,
    settings: &Settings,
    metrics: &Metrics,
    state: SchedulerState,
) {
    publish(store, settings, metrics, EngineEvent::SchedulerStateChanged { state }).await;
}

/// Tells that the node is gone.
pub(crate) async fn publish_node_closed(store: &dyn Store, settings: &Settings, metrics: &Metrics) {
    publish(store, settings, metrics, EngineEvent::SchedulerClosed).await;
}

/// Whatever becomes of it, the node goes on with what it is about.
async fn publish(store: &dyn Store, settings: &Settings, metrics: &Metrics, event: EngineEvent) {
    if settings.bounded_run.is_some() {
        return;
    }
    let why =
        match timeout(PUBLISH_TIMEOUT, store.tell(vec![event.clone()], settings.time_source.now())).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the store does not answer".to_owned(),
        };
    metrics.store_errors.inc();
    tracing::warn!(error = why, ?event, "the journal does not tell how this node stands");
}
