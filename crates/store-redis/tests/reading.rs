//! Reads on a real server: snapshots are consistent under writes, and long lists are complete.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::journal::{EventFilter, EventPage, Retention};
use pointsman_core::store::{
    ClaimRequest, Claimant, ClaimedTask, JournalQuery, NodeId, Store, StoreError, TaskFilter,
};
use pointsman_core::{EventId, NewEvent, TaskSeq, TaskStatus, Timestamp};
use pointsman_store_conformance::fixture::{
    KEEP_EVERYTHING, NewEventExt, RegistrationBuilder, START_TIME, expect_ok, finished_attempt, handler_name,
    new_emit_batch, new_event, object_key, secs, success, tenant,
};
use pointsman_store_redis::Redis;
use pointsman_testing::{RedisSettings, shared_redis, unique_key_prefix};

async fn open_store(url: &str) -> Arc<dyn Store> {
    let store = Redis::open(url, START_TIME).await;
    Arc::new(store.unwrap_or_else(|fault| panic!("could not open the store: {fault}")))
}

fn new_store_url() -> String {
    shared_redis().unwrap().url_with_prefix(&unique_key_prefix())
}

/// Opens a store, registers its handlers and joins a node.
async fn open_with_registration(url: &str, registration: &RegistrationBuilder) -> (Arc<dyn Store>, NodeId) {
    let store = open_store(url).await;
    expect_ok(store.register_definitions(registration.build(), START_TIME).await);
    let node = expect_ok(store.join_node("first", START_TIME).await);
    (store, node)
}

async fn emit_events(store: &dyn Store, events: Vec<NewEvent>, now: Timestamp) -> Vec<EventId> {
    let (receipts, _) = expect_ok(store.append(vec![new_emit_batch(events)], None, now).await);
    receipts.into_iter().flat_map(|receipt| receipt.unwrap().events).map(|event| event.id).collect()
}

async fn claim_tasks(
    store: &dyn Store,
    node: NodeId,
    registration: &RegistrationBuilder,
    max: usize,
) -> Vec<ClaimedTask> {
    let claim = ClaimRequest {
        claimant: Claimant::Node(node),
        handlers: Arc::new(registration.handler_names()),
        max_tasks: max,
    };
    expect_ok(store.claim_tasks(claim, START_TIME).await).tasks
}

async fn read_event_page(store: &dyn Store, after: EventId, limit: usize, backwards: bool) -> EventPage {
    let query = JournalQuery {
        after_event_id: after,
        up_to_event_id: None,
        filter: EventFilter::default(),
        limit,
        backwards,
    };
    expect_ok(store.read_events(query).await)
}

/// Lists all tasks that match a filter, page by page.
async fn list_all_task_seqs(store: &dyn Store, filter: &TaskFilter, limit: usize) -> Vec<TaskSeq> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = expect_ok(store.list_tasks(filter.clone(), before, limit).await);
        found.extend(page.tasks.iter().map(|task| task.seq));
        match page.next_cursor {
            Some(next) => before = Some(next),
            None => return found,
        }
    }
}

/// A task that ends moves from one table to another; each snapshot has it once.
#[tokio::test(flavor = "multi_thread")]
async fn reads_are_consistent_snapshots_under_writes() {
    const TASK_COUNT: i64 = 400;
    let (url, registration) = (new_store_url(), RegistrationBuilder::single_handler().unordered("index"));
    let (store, _) = open_with_registration(&url, &registration).await;
    emit_events(&*store, vec![new_event("record"); TASK_COUNT as usize], START_TIME).await;
    let (other, registration) = (open_store(&url).await, registration.clone());
    let node = expect_ok(other.join_node("other", START_TIME).await);
    let writing = tokio::spawn(async move {
        while let Some(task) = claim_tasks(&*other, node, &registration, 1).await.pop() {
            expect_ok(
                other.finish_attempts(vec![finished_attempt(&task, success())], None, START_TIME).await,
            );
        }
        other.close();
    });
    let all_tasks: Vec<TaskSeq> = (1..=TASK_COUNT).rev().map(TaskSeq).collect();
    let mut ended_counts = BTreeSet::new();
    while !writing.is_finished() {
        let page = expect_ok(store.list_tasks(TaskFilter::default(), None, TASK_COUNT as usize + 1).await);
        assert_eq!(page.tasks.iter().map(|task| task.seq).collect::<Vec<_>>(), all_tasks);
        ended_counts.insert(
            page.tasks.iter().filter(|task| task.lifecycle.state.status() == TaskStatus::Done).count(),
        );
        let queues = expect_ok(store.list_queues(None).await);
        let waiting = queues.first().map_or(0, |queue| queue.ready_count);
        assert_eq!(
            waiting > 0,
            queues.first().is_some_and(|queue| queue.next_ready_task_created_at.is_some())
        );
    }
    writing.await.unwrap();
    assert!(ended_counts.len() > 2, "{ended_counts:?}");
    store.close();
}

