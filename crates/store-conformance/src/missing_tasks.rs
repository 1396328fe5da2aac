//! Tasks of a handler that is no longer registered: they become missing, are never lost, and run again after
//! adoption.

use pointsman_core::TaskStatus;
use pointsman_core::journal::Retention;
use pointsman_core::store::TaskFilter;

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().route("record", &["index", "notify"])
}

pub async fn waiting_tasks_of_an_undefined_handler_become_missing(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.emit(new_event("record").due_at(fixture.seconds_from_now(3600))).await;
    fixture.emit_copies(2, new_event("record").with_key("b").for_tenant("shop")).await;
    fixture.schedule_tasks(3).await;
    assert_eq!(
        fixture.undefine_handler_and_rescue("index").await,
        6,
        "heads, lanes behind them, delayed and scheduled ones"
    );
    let filter = TaskFilter { handler: Some(handler_name("index")), ..TaskFilter::default() };
    for task in fixture.list_tasks(&filter).await {
        assert_eq!(task.lifecycle.state.status(), TaskStatus::Missing);
    }
    let filter = TaskFilter { statuses: vec![TaskStatus::Missing], ..TaskFilter::default() };
    assert_eq!(fixture.list_tasks(&filter).await.len(), 6, "and tasks of no other handler");
    let queue = fixture.read_queue("index").await;
    assert_eq!(
        (queue.missing_count, queue.ready_count, queue.waiting_count, queue.scheduled_count),
        (4, 0, 0, 0)
    );
    assert!(fixture.claim_for_handlers(&["index"], 10).await.is_empty());
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 0, "once");
}

pub async fn paused_and_sync_gated_tasks_of_an_undefined_handler_become_missing(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["check!", "index"]))
            .await;
    fixture.emit_copies(2, new_event("record").with_key("a")).await;
    fixture.set_pause_rule("index").await;
    assert_eq!(fixture.undefine_handler_and_rescue("index").await, 2);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 2, "the other handler continues");
}

/// Tasks of a registered handler that no node can run stay `new`.
pub async fn tasks_of_a_handler_without_a_live_node_stay_new(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let sequenced = fixture.emit(new_event("record")).await;
    fixture.advance_clock(LEASE_SECS + 1);
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 0);
    assert_eq!(fixture.read_task_status(&sequenced.tasks[0]).await, TaskStatus::New);
}

pub async fn a_running_task_finishes_after_its_handler_is_undefined(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record").with_key("a")).await;
    let running = fixture.claim_one_for_handler("index").await;
    assert_eq!(fixture.undefine_handler_and_rescue("index").await, 0);
    assert_eq!(fixture.read_task_status(&running.id).await, TaskStatus::Locked);
    assert_eq!(fixture.succeed(&running).await.status, TaskStatus::Done);
}

pub async fn a_task_released_after_its_handler_is_undefined_becomes_missing(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let running = fixture.claim_one_for_handler("index").await;
    assert_eq!(fixture.undefine_handler_and_rescue("index").await, 1, "the one behind it");
    fixture.release_task(&running).await;
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 1);
    assert_eq!(fixture.read_task_status(&running.id).await, TaskStatus::Missing);
}

pub async fn missing_tasks_run_again_only_after_adoption(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let old = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.undefine_handler_and_rescue("index").await;
    fixture.run_all_ready_tasks().await;
    fixture.register(base_registration()).await;
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 0);
    assert!(fixture.claim(10).await.is_empty(), "registering the handler again is not enough");
    assert_eq!(fixture.read_queue("index").await.missing_count, 3);
    assert!(fixture.read_task(&old[0].tasks[0]).await.error.is_some(), "its error says why it does not run");
    assert_eq!(fixture.adopt_missing_tasks("index").await, 3);
    assert_eq!(fixture.adopt_missing_tasks("index").await, 0);
    assert_eq!(fixture.read_task(&old[0].tasks[0]).await.error, None);
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(event_ids_of_tasks(&ran), event_ids_of_receipts(&old), "in journal order");
    assert!(ran.iter().all(|task| task.out_of_order), "and marked as out of order");
    assert_eq!(fixture.read_queue("index").await.missing_count, 0);
}

