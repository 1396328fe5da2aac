//! Objects without events and unfinished tasks are deleted after their own retention.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::store::{EmittedEventReceipt, ObjectView};
use pointsman_core::task::TaskCommandError;
use pointsman_core::{EventId, NewEvent, TaskStatus};

use crate::Harness;
use crate::fixture::*;

const DAY_SECS: u64 = 86_400;
const ONE_DAY: Duration = Duration::from_secs(DAY_SECS);

async fn read_object(fixture: &StoreFixture<'_>, name: &str) -> Option<ObjectView> {
    expect_ok(fixture.store.read_object(&tenant("default"), &object_key(name), 10).await)
}

fn note_event(object: usize) -> NewEvent {
    new_event("note").with_key(&format!("object:{object}"))
}

fn prev_ids(events: &[EmittedEventReceipt]) -> Vec<Option<EventId>> {
    events.iter().map(|event| event.prev).collect()
}

pub async fn an_unused_object_is_deleted_and_its_prev_links_restart(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.run_all_ready_tasks().await;
    fixture.advance_clock_with_heartbeats(DAY_SECS - 60).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 0);
    assert!(read_object(&fixture, "a").await.is_some());
    fixture.advance_clock_with_heartbeats(120).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 1);
    assert!(read_object(&fixture, "a").await.is_none());

    let first = fixture.emit(new_event("record").with_key("a")).await;
    let second = fixture.emit(new_event("record").with_key("a")).await;
    assert_eq!((first.prev, second.prev), (None, Some(first.id)));
    let claimed = fixture.claim_one().await;
    assert_eq!((claimed.event().prev, claimed.prev_sent_event_id), (None, None));
    assert!(fixture.claim(10).await.is_empty(), "its lane runs one task at a time");
    fixture.succeed(&claimed).await;
    assert_eq!(fixture.claim_one().await.prev_sent_event_id, Some(first.id));
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.emit(new_event("record").with_key("a")).await.prev, Some(second.id));
}

pub async fn many_unused_objects_are_deleted_in_batches(harness: &dyn Harness) {
    const OBJECT_COUNT: usize = 1_300;
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    fixture.emit_in_one_batch((0..OBJECT_COUNT).map(note_event).collect()).await;
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    let kept = fixture.emit(new_event("note").with_key("young")).await;
    let retain = Retention { max_age: ONE_DAY, ..KEEP_EVERYTHING };
    let (mut deleted, mut calls) = (0, 0);
    loop {
        let pruned = expect_ok(
            fixture.store.prune_events_tasks_and_objects(retain, KEEP_EVERYTHING, ONE_DAY, fixture.now).await,
        );
        assert!(pruned.deleted_object_count <= 500, "{} in one transaction", pruned.deleted_object_count);
        deleted += pruned.deleted_object_count;
        calls += 1;
        if !pruned.has_more {
            break;
        }
    }
    assert_eq!(deleted, OBJECT_COUNT as u64);
    assert!(calls < 100, "{calls}");
    let again = fixture.emit_in_one_batch((0..OBJECT_COUNT).map(note_event).collect()).await.events;
    assert!(prev_ids(&again).iter().all(Option::is_none));
    assert_eq!(fixture.emit(new_event("note").with_key("young")).await.prev, Some(kept.id));
}

pub async fn an_object_with_an_event_in_the_journal_stays(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let last = fixture.emit(new_event("note").with_key("a")).await.id;
    fixture.advance_clock(1_000 * DAY_SECS);
    assert_eq!(
        fixture.prune_with_retentions(KEEP_EVERYTHING, KEEP_EVERYTHING, secs(1)).await.deleted_object_count,
        0
    );
    assert_eq!(fixture.emit(new_event("note").with_key("a")).await.prev, Some(last));
}

/// An object with an event in the journal is kept, so a pruning round need not scan it: one call finds nothing to do.
pub async fn objects_with_journaled_events_do_not_lengthen_a_pruning_round(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    fixture.emit(new_event("note").with_key("old")).await;
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    fixture.emit_in_one_batch((0..600).map(note_event).collect()).await;
    fixture.advance_clock(60);
    let retain = Retention { max_age: ONE_DAY, ..KEEP_EVERYTHING };
    assert_eq!(fixture.prune_with_retentions(retain, KEEP_EVERYTHING, secs(1)).await.deleted_object_count, 1);
    for _ in 0..3 {
        fixture.advance_clock(60);
        let pruned = expect_ok(
            fixture.store.prune_events_tasks_and_objects(retain, KEEP_EVERYTHING, secs(1), fixture.now).await,
        );
        assert_eq!(
            (pruned.deleted_object_count, pruned.has_more),
            (0, false),
            "one call finds that there is nothing to do"
        );
    }
}