/// Events that expire during a read leave no gap between the events of a page.
#[tokio::test(flavor = "multi_thread")]
async fn pages_have_no_gaps_while_events_expire() {
    const EVENT_COUNT: usize = 3_000;
    let (store, _) = open_with_registration(&new_store_url(), &RegistrationBuilder::single_handler()).await;
    let mut ids = vec![EventId::ZERO];
    for n in 0..EVENT_COUNT as u64 / 10 {
        let now = START_TIME.plus(secs(1 + n));
        ids.extend(emit_events(&*store, vec![new_event("note"); 10], now).await);
    }
    let pruning = tokio::spawn({
        let store = store.clone();
        async move {
            for n in 0..EVENT_COUNT as u64 / 10 {
                let (now, journal) =
                    (START_TIME.plus(secs(n + 10)), Retention { max_age: secs(10), ..KEEP_EVERYTHING });
                while expect_ok(
                    store
                        .prune_events_tasks_and_objects(
                            journal,
                            KEEP_EVERYTHING,
                            std::time::Duration::MAX,
                            now,
                        )
                        .await,
                )
                .has_more
                {}
            }
        }
    });
    let mut expired_ids = BTreeSet::new();
    while !pruning.is_finished() {
        for backwards in [false, true] {
            let page = read_event_page(&*store, EventId::ZERO, EVENT_COUNT, backwards).await;
            let first =
                ids.iter().position(|id| *id == page.journal_range.last_expired_event_id).unwrap() + 1;
            let mut found: Vec<EventId> = page.events.iter().map(|event| event.id).collect();
            if backwards {
                found.reverse();
            }
            assert_eq!(found, ids[first..]);
            expired_ids.insert(page.journal_range.last_expired_event_id);
        }
    }
    pruning.await.unwrap();
    assert!(expired_ids.len() > 2, "{expired_ids:?}");
    store.close();
}

/// Lists find tasks in many buckets and skip empty ones.
#[tokio::test(flavor = "multi_thread")]
async fn long_task_lists_are_complete_across_empty_buckets() {
    const TASK_COUNT: i64 = 6_000;
    let registration = RegistrationBuilder::single_handler().unordered("index");
    let (store, node) = open_with_registration(&new_store_url(), &registration).await;
    for _ in 0..TASK_COUNT / 500 {
        emit_events(&*store, vec![new_event("record"); 500], START_TIME).await;
    }
    let all = TaskFilter::default();
    let sort_descending = |numbers: &mut dyn Iterator<Item = i64>| {
        let mut numbers: Vec<TaskSeq> = numbers.map(TaskSeq).collect();
        numbers.sort_by(|a, b| b.cmp(a));
        numbers
    };
    assert_eq!(list_all_task_seqs(&*store, &all, 1_000).await, sort_descending(&mut (1..=TASK_COUNT)));
    // A few tasks stay unfinished, and a few ended ones are retained.
    let stays_unfinished = |number: i64| number % 1_700 == 5;
    loop {
        let claimed = claim_tasks(&*store, node, &registration, 1_000).await;
        if claimed.iter().all(|task| stays_unfinished(task.seq.0)) {
            break;
        }
        let ends = claimed.iter().filter(|task| !stays_unfinished(task.seq.0));
        let ends = ends.map(|task| finished_attempt(task, success())).collect();
        expect_ok(store.finish_attempts(ends, None, START_TIME).await);
    }
    assert_eq!(list_all_task_seqs(&*store, &all, 700).await, sort_descending(&mut (1..=TASK_COUNT)));
    let history = Retention { max_count: 5, max_age: KEEP_EVERYTHING.max_age };
    while expect_ok(
        store
            .prune_events_tasks_and_objects(KEEP_EVERYTHING, history, std::time::Duration::MAX, START_TIME)
            .await,
    )
    .has_more
    {}
    let running = sort_descending(&mut (1..=TASK_COUNT).filter(|number| stays_unfinished(*number)));
    let locked = TaskFilter { statuses: vec![TaskStatus::Locked], ..all.clone() };
    let done = TaskFilter { statuses: vec![TaskStatus::Done], ..all.clone() };
    for limit in [1, 2, 1_000] {
        assert_eq!(list_all_task_seqs(&*store, &locked, limit).await, running);
        let ended = list_all_task_seqs(&*store, &done, limit).await;
        assert_eq!(ended.len(), 5);
        let both: BTreeSet<i64> = ended.iter().chain(&running).map(|seq| seq.0).collect();
        assert_eq!(list_all_task_seqs(&*store, &all, limit).await, sort_descending(&mut both.into_iter()));
    }
    store.close();
}