/// Newer events of the object may have run in the meantime, which is why adopted tasks run out of order.
pub async fn missing_tasks_do_not_block_their_lane(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let old = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    fixture.undefine_handler_and_rescue("index").await;
    fixture.register(RegistrationBuilder::single_handler()).await;
    let new = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let head = fixture.claim(10).await;
    assert_eq!(event_ids_of_tasks(&head), [new[0].id]);
    assert_eq!(fixture.adopt_missing_tasks("index").await, 2);
    fixture.succeed(&head[0]).await;
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(
        event_ids_of_tasks(&ran),
        [&new[1], &old[0], &old[1]].map(|event| event.id),
        "behind the waiting tasks"
    );
    assert_eq!(ran.iter().map(|task| task.out_of_order).collect::<Vec<_>>(), [false, true, true]);
}

pub async fn adopted_tasks_of_one_object_run_one_at_a_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let old = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.undefine_handler_and_rescue("index").await;
    fixture.register(RegistrationBuilder::single_handler()).await;
    assert_eq!(fixture.adopt_missing_tasks("index").await, 3);
    let newest = fixture.emit(new_event("record").with_key("a")).await;
    let mut fixture = fixture.reopen().await;
    for event in old.iter().chain([&newest]) {
        let claimed = fixture.claim(10).await;
        assert_eq!(event_ids_of_tasks(&claimed), [event.id]);
        assert!(fixture.claim(10).await.is_empty(), "the lane is taken");
        fixture.succeed(&claimed[0]).await;
        fixture.advance_clock(1);
    }
}

pub async fn adopting_missing_tasks_affects_only_the_given_handler(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    fixture.undefine_handler_and_rescue("index").await;
    fixture.undefine_handler_and_rescue("notify").await;
    fixture.register(base_registration()).await;
    assert_eq!(fixture.adopt_missing_tasks("notify").await, 1);
    assert_eq!(fixture.adopt_missing_tasks("unheard-of").await, 0);
    assert_eq!(fixture.read_queue("index").await.missing_count, 1);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
}

pub async fn missing_tasks_are_never_pruned(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let sequenced = fixture.emit(new_event("record").with_key("a").with_value("\"kept\"")).await;
    fixture.undefine_handler_and_rescue("index").await;
    fixture.advance_clock(1_000_000);
    let nothing = Retention { max_count: 0, max_age: secs(1) };
    fixture.prune_events_and_tasks(nothing, nothing).await;
    let mut fixture = fixture.reopen().await;
    assert_eq!(fixture.read_task_status(&sequenced.tasks[0]).await, TaskStatus::Missing);
    fixture.register(RegistrationBuilder::single_handler()).await;
    assert_eq!(fixture.adopt_missing_tasks("index").await, 1);
    assert_eq!(fixture.claim_one().await.event().value.as_str(), "\"kept\"");
}

pub async fn a_missing_task_can_be_cancelled(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let sequenced = fixture.emit(new_event("record").with_key("a")).await;
    fixture.undefine_handler_and_rescue("index").await;
    assert_eq!(fixture.cancel_task(&sequenced.tasks[0]).await, Ok(()));
    fixture.register(RegistrationBuilder::single_handler()).await;
    assert_eq!(fixture.adopt_missing_tasks("index").await, 0);
    assert_eq!(fixture.read_task_status(&sequenced.tasks[0]).await, TaskStatus::Error);
    assert_eq!(fixture.read_queue("index").await.missing_count, 0);
}

pub async fn many_missing_tasks_are_all_adopted(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(1500, new_event("record")).await;
    fixture.emit_copies(1500, new_event("record").for_tenant("shop")).await;
    assert_eq!(fixture.undefine_handler_and_rescue("index").await, 3000);
    fixture.register(RegistrationBuilder::single_handler()).await;
    assert_eq!(fixture.adopt_missing_tasks("index").await, 3000);
    assert_eq!(fixture.claim(4000).await.len(), 3000);
}

pub async fn an_adopted_task_keeps_its_due_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let mut delayed = new_event("record");
    delayed.due = Some(fixture.now.plus(secs(3600)));
    fixture.emit(delayed).await;
    assert_eq!(fixture.undefine_handler_and_rescue("index").await, 1);
    fixture.register(base_registration()).await;
    assert_eq!(fixture.adopt_missing_tasks("index").await, 1);
    assert!(fixture.claim_for_handlers(&["index"], 10).await.is_empty(), "its planned time has not come");
    fixture.advance_clock(3601);
    assert_eq!(fixture.claim_for_handlers(&["index"], 10).await.len(), 1);
}
