//! A lane runs one task at a time, in journal order.

use pointsman_core::store::Sequenced;
use pointsman_core::task::{EndReason, State};
use pointsman_core::{EventId, Status};

use crate::Harness;
use crate::fixture::*;

/// So many events of the object `a`.
async fn three(world: &StoreFixture<'_>) -> Vec<Sequenced> {
    world.emit_many(3, new_event("record").with_key("a")).await
}

pub async fn a_lane_runs_one_task_at_a_time_in_journal_order(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = three(&world).await;
    for event in &events {
        let claimed = world.claim(10).await;
        assert_eq!(event_ids_of(&claimed), [event.id]);
        assert!(world.claim(10).await.is_empty(), "the lane is taken");
        world.succeed(&claimed[0]).await;
    }
    assert!(world.claim(10).await.is_empty());
}

pub async fn different_lanes_run_concurrently(harness: &dyn Harness) {
    let world =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "audit"])).await;
    for (key, tenant) in [("a", "default"), ("b", "default"), ("a", "shop")] {
        world.emit_many(2, new_event("record").with_key(key).for_tenant(tenant)).await;
    }
    let claimed = world.claim(100).await;
    assert_eq!(claimed.len(), 6, "three objects, two handlers");
    let mut heads = event_ids_of(&claimed);
    heads.sort();
    heads.dedup();
    assert_eq!(heads.len(), 3, "each the first of its object");
}

/// One handler's slow task does not hold up another handler of the same object.
pub async fn lanes_of_different_handlers_are_independent(harness: &dyn Harness) {
    let world =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["slow", "quick"])).await;
    let events = three(&world).await;
    let slow = world.claim_one_for_handler("slow").await;
    for event in &events {
        let quick = world.claim_one_for_handler("quick").await;
        assert_eq!(quick.event().id, event.id);
        world.succeed(&quick).await;
    }
    assert!(world.claim(10).await.is_empty());
    world.succeed(&slow).await;
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events[1..]));
}

pub async fn tasks_of_an_unordered_handler_run_concurrently(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    three(&world).await;
    assert_eq!(world.claim(10).await.len(), 3);
}

pub async fn tasks_without_an_object_key_run_concurrently(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(3, new_event("record")).await;
    assert_eq!(world.claim(10).await.len(), 3);
}

pub async fn a_retrying_head_blocks_its_lane(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = three(&world).await;
    let head = world.claim_one().await;
    let finished = world.fail(&head).await;
    assert_eq!(
        (finished.status, finished.due),
        (Status::New, Some(world.seconds_from_now(RETRY_DELAY_SECS)))
    );
    assert!(world.claim(10).await.is_empty());
    world.advance_clock(RETRY_DELAY_SECS);
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events));
}

pub async fn a_snoozed_head_blocks_its_lane(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = three(&world).await;
    let head = world.claim_one().await;
    world.snooze(&head, 300).await;
    world.advance_clock(299);
    assert!(world.claim(10).await.is_empty());
    world.advance_clock(1);
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events));
}

pub async fn a_delayed_head_blocks_its_lane(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let delayed = world.emit(new_event("record").with_key("a").due_at(world.seconds_from_now(60))).await;
    let prompt = world.emit(new_event("record").with_key("a")).await;
    assert!(world.claim(10).await.is_empty());
    world.advance_clock(60);
    assert_eq!(event_ids_of(&world.run_all_ready().await), [delayed.id, prompt.id]);
}

/// It comes to the head of its lane early, and waits there.
pub async fn a_delayed_task_blocks_its_lane_when_it_becomes_head(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = world.emit(new_event("record").with_key("a")).await;
    let delayed = world.emit(new_event("record").with_key("a").due_at(world.seconds_from_now(60))).await;
    let last = world.emit(new_event("record").with_key("a")).await;
    assert_eq!(event_ids_of(&world.run_all_ready().await), [first.id]);
    world.advance_clock(60);
    assert_eq!(event_ids_of(&world.run_all_ready().await), [delayed.id, last.id]);
}

pub async fn a_released_head_keeps_its_lane_position(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = three(&world).await;
    let head = world.claim_one().await;
    world.release_task(&head).await;
    let ran = world.run_all_ready().await;
    assert_eq!(event_ids_of(&ran), sequenced_ids(&events));
    assert_eq!((ran[0].attempt, ran[0].retries), (2, 0));
}

pub async fn priority_orders_lane_heads_but_not_tasks_within_a_lane(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let low = world.emit(new_event("record").with_key("a").with_priority(1)).await;
    let high = world.emit(new_event("record").with_key("a").with_priority(9000)).await;
    let middle = world.emit(new_event("record").with_key("b").with_priority(50)).await;
    let ran = event_ids_of(&world.run_all_ready().await);
    let place = |id: EventId| ran.iter().position(|ran| *ran == id).expect("it ran");
    assert!(place(low.id) < place(high.id), "the lane's order stands");
    assert_eq!(place(middle.id), 0, "of two heads the more urgent one");
}

pub async fn a_permanently_failed_head_unblocks_its_lane(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = three(&world).await;
    let finished = world.fail_permanently(&world.claim_one().await).await;
    assert_eq!((finished.status, finished.due), (Status::Error, None));
    let ran = world.run_all_ready().await;
    assert_eq!(event_ids_of(&ran), sequenced_ids(&events[1..]));
    assert_eq!(ran[0].event().prev, Some(events[0].id), "the delivery tells of the hole");
}

