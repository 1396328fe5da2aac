//! Reading the journal, and waiting for it to grow.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use pointsman_core::journal::{EventFilter, EventPage, JournalRange, Retention};
use pointsman_core::store::Journal;
use pointsman_core::{EventId, TaskStatus};
use pointsman_engine::{Engine, HandlerOutcome};

async fn read_page(engine: &Engine, after: EventId, limit: usize) -> EventPage {
    engine.observer().read_page(&EventFilter::default(), after, None, limit).await.unwrap()
}

#[tokio::test]
async fn emitted_events_are_read_at_once_and_in_order() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let mut ids = Vec::new();
    for n in 0..200 {
        let receipt = emit(&engine, vec![keyed_event("a", &format!("k{}", n % 3))]).await;
        ids.push(receipt.events[0].id);
        let read = read_page(&engine, ids[ids.len().saturating_sub(2)], 10).await;
        // The first read begins after the first event and finds nothing; each later read finds exactly the new event.
        let expected = if n == 0 { 0 } else { 1 };
        assert_eq!(read.events.len(), expected);
        assert_eq!(read.last_scanned_event_id, ids[n]);
    }
    let mut read = Vec::new();
    let mut after = EventId::ZERO;
    while read.len() < ids.len() {
        let page = read_page(&engine, after, 17).await;
        assert!(page.events.len() <= 17 && !page.journal_range.has_gap_after(after));
        read.extend(page.events.iter().filter(|event| !event.is_engine_event()).map(|event| event.id));
        after = page.last_scanned_event_id;
    }
    assert_eq!(read, ids);
    let newest =
        engine.observer().read_newest_events(&EventFilter::default(), EventId::ZERO, 3).await.unwrap();
    let newest: Vec<_> = newest.events.iter().map(|event| event.id).collect();
    assert_eq!(newest, [ids[199], ids[198], ids[197]]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn filters_apply_to_cached_and_stored_events() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let first = emit(&engine, vec![keyed_event("a.b", "x"), keyed_event("c", "x")]).await.events[1].id;
    let _ = read_page(&engine, first, 1).await;
    emit(&engine, vec![keyed_event("c", "x"), keyed_event("a.d", "x"), keyed_event("c", "x")]).await;
    let type_filter = EventFilter { event_types: vec![event_type("a")], ..EventFilter::default() };
    for (after, expected) in [(EventId::ZERO, 2), (first, 1)] {
        let page = engine.observer().read_page(&type_filter, after, None, 10).await.unwrap();
        assert_eq!(page.events.len(), expected);
        assert_eq!(page.last_scanned_event_id, page.journal_range.newest_event_id);
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_cursor_beyond_the_newest_event_is_torn() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let last = emit(&engine, vec![keyed_event("a", "x")]).await.events[0].id;
    for _ in 0..2 {
        assert!(!read_page(&engine, last, 10).await.journal_range.has_gap_after(last));
        let foreign = EventId::new(last.get() + 1).unwrap();
        assert!(read_page(&engine, foreign, 10).await.journal_range.has_gap_after(foreign));
    }
    assert_eq!(
        engine.observer().read_journal_range().await.unwrap(),
        JournalRange { last_expired_event_id: EventId::ZERO, newest_event_id: last }
    );
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_followers_share_journal_reads() {
    const FOLLOWER_COUNT: usize = 1000;
    const EVENT_COUNT: usize = 20;
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let begin = emit(&engine, vec![keyed_event("a", "x")]).await.events[0].id;
    // One read starts the filler; from then on the head is in memory.
    let _ = read_page(&engine, begin, 1).await;
    let ready = Arc::new(tokio::sync::Barrier::new(FOLLOWER_COUNT + 1));
    let mut followers = Vec::new();
    for _ in 0..FOLLOWER_COUNT {
        let (engine, ready) = (engine.clone(), ready.clone());
        followers.push(tokio::spawn(async move {
            ready.wait().await;
            let (mut after, mut received) = (begin, Vec::new());
            while received.len() < EVENT_COUNT {
                engine.observer().wait_for_matching_event(&EventFilter::default(), &mut after).await;
                let page = read_page(&engine, after, 100).await;
                received.extend(page.events.iter().map(|event| event.id));
                after = page.last_scanned_event_id;
            }
            received
        }));
    }
    ready.wait().await;
    let before = read_metric(&engine, "pointsman_journal_reads_total");
    let mut emitted = Vec::new();
    for _ in 0..EVENT_COUNT {
        emitted.push(emit(&engine, vec![keyed_event("a", "x")]).await.events[0].id);
    }
    for follower in followers {
        assert_eq!(within_timeout("a follower", follower).await.unwrap(), emitted);
    }
    let reads = read_metric(&engine, "pointsman_journal_reads_total") - before;
    // Each commit may cost the filler one read, plus a few polls; not one read for each follower.
    assert!(reads < FOLLOWER_COUNT as u64 / 5, "{reads} reads for {FOLLOWER_COUNT} followers");
    engine.stop(TEST_TIMEOUT).await;
}

/// Until somebody reads, a node keeps no events in memory and does not read the journal.
#[tokio::test]
async fn a_journal_without_readers_is_not_read() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().handler("a", |_| async { HandlerOutcome::succeeded() });
    let engine = engine.route("a", "a").start(&store).await;
    for _ in 0..20 {
        let task = emit(&engine, vec![keyed_event("a", "x")]).await.events[0].tasks[0].clone();
        wait_until("the task to succeed", || async {
            read_task(&store, &task).await.lifecycle.state.status() == TaskStatus::Done
        })
        .await;
    }
    assert_eq!(read_metric(&engine, "pointsman_journal_reads_total"), 0);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_cached_cursor_is_torn_when_events_after_it_expire() {
    const EVENT_COUNT: usize = 11_000;
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let first = emit(&engine, vec![keyed_event("a", "x")]).await.events[0].id;
    let _ = read_page(&engine, first, 1).await;
    for _ in 0..EVENT_COUNT / 1000 {
        emit(&engine, (0..1000).map(|_| keyed_event("a", "x")).collect()).await;
    }
    let page_before_expiry = read_page(&engine, first, EVENT_COUNT).await;
    assert_eq!(page_before_expiry.journal_range.last_expired_event_id, EventId::ZERO);

    let retention =
        Retention { max_count: Retention::MIN_JOURNAL_MAX_COUNT, max_age: Duration::from_secs(86_400) };
    while store
        .prune_events_tasks_and_objects(retention, Retention::default(), Duration::MAX, now())
        .await
        .unwrap()
        .has_more
    {}
    let journal_range = engine.observer().read_journal_range().await.unwrap();
    assert!(journal_range.has_gap_after(first));
    within_timeout("the tail to drop expired events", async {
        while !read_page(&engine, first, 1).await.journal_range.has_gap_after(first) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let remaining_page = read_page(&engine, journal_range.last_expired_event_id, EVENT_COUNT).await;
    assert!(!remaining_page.journal_range.has_gap_after(journal_range.last_expired_event_id));
    assert!(remaining_page.events.len() as u64 >= Retention::MIN_JOURNAL_MAX_COUNT);
    engine.stop(TEST_TIMEOUT).await;
}