/// The first event of the object is older than the retention of objects, the last one is not.
pub async fn an_object_with_a_recent_event_stays(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    fixture.emit(new_event("note").with_key("a")).await;
    fixture.emit(new_event("note").with_key("b")).await;
    fixture.advance_clock_with_heartbeats(DAY_SECS).await;
    let last = fixture.emit(new_event("note").with_key("a")).await.id;
    fixture.advance_clock_with_heartbeats(DAY_SECS / 2).await;
    assert_eq!(
        fixture
            .prune_with_retentions(
                Retention { max_age: secs(1), ..KEEP_EVERYTHING },
                KEEP_EVERYTHING,
                ONE_DAY
            )
            .await
            .deleted_object_count,
        1
    );
    let mut fixture = fixture.reopen().await;
    assert_eq!(read_object(&fixture, "a").await.map(|view| view.last_event_id), Some(last));
    fixture.advance_clock_with_heartbeats(DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 1, "once its last event is old, too");
}

/// Checked with one object for each way in which a task may be unfinished.
pub async fn an_object_with_an_unfinished_task_stays(harness: &dyn Harness) {
    let limits = pointsman_core::limit::Limits { concurrency_per_key: Some(1), ..Default::default() };
    let registration = RegistrationBuilder::default()
        .route("ordered", &["ordered"])
        .route("free", &["free"])
        .unordered("free")
        .route("grouped", &["grouped"])
        .limits("grouped", limits)
        .unordered("grouped")
        .route("halting", &["halting"])
        .halt_on_error("halting")
        .route("gone", &["gone"])
        .route("running", &["running"]);
    let mut fixture = StoreFixture::new(harness, registration.clone()).await;
    let kinds = ["ordered", "free", "grouped", "halting", "gone", "running", "delayed"];
    let mut last = Vec::new();
    for kind in kinds {
        let new = match kind {
            "delayed" => new_event("free").due_at(fixture.seconds_from_now(100 * DAY_SECS)),
            kind => new_event(kind),
        };
        last.push(fixture.emit(new.with_key(kind)).await.id);
    }
    fixture.emit(new_event("note").with_key("unused")).await;
    fixture.fail_permanently(&fixture.claim_one_for_handler("halting").await).await;
    let running = fixture.claim_one_for_handler("running").await;
    fixture.undefine_handler_and_rescue("gone").await;
    fixture.advance_clock_with_heartbeats(10 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 1, "the unused one");
    fixture.advance_clock_with_heartbeats(10 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 0, "however long the task is unfinished");
    fixture.register(registration).await;
    for (kind, last) in kinds.into_iter().zip(last) {
        assert_eq!(fixture.emit(new_event("note").with_key(kind)).await.prev, Some(last), "{kind}");
    }
    fixture.succeed(&running).await;
    // A later task of the object waits for the first one.
    let second = fixture.emit(new_event("ordered").with_key("ordered")).await;
    let first = fixture.claim_for_handlers(&["ordered"], 10).await;
    assert_eq!(first.len(), 1);
    fixture.succeed(&first[0]).await;
    assert_eq!(event_ids_of_tasks(&fixture.claim_for_handlers(&["ordered"], 10).await), [second.id]);
}

pub async fn an_object_is_deleted_once_its_last_task_has_ended(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    fixture.emit(new_event("record").with_key("a")).await;
    fixture.advance_clock_with_heartbeats(10 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 0);
    fixture.run_all_ready_tasks().await;
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 1);
    assert_eq!(fixture.emit(new_event("record").with_key("a")).await.prev, None);
}

