//! Many followers of the journal, and the store reads and wakeups they cost.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::*;
use pointsman_core::chain::{ChainPath, OrderId};
use pointsman_core::journal::{EventFilter, Retention};
use pointsman_core::store::{Journal, NewOrder};
use pointsman_core::{Event, EventId, ObjectKey};
use pointsman_engine::{Engine, HandlerOutcome};
use tokio::task::JoinHandle;

fn key_filter(key: &str) -> EventFilter {
    EventFilter { key: Some(ObjectKey::new(key).unwrap()), ..EventFilter::default() }
}

/// Follows the journal until `has_received_enough` returns true; `wakeup_count` counts how often it was woken.
fn spawn_follower(
    engine: &Engine,
    filter: EventFilter,
    mut after: EventId,
    has_received_enough: impl Fn(&[Arc<Event>]) -> bool + Send + 'static,
    wakeup_count: Arc<AtomicUsize>,
) -> JoinHandle<Vec<Arc<Event>>> {
    let engine = engine.clone();
    tokio::spawn(async move {
        let mut received = Vec::new();
        while !has_received_enough(&received) {
            engine.observer().wait_for_matching_event(&filter, &mut after).await;
            wakeup_count.fetch_add(1, Ordering::Relaxed);
            let page = engine.observer().read_page(&filter, after, None, 100).await.unwrap();
            assert!(!page.journal_range.has_gap_after(after));
            received.extend(page.events);
            after = page.last_scanned_event_id;
        }
        received
    })
}

fn event_ids(events: &[Arc<Event>]) -> Vec<EventId> {
    events.iter().map(|event| event.id).collect()
}

/// Waits until the tail is in memory, and returns the head of the journal.
async fn wait_for_tail(engine: &Engine) -> EventId {
    let head = engine.observer().read_journal_range().await.unwrap().newest_event_id;
    engine.observer().read_page(&EventFilter::default(), head, None, 1).await.unwrap();
    wait_until("the tail", || async {
        let before = read_metric(engine, "pointsman_journal_reads_total");
        engine.observer().read_page(&EventFilter::default(), head, None, 1).await.unwrap();
        read_metric(engine, "pointsman_journal_reads_total") == before
    })
    .await;
    head
}

/// Orders run through a chain, and the store journals their steps with claims and attempt ends, without the sequencer.
/// Followers of one order, and followers of all events, get each event once and in order, and share their reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_followers_of_orders_share_their_reads() {
    const FOLLOWER_COUNT: usize = 1000;
    const UNFILTERED_FOLLOWER_COUNT: usize = 20;
    const ORDER_COUNT: usize = 100;
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler("a", |_| async { HandlerOutcome::succeeded() })
        .handler("b", |_| async { HandlerOutcome::succeeded() })
        .chain(chain("/x", vec![step_node("a", "b"), step_node("b", "end"), end_node("end")]))
        .start(&store)
        .await;
    let begin = wait_for_tail(&engine).await;
    let finished = |received: &[Arc<Event>]| {
        received.last().is_some_and(|last| last.event_type.as_str() == "OrderFinished")
    };
    let wakeup_count = Arc::new(AtomicUsize::new(0));
    let followers: Vec<_> = (0..FOLLOWER_COUNT)
        .map(|n| {
            let key = format!("/x,{}", n % ORDER_COUNT);
            (key.clone(), spawn_follower(&engine, key_filter(&key), begin, finished, wakeup_count.clone()))
        })
        .collect();
    let has_received_all = move |received: &[Arc<Event>]| {
        received.iter().filter(|event| event.event_type.as_str() == "FileBasedRemoved").count() == ORDER_COUNT
    };
    let unfiltered_followers: Vec<_> = (0..UNFILTERED_FOLLOWER_COUNT)
        .map(|_| spawn_follower(&engine, EventFilter::default(), begin, has_received_all, Arc::default()))
        .collect();

    let before = read_metric(&engine, "pointsman_journal_reads_total");
    for n in 0..ORDER_COUNT {
        let id = Some(OrderId::new(n.to_string()).unwrap());
        let new = NewOrder { id, ..NewOrder::new(ChainPath::new("/x").unwrap()) };
        engine.add_orders(vec![new]).await.unwrap().unwrap();
    }
    let mut received_by_unfiltered = Vec::new();
    for follower in unfiltered_followers {
        let received = within_timeout("a follower of everything", follower).await.unwrap();
        assert!(received.is_sorted_by(|one, next| one.id < next.id));
        received_by_unfiltered.push(received);
    }
    assert!(
        received_by_unfiltered
            .iter()
            .all(|received| event_ids(received) == event_ids(&received_by_unfiltered[0]))
    );
    for (key, follower) in followers {
        let received = within_timeout("a follower", follower).await.unwrap();
        let events_of_key = received_by_unfiltered[0]
            .iter()
            .filter(|event| event.key.as_ref().is_some_and(|k| k.as_str() == key));
        assert_eq!(event_ids(&received), events_of_key.map(|event| event.id).collect::<Vec<_>>());
        assert_eq!(received.len(), 8, "the events of two steps, a start and an end");
    }
    // At most one read for each commit: an order is added, claimed, ended and claimed again, and ended.
    let reads = read_metric(&engine, "pointsman_journal_reads_total") - before;
    assert!(reads <= 6 * ORDER_COUNT as u64, "{reads} reads of the journal for {ORDER_COUNT} orders");
    // No follower is woken by events that do not match.
    let wakeup_count = wakeup_count.load(Ordering::Relaxed);
    assert!(wakeup_count <= FOLLOWER_COUNT * 8, "{FOLLOWER_COUNT} followers were woken {wakeup_count} times");
    engine.stop(TEST_TIMEOUT).await;
}

