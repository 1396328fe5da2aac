//! The look-ahead: while every slot is taken and more is ready, the next tasks are chosen (`new` →
//! `scheduled`), fairly and before they are needed, so that the claim of a freed slot finds them chosen. Where
//! slots are free, claims choose for themselves and this room sleeps.
//!
//! The look-ahead is twice the slots at most: a pause must never have to rewrite a backlog.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// How often it looks while the node is saturated.
const LOOK_AHEAD_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(schedule_ahead(node)).await;
}

async fn schedule_ahead(node: Arc<Node>) {
    let mut saturated = node.is_saturated.subscribe();
    while saturated.wait_for(|saturated| *saturated).await.is_ok() {
        if node.time.is_in_service()
            && let Err(error) = node.store.schedule(2 * node.slots.total(), node.time.now()).await
        {
            node.count_store_error();
            tracing::debug!(%error, "the look-ahead waits for the store");
        }
        sleep(LOOK_AHEAD_INTERVAL).await;
    }
}
