//! A lane runs one task at a time, in journal order.

use pointsman_core::store::EmittedEventReceipt;
use pointsman_core::task::{ErrorReason, TaskState};
use pointsman_core::{EventId, TaskStatus};

use crate::Harness;
use crate::fixture::*;

/// Emits three events of the object `a`.
async fn emit_three_events_of_object_a(fixture: &StoreFixture<'_>) -> Vec<EmittedEventReceipt> {
    fixture.emit_copies(3, new_event("record").with_key("a")).await
}

pub async fn a_lane_runs_one_task_at_a_time_in_journal_order(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    for event in &events {
        let claimed = fixture.claim(10).await;
        assert_eq!(event_ids_of_tasks(&claimed), [event.id]);
        assert!(fixture.claim(10).await.is_empty(), "the lane is taken");
        fixture.succeed(&claimed[0]).await;
    }
    assert!(fixture.claim(10).await.is_empty());
}

pub async fn different_lanes_run_concurrently(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "audit"])).await;
    for (key, tenant) in [("a", "default"), ("b", "default"), ("a", "shop")] {
        fixture.emit_copies(2, new_event("record").with_key(key).for_tenant(tenant)).await;
    }
    let claimed = fixture.claim(100).await;
    assert_eq!(claimed.len(), 6, "three objects, two handlers");
    let mut heads = event_ids_of_tasks(&claimed);
    heads.sort();
    heads.dedup();
    assert_eq!(heads.len(), 3, "each the first of its object");
}

/// A slow task of one handler does not delay another handler of the same object.
pub async fn lanes_of_different_handlers_are_independent(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["slow", "quick"])).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    let slow = fixture.claim_one_for_handler("slow").await;
    for event in &events {
        let quick = fixture.claim_one_for_handler("quick").await;
        assert_eq!(quick.event().id, event.id);
        fixture.succeed(&quick).await;
    }
    assert!(fixture.claim(10).await.is_empty());
    fixture.succeed(&slow).await;
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events[1..]));
}

pub async fn tasks_of_an_unordered_handler_run_concurrently(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    emit_three_events_of_object_a(&fixture).await;
    assert_eq!(fixture.claim(10).await.len(), 3);
}

pub async fn tasks_without_an_object_key_run_concurrently(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(3, new_event("record")).await;
    assert_eq!(fixture.claim(10).await.len(), 3);
}

pub async fn a_retrying_head_blocks_its_lane(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    let head = fixture.claim_one().await;
    let finished = fixture.fail(&head).await;
    assert_eq!(
        (finished.status, finished.next_attempt_due_at),
        (TaskStatus::New, Some(fixture.seconds_from_now(RETRY_DELAY_SECS)))
    );
    assert!(fixture.claim(10).await.is_empty());
    fixture.advance_clock(RETRY_DELAY_SECS);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events));
}

pub async fn a_snoozed_head_blocks_its_lane(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    let head = fixture.claim_one().await;
    fixture.snooze_task(&head, 300).await;
    fixture.advance_clock(299);
    assert!(fixture.claim(10).await.is_empty());
    fixture.advance_clock(1);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events));
}

pub async fn a_delayed_head_blocks_its_lane(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let delayed = fixture.emit(new_event("record").with_key("a").due_at(fixture.seconds_from_now(60))).await;
    let prompt = fixture.emit(new_event("record").with_key("a")).await;
    assert!(fixture.claim(10).await.is_empty());
    fixture.advance_clock(60);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [delayed.id, prompt.id]);
}

/// The delayed task becomes the head of its lane before it is due, and waits there.
pub async fn a_delayed_task_blocks_its_lane_when_it_becomes_head(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = fixture.emit(new_event("record").with_key("a")).await;
    let delayed = fixture.emit(new_event("record").with_key("a").due_at(fixture.seconds_from_now(60))).await;
    let last = fixture.emit(new_event("record").with_key("a")).await;
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [first.id]);
    fixture.advance_clock(60);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [delayed.id, last.id]);
}

pub async fn a_released_head_keeps_its_lane_position(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    let head = fixture.claim_one().await;
    fixture.release_task(&head).await;
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(event_ids_of_tasks(&ran), event_ids_of_receipts(&events));
    assert_eq!((ran[0].attempt, ran[0].retries), (2, 0));
}

pub async fn priority_orders_lane_heads_but_not_tasks_within_a_lane(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let low = fixture.emit(new_event("record").with_key("a").with_priority(1)).await;
    let high = fixture.emit(new_event("record").with_key("a").with_priority(9000)).await;
    let middle = fixture.emit(new_event("record").with_key("b").with_priority(50)).await;
    let ran = event_ids_of_tasks(&fixture.run_all_ready_tasks().await);
    let run_index = |id: EventId| ran.iter().position(|ran| *ran == id).expect("it ran");
    assert!(run_index(low.id) < run_index(high.id), "the lane's order is kept");
    assert_eq!(run_index(middle.id), 0, "of two heads the more urgent one");
}

pub async fn a_permanently_failed_head_unblocks_its_lane(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    let finished = fixture.fail_permanently(&fixture.claim_one().await).await;
    assert_eq!((finished.status, finished.next_attempt_due_at), (TaskStatus::Error, None));
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(event_ids_of_tasks(&ran), event_ids_of_receipts(&events[1..]));
    assert_eq!(ran[0].event().prev, Some(events[0].id), "the delivery names the failed event as prev");
}

