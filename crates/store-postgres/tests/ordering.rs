//! Readers see ascending ids whatever the commit order: 64 producers whose transactions end in any order, two nodes
//! that drain, producers that emit directly, and readers that follow and restart.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod test_store;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use pointsman_core::journal::EventFilter;
use pointsman_core::store::{EmitBatch, Journal, JournalQuery};
use pointsman_core::{Event, EventId, EventType, Json, NewEvent, ObjectKey};
use pointsman_testing::Rng;
use test_store::{TEST_TIMEOUT, TestStore, now};
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

const WRITER_COUNT: u64 = 64;
const ROUNDS_PER_WRITER: u64 = 12;
const OBJECT_COUNT: u64 = 24;
/// Events per round of a producer in SQL: one for an object whose row it has changed, and two for its own object.
const EVENTS_PER_ROUND: u64 = 3;
/// Events emitted directly, without the outbox.
const DIRECT_EMIT_COUNT: u64 = 400;

async fn sleep_randomly(rng: &mut Rng, max_ms: usize) {
    sleep(Duration::from_millis(rng.next_below(max_ms + 1) as u64)).await;
}

/// Emits in SQL, in transactions that end in random order. The value of an event is the counter of its object, whose
/// row is locked from the update to the commit, so that the values give the expected order.
async fn run_sql_producer(mut client: Client, writer: u64) {
    let mut rng = Rng::new(writer * 7919 + 1);
    for round in 0..ROUNDS_PER_WRITER {
        let transaction = client.transaction().await.unwrap();
        let own = format!(
            "SELECT pointsman.emit('own', 'writer:{writer}', '{}'), pointsman.emit('own', 'writer:{writer}', '{}')",
            2 * round,
            2 * round + 1
        );
        transaction.batch_execute(&own).await.unwrap();
        sleep_randomly(&mut rng, 5).await;
        let shared = format!(
            "WITH changed AS (UPDATE object SET n = n + 1 WHERE id = {} RETURNING id, n)
             SELECT pointsman.emit('shared', 'object:' || id, to_jsonb(n)) FROM changed",
            rng.next_below(OBJECT_COUNT as usize)
        );
        transaction.batch_execute(&shared).await.unwrap();
        sleep_randomly(&mut rng, 20).await;
        // One in eight transactions is rolled back and repeated.
        if rng.next_below(8) == 0 {
            transaction.rollback().await.unwrap();
            let retry = client.transaction().await.unwrap();
            retry.batch_execute(&own).await.unwrap();
            retry.batch_execute(&shared).await.unwrap();
            sleep_randomly(&mut rng, 5).await;
            retry.commit().await.unwrap();
        } else {
            transaction.commit().await.unwrap();
        }
    }
}

/// Emits without the outbox, for the same objects as the producers in SQL.
async fn emit_without_outbox(store_node: &TestStore) {
    let mut rng = Rng::new(97);
    for n in 0..DIRECT_EMIT_COUNT {
        let event = NewEvent {
            key: Some(ObjectKey::new(format!("writer:{}", rng.next_below(WRITER_COUNT as usize))).unwrap()),
            value: Json::from_value(&n).unwrap(),
            ..NewEvent::new(EventType::new("direct").unwrap())
        };
        let emit_batch = EmitBatch { events: vec![event], idempotency_key: None };
        let (receipts, _) = store_node.store.append(vec![emit_batch], None, now()).await.unwrap();
        assert!(receipts.iter().all(Result::is_ok));
        sleep_randomly(&mut rng, 2).await;
    }
}

/// Reads the journal in pages of random size, and sometimes restarts from the last event that it has read. Ends at the
/// end of the journal once the producers have finished.
async fn follow_journal(
    store_node: &TestStore,
    seed: u64,
    producers_finished: &AtomicBool,
) -> Vec<Arc<Event>> {
    let mut rng = Rng::new(seed);
    let (mut cursor, mut events_read) = (EventId::ZERO, Vec::<Arc<Event>>::new());
    loop {
        let is_last_read = producers_finished.load(Ordering::Acquire);
        let limit = 1 + rng.next_below(50);
        let read = JournalQuery {
            after_event_id: cursor,
            up_to_event_id: None,
            filter: EventFilter::default(),
            limit,
            backwards: false,
        };
        let page = store_node.store.read_events(read).await.unwrap();
        assert!(!page.journal_range.has_gap_after(cursor));
        if page.events.is_empty() && is_last_read {
            return events_read;
        }
        events_read.extend(page.events);
        // A restarted reader continues after the last event that it has read.
        cursor = match rng.next_below(10) {
            0 => events_read.last().map_or(EventId::ZERO, |event| event.id),
            _ => page.last_scanned_event_id,
        };
        sleep_randomly(&mut rng, 3).await;
    }
}