/// Pull workers lease tasks without being nodes.
#[tokio::test(flavor = "multi_thread")]
async fn tasks_leased_by_pull_workers_are_listed_as_running() {
    let registration = RegistrationBuilder::default()
        .route("record", &["index"])
        .route("page", &["print"])
        .pulled_by_workers("print");
    let (store, node) = open_with_registration(&new_store_url(), &registration).await;
    emit_events(&*store, vec![new_event("record"), new_event("page"), new_event("record")], START_TIME).await;
    let until = START_TIME.plus(secs(30));
    let claimant = Claimant::PullWorker { lease_until: until, tenant: None };
    let worker_claim =
        ClaimRequest { claimant, handlers: Arc::new(BTreeSet::from([handler_name("print")])), max_tasks: 1 };
    let fetched = expect_ok(store.claim_tasks(worker_claim, START_TIME).await).tasks;
    let claimed = claim_tasks(&*store, node, &registration, 1).await;
    let leased: BTreeSet<TaskSeq> = fetched.iter().chain(&claimed).map(|task| task.seq).collect();
    let locked = TaskFilter { statuses: vec![TaskStatus::Locked], ..TaskFilter::default() };
    for limit in [1, 10] {
        let found = list_all_task_seqs(&*store, &locked, limit).await;
        assert_eq!(found, leased.iter().rev().copied().collect::<Vec<_>>());
    }
    let fences: Vec<_> = fetched.iter().chain(&claimed).map(|task| (task.seq, task.fence)).collect();
    assert!(expect_ok(store.find_lost_attempts(fences.clone()).await).is_empty());
    expect_ok(store.finish_attempts(vec![finished_attempt(&fetched[0], success())], None, START_TIME).await);
    assert_eq!(expect_ok(store.find_lost_attempts(fences).await), [fetched[0].fence]);
    store.close();
}

/// Pages of large events are bounded in size, and no event is missing.
#[tokio::test(flavor = "multi_thread")]
async fn pages_of_large_events_are_bounded_in_size() {
    const MAX_PAGE_BYTES: usize = 9 << 20;
    let (store, _) = open_with_registration(&new_store_url(), &RegistrationBuilder::single_handler()).await;
    let large_event = new_event("note").with_key("a").with_value(&format!("\"{}\"", "x".repeat(1_000_000)));
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.extend(emit_events(&*store, vec![large_event.clone(); 5], START_TIME).await);
    }
    let (mut after, mut found) = (EventId::ZERO, Vec::new());
    while found.len() < ids.len() {
        let page = read_event_page(&*store, after, 1_000, false).await;
        let bytes: usize = page.events.iter().map(|event| event.value.as_str().len()).sum();
        assert!((1..=MAX_PAGE_BYTES).contains(&bytes), "{bytes}");
        found.extend(page.events.iter().map(|event| event.id));
        after = page.last_scanned_event_id;
    }
    assert_eq!(found, ids);
    let object = expect_ok(store.read_object(&tenant("default"), &object_key("a"), 1_000).await).unwrap();
    let object_events: Vec<EventId> = object.events.iter().map(|event| event.id).collect();
    assert!((2..=MAX_PAGE_BYTES / 1_000_000).contains(&object_events.len()), "{}", object_events.len());
    assert!(ids.iter().rev().zip(&object_events).all(|(id, found)| id == found));
    store.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_survive_cut_connections_and_report_a_lost_store() {
    let server = pointsman_testing::RedisServer::start(RedisSettings::default()).unwrap();
    let (store, _) = open_with_registration(&server.url(), &RegistrationBuilder::single_handler()).await;
    emit_events(&*store, vec![new_event("record")], START_TIME).await;
    for _ in 0..3 {
        let range = expect_ok(store.read_journal_range().await);
        server.run_command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
        assert_eq!(expect_ok(store.read_journal_range().await), range);
        server.run_command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
        assert_eq!(expect_ok(store.list_tasks(TaskFilter::default(), None, 10).await).tasks.len(), 1);
    }
    server.run_command(&["FLUSHALL"]).unwrap();
    assert!(matches!(store.read_journal_range().await, Err(StoreError::Damaged(_))));
    store.close();
    assert!(matches!(store.read_journal_range().await, Err(StoreError::Closed)));
}