pub async fn a_halted_head_blocks_its_lane_until_retried(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    fixture.advance_clock(100_000);
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.read_queue("index").await.halted_count, 1);
    let fixture = fixture.reopen().await;
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.retry_task(&events[0].tasks[0]).await, Ok(()));
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(event_ids_of_tasks(&ran), event_ids_of_receipts(&events));
    assert!(!ran[0].out_of_order, "it kept its lane position");
}

pub async fn a_halted_head_blocks_its_lane_until_cancelled(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let elsewhere = fixture.emit(new_event("record").with_key("b")).await;
    assert_eq!(
        event_ids_of_tasks(&fixture.run_all_ready_tasks().await),
        [elsewhere.id],
        "other lanes continue"
    );
    assert_eq!(fixture.cancel_task(&events[0].tasks[0]).await, Ok(()));
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events[1..]));
    assert_eq!(fixture.read_queue("index").await.halted_count, 0);
}

pub async fn a_cancelled_head_unblocks_its_lane(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    let head = fixture.claim_one().await;
    assert_eq!(fixture.cancel_task(&head.id).await, Ok(()));
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events[1..]));
}

/// Removing a task from the middle of a lane does not unblock the tasks behind it.
pub async fn cancelling_a_task_behind_the_head_does_not_unblock_the_lane(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(4, new_event("record").with_key("a")).await;
    let head = fixture.claim_one().await;
    assert_eq!(fixture.cancel_task(&events[1].tasks[0]).await, Ok(()));
    assert!(fixture.claim(10).await.is_empty(), "the head still runs");
    fixture.succeed(&head).await;
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events[2..]));
}

pub async fn a_prefetched_head_blocks_its_lane(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = emit_three_events_of_object_a(&fixture).await;
    assert_eq!(fixture.schedule_tasks(10).await, 1, "only the head can be scheduled");
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events));
}

pub async fn lane_order_survives_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut events = emit_three_events_of_object_a(&fixture).await;
    let fixture = fixture.reopen().await;
    events.push(fixture.emit(new_event("record").with_key("a")).await);
    let head = fixture.claim(10).await;
    assert_eq!(event_ids_of_tasks(&head), [events[0].id]);
    fixture.succeed(&head[0]).await;
    let mut fixture = fixture.reopen().await;
    fixture.advance_clock(1);
    events.push(fixture.emit(new_event("record").with_key("a")).await);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events[1..]));
}

/// A handler that gets only some of an object's events is given the id of the last one *it* was sent.
pub async fn prev_sent_is_tracked_per_handler(harness: &dyn Harness) {
    let registration =
        RegistrationBuilder::default().route("record", &["all"]).route("record.published", &["some"]);
    let mut fixture = StoreFixture::new(harness, registration).await;
    let mut events = Vec::new();
    for kind in ["record.published", "record.changed", "record.published"] {
        events.push(fixture.emit(new_event(kind).with_key("a")).await.id);
    }
    let elsewhere = fixture.emit(new_event("record.published").with_key("a").for_tenant("shop")).await.id;
    let mut sent = Vec::new();
    for task in fixture.run_all_ready_tasks().await {
        sent.push((task.handler.to_string(), task.event().id, task.prev_sent_event_id));
    }
    sent.sort();
    let published = |handler: &str, id: EventId, prev: Option<EventId>| (handler.to_string(), id, prev);
    assert_eq!(
        sent,
        [
            published("all", events[0], None),
            published("all", events[1], Some(events[0])),
            published("all", events[2], Some(events[1])),
            published("all", elsewhere, None),
            published("some", events[0], None),
            published("some", events[2], Some(events[0])),
            published("some", elsewhere, None),
        ]
    );
    fixture.advance_clock(1);
    let last = fixture.emit(new_event("record.published").with_key("a")).await.id;
    assert_eq!(
        fixture.claim_one_for_handler("some").await.prev_sent_event_id,
        Some(events[2]),
        "also when the lane was empty"
    );
    assert_eq!(fixture.claim_one_for_handler("all").await.event().id, last);
}

pub async fn a_repeated_attempt_carries_the_same_event_id_and_prev(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let first = fixture.emit(new_event("record").with_key("a")).await;
    fixture.emit(new_event("note").with_key("a")).await;
    fixture.emit(new_event("record").with_key("a")).await;
    fixture.succeed(&fixture.claim_one().await).await;
    let once = fixture.claim_one().await;
    assert_eq!(once.prev_sent_event_id, Some(first.id));
    fixture.fail(&once).await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    let again = fixture.claim_one().await;
    assert_eq!(
        (&again.id, again.event(), again.prev_sent_event_id),
        (&once.id, once.event(), once.prev_sent_event_id)
    );
    fixture.release_task(&again).await;
    let fixture = fixture.reopen().await;
    let after_restart = fixture.claim_one().await;
    assert_eq!(
        (&after_restart.id, after_restart.event(), after_restart.prev_sent_event_id),
        (&once.id, once.event(), once.prev_sent_event_id)
    );
    assert_eq!((after_restart.attempt, after_restart.retries), (3, 1));
}

pub async fn a_failed_task_without_a_lane_does_not_halt(harness: &dyn Harness) {
    let registration = RegistrationBuilder::single_handler().halt_on_error("index");
    let fixture = StoreFixture::new(harness, registration).await;
    let id = fixture.emit(new_event("record")).await.tasks.remove(0);
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let task = fixture.read_task(&id).await;
    assert_eq!(task.lifecycle.state, TaskState::Error { reason: ErrorReason::Failed, halts_lane: false });
}
