//! A store that does not answer for a while: another connection has the write lock of the file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;

use common::*;
use futures::FutureExt;
use pointsman_core::store::{EmitBatch, StoreError, Tasks};
use pointsman_core::{EventId, Json, NewEvent, TaskStatus};
use pointsman_engine::{Delivery, EmitError, HandlerOutcome};
use pointsman_store_sqlite::Sqlite;
use tokio::sync::Notify;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempt_ends_are_kept_until_stored_and_producers_get_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pointsman.db");
    let store = Sqlite::open(&file, now()).unwrap();
    let finish_signal = Arc::new(Notify::new());
    let handler = {
        let finish_signal = finish_signal.clone();
        move |_: Delivery| {
            let finish_signal = finish_signal.clone();
            async move {
                finish_signal.notified().await;
                HandlerOutcome { emitted_events: vec![keyed_event("b", "y")], ..HandlerOutcome::succeeded() }
            }
        }
    };
    let engine = TestEngineBuilder::default().handler("h", handler).route("a", "h").start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    emit(&engine, vec![keyed_event("a", "x")]).await;
    watcher.wait_for_change(|c| c.status == TaskStatus::Locked).await;

    let locking_connection = rusqlite::Connection::open(&file).unwrap();
    locking_connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    finish_signal.notify_one();

    let small = EmitBatch { events: vec![keyed_event("c", "w")], idempotency_key: None };
    let result = within_timeout("the store to give up", engine.emit(small)).await;
    assert!(matches!(result, Err(EmitError::Store(StoreError::Unavailable(_)))), "{result:?}");
    assert!(read_metric(&engine, "pointsman_store_errors_total") > 0);

    // The queue of the sequencer is bounded: when it is full, producers are refused at once.
    let large_value = Json::from_value(&"x".repeat(1 << 20)).unwrap();
    let emission = || {
        let events = vec![NewEvent { value: large_value.clone(), ..keyed_event("c", "z") }];
        EmitBatch { events, idempotency_key: None }
    };
    let mut waiting: Vec<_> = (0..100).map(|_| Box::pin(engine.emit(emission()))).collect();
    let refused: Vec<_> = waiting.iter_mut().filter_map(|emit| emit.as_mut().now_or_never()).collect();
    assert!(refused.len() > 20 && refused.len() < 80, "{}", refused.len());
    assert!(refused.iter().all(|result| matches!(result, Err(EmitError::Overloaded))));
    drop(waiting);

    locking_connection.execute_batch("ROLLBACK").unwrap();
    let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
    assert_eq!((ended.status, ended.attempt), (TaskStatus::Done, 1));
    let (task, _) = store.read_task(&ended.id).await.unwrap().unwrap();
    assert_eq!(task.attempts.len(), 1);
    // The large events that were waiting fill more than one page.
    let (mut after, mut handled) = (EventId::ZERO, 0);
    let head = engine.observer().read_journal_range().await.unwrap().newest_event_id;
    while after < head {
        let page = engine.observer().read_page(&Default::default(), after, Some(head), 1000).await.unwrap();
        handled += page
            .events
            .iter()
            .filter(|event| event.event_type.as_str() != "c" && !event.is_engine_event())
            .count();
        after = page.last_scanned_event_id;
    }
    assert_eq!(handled, 2, "the event and the one that its handler emitted, each once");
    engine.stop(TEST_TIMEOUT).await;
}