/// The event is kept for another, unfinished task. The failed task is retried before that one ends, and then keeps the
/// object by itself.
pub async fn a_retried_task_keeps_its_object(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["fails", "waits"])).await;
    let emitted = fixture.emit(new_event("record").with_key("a")).await;
    fixture.fail_permanently(&fixture.claim_one_for_handler("fails").await).await;
    fixture.advance_clock_with_heartbeats(10 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 0);
    let failed_task =
        emitted.tasks.iter().find(|id| id.to_string().contains("fails")).expect("its task").clone();
    fixture.retry_task(&failed_task).await.expect("its event has not expired");
    fixture.succeed(&fixture.claim_one_for_handler("waits").await).await;
    fixture.advance_clock_with_heartbeats(10 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 0);
    assert_eq!(fixture.emit(new_event("note").with_key("a")).await.prev, Some(emitted.id));
    let retried = fixture.claim_one_for_handler("fails").await;
    assert!(retried.out_of_order && retried.event().id == emitted.id);
    fixture.snooze_task(&retried, 10).await;
    assert_eq!(fixture.read_task_status(&failed_task).await, TaskStatus::New);
}

pub async fn a_task_of_a_deleted_object_cannot_be_retried(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let failed_task = fixture.emit(new_event("record").with_key("a")).await.tasks.remove(0);
    fixture.fail_permanently(&fixture.claim_one().await).await;
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 1);
    assert_eq!(fixture.retry_task(&failed_task).await, Err(TaskCommandError::EventExpired));
    assert_eq!(fixture.read_task_status(&failed_task).await, TaskStatus::Error);
    let new_event_of_object = fixture.emit(new_event("record").with_key("a")).await;
    assert_eq!(new_event_of_object.prev, None);
    assert_eq!(fixture.retry_task(&failed_task).await, Err(TaskCommandError::EventExpired));
    assert_eq!(event_ids_of_tasks(&fixture.claim(10).await), [new_event_of_object.id]);
}

/// On Redis an object is named by its tenant and key: `shop/a` could be the key of the default tenant, or the key `a`
/// of the tenant `shop`.
pub async fn objects_of_other_tenants_and_sub_objects_are_kept_separate(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    fixture.emit(new_event("note").with_key("shop/a")).await;
    fixture.emit(new_event("note").with_key("b").with_sub_key("part")).await;
    fixture.advance_clock_with_heartbeats(DAY_SECS).await;
    let shop_event = fixture.emit(new_event("note").with_key("a").for_tenant("shop")).await;
    let parent = fixture.emit(new_event("note").with_key("b")).await;
    fixture.advance_clock_with_heartbeats(DAY_SECS / 2).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 1);
    let [default, shop, sub] = [
        new_event("note").with_key("shop/a"),
        new_event("note").with_key("a").for_tenant("shop"),
        new_event("note").with_key("b").with_sub_key("part"),
    ];
    assert_eq!(fixture.emit(default).await.prev, None);
    assert_eq!(fixture.emit(shop).await.prev, Some(shop_event.id));
    assert_eq!(fixture.emit(sub).await.prev, Some(parent.id));
}

/// The cost of a pruning round depends on the number of deleted objects, not on that of kept ones.
pub async fn kept_objects_do_not_lengthen_later_pruning_rounds(harness: &dyn Harness) {
    const OBJECT_COUNT: usize = 1_200;
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    fixture.emit_in_one_batch((0..OBJECT_COUNT).map(note_event).collect()).await;
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    fixture.emit_in_one_batch((0..OBJECT_COUNT).map(note_event).collect()).await;
    fixture.emit(new_event("note").with_key("last")).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 0);
    for _ in 0..3 {
        fixture.advance_clock_with_heartbeats(60).await;
        let retain = Retention { max_age: ONE_DAY, ..KEEP_EVERYTHING };
        let pruned = expect_ok(
            fixture.store.prune_events_tasks_and_objects(retain, KEEP_EVERYTHING, ONE_DAY, fixture.now).await,
        );
        assert!(!pruned.has_more, "one call finds that there is nothing to do");
    }
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, OBJECT_COUNT as u64 + 1);
}

/// Prunes until nothing is left to do. Returns the number of calls and of deleted objects.
async fn prune_and_count_calls(fixture: &StoreFixture<'_>) -> (usize, u64) {
    let retain = Retention { max_age: ONE_DAY, ..KEEP_EVERYTHING };
    let mut deleted = 0;
    for calls in 1..1000 {
        let pruned = expect_ok(
            fixture.store.prune_events_tasks_and_objects(retain, KEEP_EVERYTHING, ONE_DAY, fixture.now).await,
        );
        deleted += pruned.deleted_object_count;
        if !pruned.has_more {
            return (calls, deleted);
        }
    }
    panic!("pruning does not end");
}