fn decode_event_value(event: &Event) -> u64 {
    event.value.decode().unwrap()
}

/// Checks that each object's events are linked, and in the order in which they were emitted.
fn assert_object_order(events: &[Arc<Event>]) {
    let mut last = HashMap::new();
    let mut counted: HashMap<(&str, &str), u64> = HashMap::new();
    for event in events {
        let (event_type, key) = (event.event_type.as_str(), event.key.as_ref().unwrap().as_str());
        assert_eq!(event.prev, last.insert(key, event.id), "{key}");
        match event_type {
            "shared" | "own" => {
                let count =
                    counted.entry((event_type, key)).or_insert(if event_type == "own" { 0 } else { 1 });
                assert_eq!(decode_event_value(event), *count, "{key}");
                *count += 1;
            }
            "direct" => {}
            other => panic!("no producer emits {other}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_miss_no_event_and_ids_ascend() {
    let store_node = TestStore::new().await;
    let other = TestStore::open(&store_node.url).await;
    let client = store_node.connect_client().await;
    let objects = format!(
        "CREATE TABLE object (id bigint PRIMARY KEY, n bigint NOT NULL);
         INSERT INTO object SELECT i, 0 FROM generate_series(0, {}) i",
        OBJECT_COUNT - 1
    );
    client.batch_execute(&objects).await.unwrap();
    let clients = join_all((0..WRITER_COUNT).map(|_| store_node.connect_client())).await;
    let event_count = (WRITER_COUNT * ROUNDS_PER_WRITER * EVENTS_PER_ROUND + DIRECT_EMIT_COUNT) as usize;
    let producers_finished = AtomicBool::new(false);

    let write_all_events = async {
        let writers = clients
            .into_iter()
            .zip(0..)
            .map(|(client, writer)| tokio::spawn(run_sql_producer(client, writer)));
        let (written, ()) = tokio::join!(join_all(writers), emit_without_outbox(&other));
        written.into_iter().for_each(|written| written.unwrap());
        store_node.wait_for_events(event_count).await;
        producers_finished.store(true, Ordering::Release);
    };
    let readers = join_all(
        (1..=6)
            .map(|n| follow_journal(if n % 2 == 0 { &store_node } else { &other }, n, &producers_finished)),
    );
    let (events_read, ()) =
        timeout(TEST_TIMEOUT, async { tokio::join!(readers, write_all_events) }).await.unwrap();

    let journal = store_node.wait_for_events(event_count).await;
    assert!(journal.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_object_order(&journal);
    let ids: Vec<_> = journal.iter().map(|event| event.id).collect();
    for events in events_read {
        assert!(events.iter().map(|event| event.id).eq(ids.iter().copied()));
    }
}

#[tokio::test]
async fn drained_rows_are_not_scanned_again_while_an_old_snapshot_is_open() {
    let store_node = TestStore::new().await;
    let (dump, client, late) = (
        store_node.connect_client().await,
        store_node.connect_client().await,
        store_node.connect_client().await,
    );
    dump.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pointsman.outbox")
        .await
        .unwrap();
    // This row has a small number, and commits after all others are drained.
    late.batch_execute("BEGIN; SELECT pointsman.emit('late', 'k')").await.unwrap();
    let emit_many_sql = "SELECT count(pointsman.emit('many', 'k')) FROM generate_series(1, 12000)";
    client.query_one(emit_many_sql, &[]).await.unwrap();
    store_node.wait_for_events(12_000).await;
    let empty_up_to_sql = "SELECT empty_up_to FROM pointsman.outbox_progress";
    assert_eq!(client.query_one(empty_up_to_sql, &[]).await.unwrap().get::<_, i64>(0), 0);
    late.batch_execute("COMMIT").await.unwrap();
    let events = store_node.wait_for_events(12_001).await;
    assert_eq!(events.last().unwrap().event_type.as_str(), "late");
    let wait_for_progress = async {
        while client.query_one(empty_up_to_sql, &[]).await.unwrap().get::<_, i64>(0) < 10_000 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TEST_TIMEOUT, wait_for_progress).await.unwrap();
    client.query_one("SELECT pointsman.emit('after', 'k')", &[]).await.unwrap();
    assert_eq!(store_node.wait_for_events(12_002).await.last().unwrap().event_type.as_str(), "after");
    dump.batch_execute("COMMIT").await.unwrap();
}
