//! The pruner: deletes old events and old history, by count and by age, and unused objects. It deletes in small batches
//! and lets others write in between.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::ErrorChain;
use pointsman_core::journal::Retention;
use pointsman_core::store::{PruneReport, StoreError};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::node::Node;

/// The interval between two prunes when nothing is left to delete.
const PRUNE_INTERVAL: Duration = Duration::from_secs(10);
/// The pause between two batches.
const BATCH_PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn run(node: Arc<Node>, stop: CancellationToken) {
    stop.run_until_cancelled(prune_repeatedly(node)).await;
}

async fn prune_repeatedly(node: Arc<Node>) {
    let (journal, history) = (node.settings.journal_retention, node.settings.history_retention);
    loop {
        if !node.time_source.may_fire_and_prune() {
            sleep(PRUNE_INTERVAL).await;
            continue;
        }
        match prune_batch(&node, journal, history).await {
            Ok(PruneReport { deleted_event_count, deleted_task_count, deleted_object_count, has_more }) => {
                if deleted_event_count + deleted_task_count + deleted_object_count > 0 {
                    tracing::debug!(
                        deleted_event_count,
                        deleted_task_count,
                        deleted_object_count,
                        "deleted rows whose retention has ended"
                    );
                }
                sleep(if has_more { BATCH_PAUSE } else { PRUNE_INTERVAL }).await;
            }
            Err(error) => {
                node.count_store_error();
                tracing::debug!(
                    error = %ErrorChain(&error),
                    "pruning failed; rows whose retention has ended stay until pruning is retried"
                );
                sleep(PRUNE_INTERVAL).await;
            }
        }
    }
}

/// Deletes one batch of expired rows, and drops expired events from the observer's memory: events may have expired
/// although their rows are not deleted yet.
async fn prune_batch(node: &Node, journal: Retention, history: Retention) -> Result<PruneReport, StoreError> {
    let pruned = node
        .store
        .prune_events_tasks_and_objects(
            journal,
            history,
            node.settings.object_retention,
            node.time_source.now(),
        )
        .await?;
    node.metrics.objects_pruned.inc_by(pruned.deleted_object_count);
    node.observer.drop_expired_tail_events().await?;
    Ok(pruned)
}

#[cfg(test)]
mod tests {
    use pointsman_core::journal::EventFilter;
    use pointsman_core::store::EmitBatch;
    use pointsman_core::{EventId, EventType, NewEvent};
    use pointsman_store_sqlite::Sqlite;

    use super::*;
    use crate::{Engine, Settings, Setup};

    /// No commit notifies the observer of pruning, so the pruner notifies it.
    #[tokio::test]
    async fn a_cursor_is_torn_as_soon_as_events_after_it_expire() {
        let store = Arc::new(Sqlite::in_memory(crate::machine_clock_now()).unwrap());
        let mut settings = Settings::default();
        settings.enabled_services.pruner = false;
        let engine = Engine::start(store, settings, Setup::default()).await.unwrap();
        let (node, everything) = (engine.node(), EventFilter::default());
        let page =
            async |after: EventId| engine.observer().read_page(&everything, after, None, 5000).await.unwrap();
        let begin = engine.observer().read_journal_range().await.unwrap().newest_event_id;
        while !node.observer.has_tail() {
            page(begin).await;
            tokio::task::yield_now().await;
        }
        let event = NewEvent::new(EventType::new("a").unwrap());
        engine.emit(EmitBatch { events: vec![event; 3000], idempotency_key: None }).await.unwrap();
        let ids: Vec<_> = page(begin).await.events.iter().map(|event| event.id).collect();
        assert_eq!(ids.len(), 3000);

        let retention = Retention { max_count: 500, max_age: Duration::from_secs(86_400) };
        while prune_batch(node, retention, Retention::default()).await.unwrap().has_more {}
        let expired_up_to = engine.store().read_journal_range().await.unwrap().last_expired_event_id;
        let last = ids.iter().position(|id| *id == expired_up_to).unwrap();
        assert!((1..2500).contains(&last), "{last}");
        for index in [0, last - 1, last, last + 1, 2999] {
            let page = page(ids[index]).await;
            assert_eq!(
                page.journal_range.has_gap_after(ids[index]),
                index < last,
                "{index}, expired up to {last}"
            );
            assert_eq!(page.journal_range.last_expired_event_id, expired_up_to);
        }
        engine.stop(Duration::ZERO).await;
    }

    #[tokio::test]
    async fn unused_objects_are_deleted_and_counted() {
        let store = Arc::new(Sqlite::in_memory(crate::machine_clock_now()).unwrap());
        let mut settings = Settings { object_retention: Duration::ZERO, ..Settings::default() };
        settings.enabled_services.pruner = false;
        let engine = Engine::start(store, settings, Setup::default()).await.unwrap();
        let node = engine.node();
        let object_event = |n: usize| {
            let key = Some(pointsman_core::ObjectKey::new(format!("object:{n}")).unwrap());
            NewEvent { key, ..NewEvent::new(EventType::new("a").unwrap()) }
        };
        engine
            .emit(EmitBatch { events: (0..700).map(object_event).collect(), idempotency_key: None })
            .await
            .unwrap();
        let keep_nothing = Retention { max_count: 0, max_age: Duration::ZERO };
        while node.metrics.objects_pruned.get() < 700 {
            prune_batch(node, keep_nothing, Retention::default()).await.unwrap();
        }
        assert!(node.metrics.encode().contains("pointsman_objects_pruned_total 700"));
        let again =
            engine.emit(EmitBatch { events: vec![object_event(1)], idempotency_key: None }).await.unwrap();
        assert_eq!(again.events[0].prev, None);
        engine.stop(Duration::ZERO).await;
    }
}
