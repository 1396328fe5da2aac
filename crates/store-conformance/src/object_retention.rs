//! Objects that nothing refers to any more are deleted after a retention of their own.

use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::store::{ObjectView, Sequenced};
use pointsman_core::task::Rejected;
use pointsman_core::{EventId, NewEvent, Status};

use crate::Harness;
use crate::fixture::*;

const DAY: u64 = 86_400;
const ONE_DAY: Duration = Duration::from_secs(DAY);

async fn view(world: &StoreFixture<'_>, name: &str) -> Option<ObjectView> {
    expect_ok(world.store.object(&tenant("default"), &object_key(name), 10).await)
}

fn note(object: usize) -> NewEvent {
    new_event("note").with_key(&format!("object:{object}"))
}

fn prevs(events: &[Sequenced]) -> Vec<Option<EventId>> {
    events.iter().map(|event| event.prev).collect()
}

pub async fn an_unused_object_is_deleted_and_its_prev_links_restart(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(3, new_event("record").with_key("a")).await;
    world.run_all_ready().await;
    world.pass_time(DAY - 60).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 0);
    assert!(view(&world, "a").await.is_some());
    world.pass_time(120).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 1);
    assert!(view(&world, "a").await.is_none());

    let first = world.emit(new_event("record").with_key("a")).await;
    let second = world.emit(new_event("record").with_key("a")).await;
    assert_eq!((first.prev, second.prev), (None, Some(first.id)));
    let claimed = world.claim_one().await;
    assert_eq!((claimed.event().prev, claimed.prev_sent), (None, None));
    assert!(world.claim(10).await.is_empty(), "its lane runs one at a time");
    world.succeed(&claimed).await;
    assert_eq!(world.claim_one().await.prev_sent, Some(first.id));
    let world = world.reopen().await;
    assert_eq!(world.emit(new_event("record").with_key("a")).await.prev, Some(second.id));
}

pub async fn many_unused_objects_are_deleted_in_batches(harness: &dyn Harness) {
    const MANY: usize = 1_300;
    let mut world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    world.emit_together((0..MANY).map(note).collect()).await;
    world.pass_time(2 * DAY).await;
    let kept = world.emit(new_event("note").with_key("young")).await;
    let retain = Retention { age: ONE_DAY, ..KEEP_EVERYTHING };
    let (mut deleted, mut calls) = (0, 0);
    loop {
        let pruned = expect_ok(world.store.prune(retain, KEEP_EVERYTHING, ONE_DAY, world.now).await);
        assert!(pruned.objects <= 500, "{} in one transaction", pruned.objects);
        deleted += pruned.objects;
        calls += 1;
        if !pruned.more {
            break;
        }
    }
    assert_eq!(deleted, MANY as u64);
    assert!(calls < 100, "{calls}");
    let again = world.emit_together((0..MANY).map(note).collect()).await.events;
    assert!(prevs(&again).iter().all(Option::is_none));
    assert_eq!(world.emit(new_event("note").with_key("young")).await.prev, Some(kept.id));
}

pub async fn an_object_with_an_event_in_the_journal_stays(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let last = world.emit(new_event("note").with_key("a")).await.id;
    world.advance_clock(1_000 * DAY);
    assert_eq!(world.prune_with_retentions(KEEP_EVERYTHING, KEEP_EVERYTHING, secs(1)).await.objects, 0);
    assert_eq!(world.emit(new_event("note").with_key("a")).await.prev, Some(last));
}

/// Whatever the retention of objects: the journal is longer.
pub async fn objects_with_journaled_events_are_not_scanned(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    world.emit(new_event("note").with_key("old")).await;
    world.pass_time(2 * DAY).await;
    world.emit_together((0..600).map(note).collect()).await;
    world.advance_clock(60);
    let retain = Retention { age: ONE_DAY, ..KEEP_EVERYTHING };
    assert_eq!(world.prune_with_retentions(retain, KEEP_EVERYTHING, secs(1)).await.objects, 1);
    for _ in 0..3 {
        world.advance_clock(60);
        let pruned = expect_ok(world.store.prune(retain, KEEP_EVERYTHING, secs(1), world.now).await);
        assert_eq!((pruned.objects, pruned.more), (0, false), "one call finds that there is nothing to do");
    }
}

/// Its first event is old, its last one is not.
pub async fn an_object_with_a_recent_event_stays(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    world.emit(new_event("note").with_key("a")).await;
    world.emit(new_event("note").with_key("b")).await;
    world.pass_time(DAY).await;
    let last = world.emit(new_event("note").with_key("a")).await.id;
    world.pass_time(DAY / 2).await;
    assert_eq!(
        world
            .prune_with_retentions(Retention { age: secs(1), ..KEEP_EVERYTHING }, KEEP_EVERYTHING, ONE_DAY)
            .await
            .objects,
        1
    );
    let mut world = world.reopen().await;
    assert_eq!(view(&world, "a").await.map(|view| view.last), Some(last));
    world.pass_time(DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 1, "until it is old, too");
}

