//! Many concurrent producers: no event is lost or doubled, and dropped emits do not affect others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use common::*;
use pointsman_core::EventId;
use pointsman_core::journal::EventFilter;
use pointsman_core::store::{EmitBatch, IdempotencyError, IdempotencyKey};
use pointsman_engine::{EmitError, Engine, HandlerOutcome};

async fn list_emitted_event_ids(engine: &Engine) -> Vec<EventId> {
    let (mut ids, mut after) = (Vec::new(), EventId::ZERO);
    loop {
        let page = engine.observer().read_page(&EventFilter::default(), after, None, 1000).await.unwrap();
        let emitted = page.events.iter().filter(|event| !event.is_engine_event());
        ids.extend(emitted.map(|event| event.id));
        if page.last_scanned_event_id >= page.journal_range.newest_event_id {
            return ids;
        }
        after = page.last_scanned_event_id;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_producers_each_get_their_own_receipt() {
    const PRODUCER_COUNT: usize = 64;
    const EVENTS_PER_PRODUCER: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let store = pointsman_store_sqlite::Sqlite::open(folder.path().join("p.db"), now()).unwrap();
    let engine = TestEngineBuilder::default()
        .handler("h", |_| async { HandlerOutcome::succeeded() })
        .route("a", "h")
        .start(&store)
        .await;
    let producers = (0..PRODUCER_COUNT).map(|p| {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut last = None;
            let mut ids = Vec::new();
            for _ in 0..EVENTS_PER_PRODUCER {
                let receipt = emit(&engine, vec![keyed_event("a", &format!("k{p}"))]).await;
                assert_eq!(receipt.events[0].prev, last);
                last = Some(receipt.events[0].id);
                ids.extend(last);
            }
            ids
        })
    });
    let mut acknowledged = HashSet::new();
    for ids in futures::future::join_all(producers).await {
        acknowledged.extend(ids.unwrap());
    }
    assert_eq!(acknowledged.len(), PRODUCER_COUNT * EVENTS_PER_PRODUCER);
    let journal = list_emitted_event_ids(&engine).await;
    assert!(journal.is_sorted());
    assert_eq!(journal.into_iter().collect::<HashSet<_>>(), acknowledged);
    let handled = "pointsman_tasks_ended_total{handler=\"h\",status=\"done\"}";
    within_timeout("all tasks to end", async {
        while read_metric(&engine, handled) < (PRODUCER_COUNT * EVENTS_PER_PRODUCER) as u64 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_dropped_emit_is_journaled_and_affects_no_other_producer() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    for n in 0..50 {
        let emission = EmitBatch { events: vec![keyed_event("a", "x")], idempotency_key: None };
        if n % 2 == 0 {
            // The emit is polled once, so that its event was handed over, and then dropped.
            let dropped_emit = engine.emit(emission);
            futures::pin_mut!(dropped_emit);
            let _ = futures::poll!(dropped_emit);
        } else {
            engine.emit(emission).await.unwrap();
        }
    }
    assert_eq!(list_emitted_event_ids(&engine).await.len(), 50);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn concurrent_repeats_of_an_idempotency_key_create_one_event() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("h", |_| async { HandlerOutcome::succeeded() })
        .route("a", "h")
        .start(&store)
        .await;
    let emission = |digest: u8| {
        let idempotency = Some(IdempotencyKey {
            tenant: Default::default(),
            key: "once".into(),
            request_digest: [digest; 32],
        });
        EmitBatch { events: vec![keyed_event("a", "x")], idempotency_key: idempotency }
    };
    let concurrent_emits = (0..100).map(|_| engine.emit(emission(1)));
    let receipts: Vec<_> =
        futures::future::join_all(concurrent_emits).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(receipts.iter().filter(|receipt| !receipt.repeated).count(), 1);
    assert!(receipts.iter().all(|receipt| receipt.events == receipts[0].events));
    let conflict = engine.emit(emission(2)).await;
    assert!(matches!(conflict, Err(EmitError::IdempotencyKeyConflict(IdempotencyError::Conflict(_)))));
    assert_eq!(list_emitted_event_ids(&engine).await.len(), 1);
    assert_eq!(read_metric(&engine, "pointsman_events_emitted_total"), 1);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn tasks_of_a_large_batch_are_claimed_as_they_are_created() {
    const EVENT_COUNT: usize = 300;
    const ROUND_COUNT: usize = 10;
    let store = in_memory_store();
    let (begun_sender, mut begun_receiver) = tokio::sync::watch::channel(0);
    let begun_sender = Arc::new(begun_sender);
    let handler = move |_| {
        begun_sender.send_modify(|count| *count += 1);
        std::future::pending()
    };
    let engine = TestEngineBuilder::default()
        .slots(EVENT_COUNT * ROUND_COUNT * 4)
        .handler("h", handler)
        .route("a", "h")
        .start(&store)
        .await;
    let mut least_written = u64::MAX;
    for round in 0..ROUND_COUNT {
        let before = store.writer().status().rows_written();
        let keys = (0..EVENT_COUNT).map(|n| format!("{round}.{n}"));
        emit(&engine, keys.map(|key| keyed_event("a", &key)).collect()).await;
        within_timeout("all to begin", begun_receiver.wait_for(|count| *count == EVENT_COUNT * (round + 1)))
            .await
            .unwrap();
        least_written = least_written.min(store.writer().status().rows_written() - before);
    }
    // In some rounds the worker may have reserved all slots, so that the sequencer claimed nothing, but not in all.
    let expected_rows = 3 * EVENT_COUNT as u64; // events, objects, tasks
    assert!(
        (expected_rows..expected_rows + 20).contains(&least_written),
        "{least_written} rows: none is written twice"
    );
    engine.stop(Duration::ZERO).await;
}