/// Events that do not match advance a waiting cursor, even if the wait is dropped, so that the cursor neither tears nor
/// has anything to be read from the store.
#[tokio::test]
async fn a_waiting_cursor_advances_past_unmatched_events_and_is_not_torn() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let begin = wait_for_tail(&engine).await;
    let (filter, mut after) = (key_filter("followed"), begin);
    let emit_and_prune = async {
        for _ in 0..25 {
            emit(&engine, (0..1000).map(|_| keyed_event("a", "other")).collect()).await;
        }
        let retention =
            Retention { max_count: Retention::MIN_JOURNAL_MAX_COUNT, max_age: Duration::from_secs(86_400) };
        while store
            .prune_events_tasks_and_objects(retention, Retention::default(), Duration::MAX, now())
            .await
            .unwrap()
            .has_more
        {}
        let head = engine.observer().read_journal_range().await.unwrap().newest_event_id;
        engine.observer().read_page(&EventFilter::default(), head, None, 1).await.unwrap()
    };
    let last = tokio::select! {
        () = engine.observer().wait_for_matching_event(&filter, &mut after) => panic!("no matching event was emitted"),
        page = emit_and_prune => page.journal_range.newest_event_id,
    };
    assert_eq!(after, last);
    assert!(engine.observer().read_journal_range().await.unwrap().has_gap_after(begin));
    let before = read_metric(&engine, "pointsman_journal_reads_total");
    let page = engine.observer().read_page(&filter, after, None, 10).await.unwrap();
    assert!(page.events.is_empty() && !page.journal_range.has_gap_after(after));
    assert_eq!(read_metric(&engine, "pointsman_journal_reads_total"), before);

    let matching_ids = emit(&engine, vec![keyed_event("a", "followed")]).await.events[0].id;
    within_timeout("the matching event", engine.observer().wait_for_matching_event(&filter, &mut after))
        .await;
    let page = engine.observer().read_page(&filter, after, None, 10).await.unwrap();
    assert_eq!(event_ids(&page.events), [matching_ids]);
    engine.stop(TEST_TIMEOUT).await;
}

/// A follower that starts to wait while events arrive misses none and gets none twice, wherever its cursor is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_follower_that_joins_while_events_arrive_misses_none() {
    const EVENT_COUNT: usize = 400;
    let store = in_memory_store();
    let engine = TestEngineBuilder::default().start(&store).await;
    let begin = engine.observer().read_journal_range().await.unwrap().newest_event_id;
    let producer = {
        let engine = engine.clone();
        tokio::spawn(async move {
            let mut matching_ids = Vec::new();
            for n in 0..EVENT_COUNT {
                let receipt = emit(&engine, vec![keyed_event("a", &format!("k{}", n % 2))]).await;
                matching_ids.extend((n % 2 == 0).then_some(receipt.events[0].id));
            }
            matching_ids
        })
    };
    let has_received_all = |received: &[Arc<Event>]| received.len() == EVENT_COUNT / 2;
    let mut followers = Vec::new();
    while followers.len() < 50 {
        followers.push(spawn_follower(&engine, key_filter("k0"), begin, has_received_all, Arc::default()));
        tokio::task::yield_now().await;
    }
    let matching_ids = within_timeout("the events", producer).await.unwrap();
    for follower in followers {
        assert_eq!(event_ids(&within_timeout("a follower", follower).await.unwrap()), matching_ids);
    }
    engine.stop(TEST_TIMEOUT).await;
}