pub async fn a_halted_head_blocks_its_lane_until_retried(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    let events = three(&world).await;
    world.fail_permanently(&world.claim_one().await).await;
    world.advance_clock(100_000);
    assert!(world.claim(10).await.is_empty());
    assert_eq!(world.read_queue("index").await.halted, 1);
    let world = world.reopen().await;
    assert!(world.claim(10).await.is_empty());
    assert_eq!(world.retry_task(&events[0].tasks[0]).await, Ok(()));
    let ran = world.run_all_ready().await;
    assert_eq!(event_ids_of(&ran), sequenced_ids(&events));
    assert!(!ran[0].late, "it never left its place");
}

pub async fn a_halted_head_blocks_its_lane_until_cancelled(harness: &dyn Harness) {
    let world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    let events = three(&world).await;
    world.fail_permanently(&world.claim_one().await).await;
    let elsewhere = world.emit(new_event("record").with_key("b")).await;
    assert_eq!(event_ids_of(&world.run_all_ready().await), [elsewhere.id], "other lanes go on");
    assert_eq!(world.cancel_task(&events[0].tasks[0]).await, Ok(()));
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events[1..]));
    assert_eq!(world.read_queue("index").await.halted, 0);
}

pub async fn a_cancelled_head_unblocks_its_lane(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = three(&world).await;
    let head = world.claim_one().await;
    assert_eq!(world.cancel_task(&head.id).await, Ok(()));
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events[1..]));
}

/// Taking one out of the middle moves nobody forward.
pub async fn cancelling_a_task_behind_the_head_does_not_unblock_the_lane(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = world.emit_many(4, new_event("record").with_key("a")).await;
    let head = world.claim_one().await;
    assert_eq!(world.cancel_task(&events[1].tasks[0]).await, Ok(()));
    assert!(world.claim(10).await.is_empty(), "the head still runs");
    world.succeed(&head).await;
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events[2..]));
}

pub async fn a_scheduled_head_blocks_its_lane(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = three(&world).await;
    assert_eq!(world.schedule_ahead(10).await, 1, "only the head can be scheduled");
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events));
}

pub async fn lane_order_survives_a_restart(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut events = three(&world).await;
    let world = world.reopen().await;
    events.push(world.emit(new_event("record").with_key("a")).await);
    let head = world.claim(10).await;
    assert_eq!(event_ids_of(&head), [events[0].id]);
    world.succeed(&head[0]).await;
    let mut world = world.reopen().await;
    world.advance_clock(1);
    events.push(world.emit(new_event("record").with_key("a")).await);
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events[1..]));
}

/// A handler that is sent a part of an object's events is told of the last one *it* was sent.
pub async fn prev_sent_is_tracked_per_handler(harness: &dyn Harness) {
    let plan = RegistrationBuilder::default().route("record", &["all"]).route("record.published", &["some"]);
    let mut world = StoreFixture::new(harness, plan).await;
    let mut events = Vec::new();
    for kind in ["record.published", "record.changed", "record.published"] {
        events.push(world.emit(new_event(kind).with_key("a")).await.id);
    }
    let elsewhere = world.emit(new_event("record.published").with_key("a").for_tenant("shop")).await.id;
    let mut sent = Vec::new();
    for task in world.run_all_ready().await {
        sent.push((task.handler.to_string(), task.event().id, task.prev_sent));
    }
    sent.sort();
    let told = |handler: &str, id: EventId, prev: Option<EventId>| (handler.to_string(), id, prev);
    assert_eq!(
        sent,
        [
            told("all", events[0], None),
            told("all", events[1], Some(events[0])),
            told("all", events[2], Some(events[1])),
            told("all", elsewhere, None),
            told("some", events[0], None),
            told("some", events[2], Some(events[0])),
            told("some", elsewhere, None),
        ]
    );
    world.advance_clock(1);
    let last = world.emit(new_event("record.published").with_key("a")).await.id;
    assert_eq!(
        world.claim_one_for_handler("some").await.prev_sent,
        Some(events[2]),
        "also when the lane was empty"
    );
    assert_eq!(world.claim_one_for_handler("all").await.event().id, last);
}

pub async fn a_resend_carries_the_same_id_and_prev(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = world.emit(new_event("record").with_key("a")).await;
    world.emit(new_event("note").with_key("a")).await;
    world.emit(new_event("record").with_key("a")).await;
    world.succeed(&world.claim_one().await).await;
    let once = world.claim_one().await;
    assert_eq!(once.prev_sent, Some(first.id));
    world.fail(&once).await;
    world.advance_clock(RETRY_DELAY_SECS);
    let again = world.claim_one().await;
    assert_eq!((&again.id, again.event(), again.prev_sent), (&once.id, once.event(), once.prev_sent));
    world.release_task(&again).await;
    let world = world.reopen().await;
    let anew = world.claim_one().await;
    assert_eq!((&anew.id, anew.event(), anew.prev_sent), (&once.id, once.event(), once.prev_sent));
    assert_eq!((anew.attempt, anew.retries), (3, 1));
}

pub async fn a_failed_task_without_a_lane_does_not_halt(harness: &dyn Harness) {
    let plan = RegistrationBuilder::single_handler().halt_on_error("index");
    let world = StoreFixture::new(harness, plan).await;
    let id = world.emit(new_event("record")).await.tasks.remove(0);
    world.fail_permanently(&world.claim_one().await).await;
    let task = world.read_task(&id).await;
    assert_eq!(task.life.state, State::Error { reason: EndReason::Failed, halts: false });
}