pub async fn many_old_unfinished_tasks_keep_their_objects(harness: &dyn Harness) {
    const OBJECT_COUNT: usize = 1_300;
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    let events = (0..2 * OBJECT_COUNT).map(|n| match n % 2 {
        0 => new_event("record").with_key(&format!("used:{n}")),
        _ => note_event(n),
    });
    let emitted = fixture.emit_in_one_batch(events.collect()).await.events;
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, OBJECT_COUNT as u64);
    for (n, before) in emitted.iter().enumerate().step_by(2) {
        let next = fixture.emit(new_event("note").with_key(&format!("used:{n}"))).await;
        assert_eq!(next.prev, Some(before.id), "{n}");
    }
}

/// Neither planned orders nor the tasks of recent events are scanned, however many there are.
pub async fn a_task_backlog_does_not_lengthen_a_pruning_round(harness: &dyn Harness) {
    const OBJECT_COUNT: usize = 2_100;
    let registration = RegistrationBuilder::single_handler().chain("/a", "first=step>done done");
    let mut fixture = StoreFixture::new(harness, registration).await;
    fixture.emit(new_event("note").with_key("unused")).await;
    let planned = fixture.seconds_from_now(1_000 * DAY_SECS);
    let orders = |part: usize| {
        (0..OBJECT_COUNT / 3).map(move |n| new_order(&format!("/a,{part}-{n}")).planned_at(planned))
    };
    for part in 0..3 {
        fixture.add_orders(orders(part).collect()).await;
    }
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    fixture
        .emit_in_one_batch(
            (0..OBJECT_COUNT).map(|n| new_event("record").with_key(&format!("recent:{n}"))).collect(),
        )
        .await;
    // Old events first: pruning them takes separate calls.
    fixture.prune_events_and_tasks(Retention { max_age: ONE_DAY, ..KEEP_EVERYTHING }, KEEP_EVERYTHING).await;
    let (calls, deleted) = prune_and_count_calls(&fixture).await;
    assert_eq!(deleted, 1);
    assert!(calls <= 3, "{calls} calls");
}

pub async fn few_unused_objects_are_deleted_once_an_hour(harness: &dyn Harness) {
    const HOUR_SECS: u64 = 3600;
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    fixture.emit(new_event("note").with_key("first")).await;
    fixture.advance_clock(HOUR_SECS / 2);
    fixture.emit(new_event("note").with_key("second")).await;
    fixture.advance_clock(HOUR_SECS / 4);
    fixture.emit_in_one_batch((0..600).map(note_event).collect()).await;
    fixture.advance_clock_with_heartbeats(DAY_SECS - HOUR_SECS / 2).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 1);
    fixture.advance_clock(HOUR_SECS / 3);
    assert_eq!(prune_and_count_calls(&fixture).await, (1, 0), "one object does not start a round yet");
    fixture.advance_clock(HOUR_SECS / 3);
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 601, "many objects start a round");
    fixture.emit(new_event("note").with_key("third")).await;
    fixture.advance_clock_with_heartbeats(DAY_SECS + 60).await;
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, 1);
}

/// After a restart in the middle of a round, the next call deletes the next objects of the round.
pub async fn a_pruning_round_continues_after_a_restart(harness: &dyn Harness) {
    const OBJECT_COUNT: usize = 1_300;
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    fixture.emit_in_one_batch((0..OBJECT_COUNT).map(note_event).collect()).await;
    fixture.advance_clock_with_heartbeats(2 * DAY_SECS).await;
    let retain = Retention { max_age: ONE_DAY, ..KEEP_EVERYTHING };
    fixture.prune_events_and_tasks(retain, KEEP_EVERYTHING).await;
    let mut deleted = 0;
    while deleted == 0 {
        deleted += expect_ok(
            fixture.store.prune_events_tasks_and_objects(retain, KEEP_EVERYTHING, ONE_DAY, fixture.now).await,
        )
        .deleted_object_count;
    }
    let fixture = fixture.reopen().await;
    let next = expect_ok(
        fixture.store.prune_events_tasks_and_objects(retain, KEEP_EVERYTHING, ONE_DAY, fixture.now).await,
    )
    .deleted_object_count;
    assert_eq!((deleted, next), (500, 500));
    assert_eq!(fixture.prune_events_and_objects(ONE_DAY).await, OBJECT_COUNT as u64 - 1000);
}
