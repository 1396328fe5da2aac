//! The scheduler: while every slot is occupied and more tasks are ready, it selects the next tasks ahead (`new` →
//! `scheduled`), fairly and before they are needed, so that the claim for a freed slot finds them selected. While slots
//! are free, claims select tasks themselves and this service sleeps.
//!
//! At most twice as many tasks as slots are selected ahead, so that a pause never has to rewrite a large backlog.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::ErrorChain;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// How often tasks are selected ahead while the node is saturated.
const LOOK_AHEAD_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(select_tasks_ahead_while_saturated(node)).await;
}

async fn select_tasks_ahead_while_saturated(node: Arc<Node>) {
    let mut is_saturated = node.has_ready_tasks_waiting_for_slot.subscribe();
    while is_saturated.wait_for(|saturated| *saturated).await.is_ok() {
        if node.time_source.is_in_service()
            && let Err(error) =
                node.store.schedule_tasks_ahead(2 * node.slots.total(), node.time_source.now()).await
        {
            node.count_store_error();
            tracing::debug!(
                error = %ErrorChain(&error),
                "could not select the next tasks ahead of their claim; retrying, and claims select tasks themselves \
                 meanwhile"
            );
        }
        sleep(LOOK_AHEAD_INTERVAL).await;
    }
}
