//! Engine events about the node itself: the journal records that it starts, runs, stops, and has stopped.
//!
//! A bounded run publishes none: it is a short-lived addition to the nodes that run permanently.

use std::time::Duration;

use pointsman_core::ErrorChain;
use pointsman_core::engine_event::{EngineEvent, EngineState};
use pointsman_core::store::Journal;
use tokio::time::timeout;

use crate::Settings;
use crate::metrics::Metrics;

/// How long publishing may take. These events are informative, so nothing waits longer for them.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);

/// Publishes the state of the node.
pub(crate) async fn publish_node_state(
    journal: &dyn Journal,
    settings: &Settings,
    metrics: &Metrics,
    state: EngineState,
) {
    publish_or_log(journal, settings, metrics, EngineEvent::SchedulerStateChanged { state }).await;
}

/// Publishes that the node has stopped.
pub(crate) async fn publish_node_stopped(journal: &dyn Journal, settings: &Settings, metrics: &Metrics) {
    publish_or_log(journal, settings, metrics, EngineEvent::SchedulerClosed).await;
}

/// Publishes an event; a failure is logged and does not affect the node.
async fn publish_or_log(journal: &dyn Journal, settings: &Settings, metrics: &Metrics, event: EngineEvent) {
    if settings.bounded_run.is_some() {
        return;
    }
    let error = match timeout(
        PUBLISH_TIMEOUT,
        journal.publish_engine_events(vec![event.clone()], settings.time_source.now()),
    )
    .await
    {
        Ok(Ok(())) => return,
        Ok(Err(error)) => ErrorChain(&error).to_string(),
        Err(_) => format!("the store did not answer within {PUBLISH_TIMEOUT:?}"),
    };
    metrics.store_errors.inc();
    tracing::warn!(
        error,
        ?event,
        "could not record the node state in the journal; followers of the journal miss it"
    );
}