/// One object for each way in which a task may be unfinished.
pub async fn an_object_with_an_unfinished_task_stays(harness: &dyn Harness) {
    let limits = pointsman_core::limit::Limits { concurrency_per_key: Some(1), ..Default::default() };
    let plan = RegistrationBuilder::default()
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
    let mut world = StoreFixture::new(harness, plan.clone()).await;
    let kinds = ["ordered", "free", "grouped", "halting", "gone", "running", "delayed"];
    let mut last = Vec::new();
    for kind in kinds {
        let new = match kind {
            "delayed" => new_event("free").due_at(world.seconds_from_now(100 * DAY)),
            kind => new_event(kind),
        };
        last.push(world.emit(new.with_key(kind)).await.id);
    }
    world.emit(new_event("note").with_key("unused")).await;
    world.fail_permanently(&world.claim_one_for_handler("halting").await).await;
    let running = world.claim_one_for_handler("running").await;
    world.undefine_handler("gone").await;
    world.pass_time(10 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 1, "the unused one");
    world.pass_time(10 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 0, "however long it takes");
    world.register(plan).await;
    for (kind, last) in kinds.into_iter().zip(last) {
        assert_eq!(world.emit(new_event("note").with_key(kind)).await.prev, Some(last), "{kind}");
    }
    world.succeed(&running).await;
    // A later task of the object waits for the first one.
    let second = world.emit(new_event("ordered").with_key("ordered")).await;
    let first = world.claim_for_handlers(&["ordered"], 10).await;
    assert_eq!(first.len(), 1);
    world.succeed(&first[0]).await;
    assert_eq!(event_ids_of(&world.claim_for_handlers(&["ordered"], 10).await), [second.id]);
}

pub async fn an_object_is_deleted_once_its_last_task_has_ended(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    world.emit(new_event("record").with_key("a")).await;
    world.pass_time(10 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 0);
    world.run_all_ready().await;
    world.pass_time(2 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 1);
    assert_eq!(world.emit(new_event("record").with_key("a")).await.prev, None);
}

/// Its event is kept for another task only, and the object has no other task by the time it is retried.
pub async fn a_retried_task_keeps_its_object(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["fails", "waits"])).await;
    let emitted = world.emit(new_event("record").with_key("a")).await;
    world.fail_permanently(&world.claim_one_for_handler("fails").await).await;
    world.pass_time(10 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 0);
    let parked = emitted.tasks.iter().find(|id| id.to_string().contains("fails")).expect("its task").clone();
    world.retry_task(&parked).await.expect("its event is kept");
    world.succeed(&world.claim_one_for_handler("waits").await).await;
    world.pass_time(10 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 0);
    assert_eq!(world.emit(new_event("note").with_key("a")).await.prev, Some(emitted.id));
    let retried = world.claim_one_for_handler("fails").await;
    assert!(retried.late && retried.event().id == emitted.id);
    world.snooze(&retried, 10).await;
    assert_eq!(world.task_status(&parked).await, Status::New);
}

pub async fn a_task_of_a_deleted_object_cannot_be_retried(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let parked = world.emit(new_event("record").with_key("a")).await.tasks.remove(0);
    world.fail_permanently(&world.claim_one().await).await;
    world.pass_time(2 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 1);
    assert_eq!(world.retry_task(&parked).await, Err(Rejected::Forgotten));
    assert_eq!(world.task_status(&parked).await, Status::Error);
    let fresh = world.emit(new_event("record").with_key("a")).await;
    assert_eq!(fresh.prev, None);
    assert_eq!(world.retry_task(&parked).await, Err(Rejected::Forgotten));
    assert_eq!(event_ids_of(&world.claim(10).await), [fresh.id]);
}

/// On Redis a tenant and a key make a name that another tenant's key may have, too.
pub async fn objects_of_other_tenants_and_sub_objects_are_kept_separate(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    world.emit(new_event("note").with_key("shop/a")).await;
    world.emit(new_event("note").with_key("b").with_sub_key("part")).await;
    world.pass_time(DAY).await;
    let of_shop = world.emit(new_event("note").with_key("a").for_tenant("shop")).await;
    let parent = world.emit(new_event("note").with_key("b")).await;
    world.pass_time(DAY / 2).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 1);
    let [default, shop, sub] = [
        new_event("note").with_key("shop/a"),
        new_event("note").with_key("a").for_tenant("shop"),
        new_event("note").with_key("b").with_sub_key("part"),
    ];
    assert_eq!(world.emit(default).await.prev, None);
    assert_eq!(world.emit(shop).await.prev, Some(of_shop.id));
    assert_eq!(world.emit(sub).await.prev, Some(parent.id));
}

