//! The room that forgets: old events and old history, by count and by age. It works in small pieces and lets
//! others write in between.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::node::Node;
use crate::time::now;

/// How often it looks.
const PERIOD: Duration = Duration::from_secs(10);
/// How long it rests between two pieces.
const REST: Duration = Duration::from_millis(20);

pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(prune(node)).await;
}

async fn prune(node: Arc<Node>) {
    let (journal, history) = (node.settings.journal, node.settings.history);
    loop {
        match node.store.prune(journal, history, now()).await {
            Ok(pruned) => {
                if pruned.events + pruned.tasks > 0 {
                    tracing::debug!(events = pruned.events, tasks = pruned.tasks, "pruned");
                }
                sleep(if pruned.more { REST } else { PERIOD }).await;
            }
            Err(error) => {
                node.store_failed();
                tracing::warn!(%error, "the pruner waits for the store");
                sleep(PERIOD).await;
            }
        }
    }
}