/// The cost of a round follows what it deletes.
pub async fn kept_objects_are_not_scanned_again(harness: &dyn Harness) {
    const MANY: usize = 1_200;
    let mut world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    world.emit_together((0..MANY).map(note).collect()).await;
    world.pass_time(2 * DAY).await;
    world.emit_together((0..MANY).map(note).collect()).await;
    world.emit(new_event("note").with_key("last")).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 0);
    for _ in 0..3 {
        world.pass_time(60).await;
        let retain = Retention { age: ONE_DAY, ..KEEP_EVERYTHING };
        let pruned = expect_ok(world.store.prune(retain, KEEP_EVERYTHING, ONE_DAY, world.now).await);
        assert!(!pruned.more, "one call finds that there is nothing to do");
    }
    world.pass_time(2 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, MANY as u64 + 1);
}

/// Prunes until there is no more to do; answers how many calls that took, and how many objects were deleted.
async fn count_calls(world: &StoreFixture<'_>) -> (usize, u64) {
    let retain = Retention { age: ONE_DAY, ..KEEP_EVERYTHING };
    let mut deleted = 0;
    for calls in 1..1000 {
        let pruned = expect_ok(world.store.prune(retain, KEEP_EVERYTHING, ONE_DAY, world.now).await);
        deleted += pruned.objects;
        if !pruned.more {
            return (calls, deleted);
        }
    }
    panic!("pruning does not end");
}

pub async fn old_tasks_of_many_batches_keep_their_objects(harness: &dyn Harness) {
    const MANY: usize = 1_300;
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    let events = (0..2 * MANY).map(|n| match n % 2 {
        0 => new_event("record").with_key(&format!("used:{n}")),
        _ => note(n),
    });
    let emitted = world.emit_together(events.collect()).await.events;
    world.pass_time(2 * DAY).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, MANY as u64);
    for (n, before) in emitted.iter().enumerate().step_by(2) {
        let next = world.emit(new_event("note").with_key(&format!("used:{n}"))).await;
        assert_eq!(next.prev, Some(before.id), "{n}");
    }
}

/// Tasks of orders and of recent events, however many there are.
pub async fn a_task_backlog_does_not_lengthen_a_pruning_round(harness: &dyn Harness) {
    const MANY: usize = 2_100;
    let plan = RegistrationBuilder::single_handler().chain("/a", "first=step>done done");
    let mut world = StoreFixture::new(harness, plan).await;
    world.emit(new_event("note").with_key("unused")).await;
    let planned = world.seconds_from_now(1_000 * DAY);
    let orders =
        |part: usize| (0..MANY / 3).map(move |n| new_order(&format!("/a,{part}-{n}")).planned_at(planned));
    for part in 0..3 {
        world.add_orders(orders(part).collect()).await;
    }
    world.pass_time(2 * DAY).await;
    world
        .emit_together((0..MANY).map(|n| new_event("record").with_key(&format!("recent:{n}"))).collect())
        .await;
    // Old events first: they take calls of their own.
    world.prune(Retention { age: ONE_DAY, ..KEEP_EVERYTHING }, KEEP_EVERYTHING).await;
    let (calls, deleted) = count_calls(&world).await;
    assert_eq!(deleted, 1);
    assert!(calls <= 3, "{calls} calls");
}

pub async fn few_unused_objects_are_deleted_once_an_hour(harness: &dyn Harness) {
    const HOUR: u64 = 3600;
    let mut world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    world.emit(new_event("note").with_key("first")).await;
    world.advance_clock(HOUR / 2);
    world.emit(new_event("note").with_key("second")).await;
    world.advance_clock(HOUR / 4);
    world.emit_together((0..600).map(note).collect()).await;
    world.pass_time(DAY - HOUR / 2).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 1);
    world.advance_clock(HOUR / 3);
    assert_eq!(count_calls(&world).await, (1, 0), "one object is not worth a round yet");
    world.advance_clock(HOUR / 3);
    assert_eq!(world.prune_objects(ONE_DAY).await, 601, "many are");
    world.emit(new_event("note").with_key("third")).await;
    world.pass_time(DAY + 60).await;
    assert_eq!(world.prune_objects(ONE_DAY).await, 1);
}

/// Neither a restart nor a failed transaction sets it back.
pub async fn a_pruning_round_continues_after_a_restart(harness: &dyn Harness) {
    const MANY: usize = 1_300;
    let mut world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    world.emit_together((0..MANY).map(note).collect()).await;
    world.pass_time(2 * DAY).await;
    let retain = Retention { age: ONE_DAY, ..KEEP_EVERYTHING };
    world.prune(retain, KEEP_EVERYTHING).await;
    let mut deleted = 0;
    while deleted == 0 {
        deleted += expect_ok(world.store.prune(retain, KEEP_EVERYTHING, ONE_DAY, world.now).await).objects;
    }
    let world = world.reopen().await;
    let next = expect_ok(world.store.prune(retain, KEEP_EVERYTHING, ONE_DAY, world.now).await).objects;
    assert_eq!((deleted, next), (500, 500));
    assert_eq!(world.prune_objects(ONE_DAY).await, MANY as u64 - 1000);
}
