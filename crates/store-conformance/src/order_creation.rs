//! Orders created by events through their routes, and by schedules at their planned times.

use pointsman_core::Timestamp;
use pointsman_core::fire::{FireOutcome, OverlapPolicy, SkipReason};
use pointsman_core::journal::Retention;
use pointsman_core::store::FinishedAttempt;

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .chain("/x/y", "a=first>b b=second>done done")
        .chain("/x/z", "a=first>done done")
        .chain_route("record", "/x/y")
}

fn order_keys(views: &[pointsman_core::store::OrderView]) -> Vec<String> {
    views.iter().map(|view| view.order.key.to_string()).collect()
}

pub async fn an_event_creates_an_order(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let emitted = fixture
        .emit(new_event("record").with_key("k").with_value("[1]").for_tenant("shop").with_priority(7))
        .await;
    let key = format!("/x/y,{}", emitted.id);
    let view = fixture.find_tenant_order("shop", &key).await.expect("the order is unfinished");
    assert_eq!((view.order.value.as_str(), view.order.node.as_str()), ("[1]", "a"));
    assert_eq!((view.order.tenant.as_str(), view.order.priority.get()), ("shop", 7));
    let published: Vec<_> = fixture.read_events_after(emitted.id, &Default::default()).await;
    assert_eq!((published.len(), summarize_event(&published[0]).as_str()), (1, "FileBasedAdded nodeId:a"));
    let task = fixture.claim_one().await;
    assert_eq!((task.step_run().order_key.to_string(), task.step_run().value.as_str()), (key.clone(), "[1]"));
    fixture.succeed(&task).await;
    fixture.run_all_ready_tasks().await;
    assert!(fixture.find_tenant_order("shop", &key).await.is_none());
    assert_eq!(fixture.emit(new_event("note")).await.tasks.len(), 0);
    assert!(fixture.list_orders("/").await.is_empty(), "other events create none");
}

/// The order is created in addition to the tasks of the event's handlers.
pub async fn an_event_can_create_tasks_and_an_order(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().route("record", &["index"])).await;
    let emitted = fixture.emit(new_event("record").with_key("k")).await;
    assert_eq!(fixture.list_orders("/").await.len(), 1);
    let mut handlers: Vec<_> = fixture.claim(10).await.iter().map(|task| task.handler.to_string()).collect();
    handlers.sort();
    assert_eq!(handlers, ["first", "index"]);
    let own: Vec<_> = emitted.tasks.iter().filter(|id| id.as_str().starts_with("index_record_")).collect();
    assert_eq!(own.len(), 1);
}

pub async fn routes_of_parent_event_types_create_orders(harness: &dyn Harness) {
    let registration =
        base_registration().chain_route("record.published", "/x/y").chain_route("record.published", "/x/z");
    let fixture = StoreFixture::new(harness, registration).await;
    let emitted = fixture.emit(new_event("record.published.twice")).await;
    let want = [format!("/x/y,{}", emitted.id), format!("/x/z,{}", emitted.id)];
    assert_eq!(order_keys(&fixture.list_orders("/").await), want, "one for each chain");
    fixture.emit(new_event("records")).await;
    assert_eq!(fixture.list_orders("/").await.len(), 2);
}

pub async fn a_repeated_emit_creates_no_second_order(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for _ in 0..2 {
        fixture
            .append(vec![new_idempotent_emit_batch(
                "default",
                "once",
                1,
                [new_event("record"), new_event("record")],
            )])
            .await;
    }
    assert_eq!(fixture.list_orders("/").await.len(), 2);
    fixture.run_all_ready_tasks().await;
    fixture
        .append(vec![new_idempotent_emit_batch(
            "default",
            "once",
            1,
            [new_event("record"), new_event("record")],
        )])
        .await;
    assert!(fixture.list_orders("/").await.is_empty(), "nor when the first is gone");
}

pub async fn events_emitted_by_tasks_create_orders(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().route("note", &["index"])).await;
    fixture.emit(new_event("note")).await;
    let task = fixture.claim_one().await;
    let emits =
        vec![new_event("record").caused_by(&task).with_value("1"), new_event("record").with_value("2")];
    let finished = fixture
        .finish_attempt(FinishedAttempt { emitted_events: emits, ..finished_attempt(&task, success()) })
        .await
        .expect("the fence is current");
    for (emitted, value) in finished.emitted_events.iter().zip(["1", "2"]) {
        assert_eq!(fixture.read_order(&format!("/x/y,{}", emitted.id)).await.order.value.as_str(), value);
    }
}

pub async fn an_append_can_claim_the_first_step_of_an_order_it_creates(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let batch = new_emit_batch([new_event("record").with_value("5")]);
    let (_, claims) =
        expect_ok(fixture.store.append(vec![batch], Some(fixture.claim_request(5)), fixture.now).await);
    assert_eq!(claims.tasks.len(), 1);
    assert_eq!(claims.tasks[0].step_run().value.as_str(), "5");
    let key = claims.tasks[0].step_run().order_key.to_string();
    assert_eq!(
        fixture.summarize_engine_events_after(fixture.read_journal_range().await.last_expired_event_id).await,
        [
            "FileBasedAdded nodeId:a",
            "OrderStarted nodeId:a,taskId:first_a",
            "OrderStepStarted nodeId:a,taskId:first_a"
        ]
    );
    assert!(fixture.read_order(&key).await.order.step_running);
}

/// The order keeps the event's value, so the event may expire.
pub async fn an_order_outlives_its_event(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let emitted = fixture.emit(new_event("record").with_value("[1]")).await;
    fixture.advance_clock(1000);
    fixture
        .prune_events_and_tasks(
            Retention { max_count: 0, max_age: secs(1) },
            Retention { max_count: 0, max_age: secs(1) },
        )
        .await;
    assert!(expect_ok(fixture.store.read_event(emitted.id).await).is_none());
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.claim_one().await.step_run().value.as_str(), "[1]");
}

pub async fn events_create_orders_only_while_the_chain_is_registered(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    let fixture = {
        fixture.register(base_registration().without_chain("/x/y")).await;
        fixture.emit(new_event("record")).await;
        assert_eq!(fixture.list_orders("/").await.len(), 1, "there is no such chain now");
        fixture.register(base_registration()).await;
        fixture.reopen().await
    };
    fixture.emit(new_event("record")).await;
    assert_eq!(fixture.list_orders("/").await.len(), 2);
}

/// A fixture with the schedule `nightly`, and a planned time that is now due.
async fn fixture_with_due_schedule(harness: &dyn Harness) -> (StoreFixture<'_>, Timestamp) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.register_daily_schedule("nightly").await;
    fixture.advance_clock(100);
    let planned = fixture.now;
    (fixture, planned)
}

pub async fn a_fire_creates_its_order(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let order = new_order("/x/y,night").with_value("[1]").starting_at_chain_node("b").with_priority(9);
    let (fire, written) =
        fixture.record_fire(FireRequestBuilder::adding_order(order).build("nightly", planned)).await;
    assert_eq!((fire.outcome, fire.planned_at, written), (FireOutcome::Fired, planned, true));
    let published =
        fixture.read_engine_events_after(fixture.read_journal_range().await.last_expired_event_id).await;
    assert_eq!(published.iter().map(|event| Some(event.id)).collect::<Vec<_>>(), [fire.event_id]);
    assert_eq!(summarize_event(&published[0]), "FileBasedAdded nodeId:b");
    let view = fixture.read_order("/x/y,night").await;
    assert_eq!((view.order.value.as_str(), view.order.priority.get()), ("[1]", 9));
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,night b"]);
    assert_eq!(fixture.register_daily_schedule("nightly").await.processed_up_to, planned);
    assert_eq!(fixture.list_fires("nightly").await, [fire]);
}

pub async fn a_fire_without_an_order_id_gets_a_generated_one(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    for seconds in 0..3 {
        let request =
            FireRequestBuilder::adding_order(new_order("/x/y")).build("nightly", planned.plus(secs(seconds)));
        assert_eq!(fixture.record_fire(request).await.0.outcome, FireOutcome::Fired);
    }
    assert_eq!(fixture.list_orders("/x/y").await.len(), 3);
}

pub async fn a_recorded_fire_creates_no_second_order(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let request = || FireRequestBuilder::adding_order(new_order("/x/y")).build("nightly", planned);
    let answers = fixture.record_fires(vec![request(), request()]).await;
    assert_eq!((answers[0].1, answers[1].1), (true, false));
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.record_fire(request()).await, (answers[0].0.clone(), false));
    assert_eq!(fixture.list_orders("/").await.len(), 1);
}

pub async fn a_fire_for_an_unknown_chain_is_skipped(harness: &dyn Harness) {
    let (mut fixture, planned) = fixture_with_due_schedule(harness).await;
    fixture.register(base_registration().without_chain("/x/z")).await;
    let since = fixture.read_journal_head().await;
    let (fire, written) = fixture
        .record_fire(FireRequestBuilder::adding_order(new_order("/x/z,1")).build("nightly", planned))
        .await;
    assert_eq!(
        (fire.outcome, fire.event_id, written),
        (FireOutcome::Skipped(SkipReason::TargetUndefined), None, true)
    );
    assert_eq!(fixture.read_journal_head().await, since);
    assert!(fixture.list_orders("/").await.is_empty());
}

pub async fn an_unfinished_order_of_the_last_fire_causes_a_skip(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    let request = |seconds, overlap| {
        let fires =
            FireRequestBuilder::adding_order(new_order("/x/y,night").with_value("[1]")).with_overlap(overlap);
        fires.build("nightly", planned.plus(secs(seconds)))
    };
    assert_eq!(fixture.record_fire(request(0, OverlapPolicy::Skip)).await.0.outcome, FireOutcome::Fired);
    for (seconds, overlap) in [(1, OverlapPolicy::Skip), (2, OverlapPolicy::Queue)] {
        let (fire, written) = fixture.record_fire(request(seconds, overlap)).await;
        assert_eq!((fire.outcome, written), (FireOutcome::Skipped(SkipReason::Overlap), true), "{overlap:?}");
        assert_eq!(fire.event_id, None);
    }
    assert_eq!(fixture.list_orders("/").await.len(), 1);
    fixture.run_all_ready_tasks().await;
    assert_eq!(
        fixture.record_fire(request(3, OverlapPolicy::Skip)).await.0.outcome,
        FireOutcome::Fired,
        "the order has finished"
    );
}

pub async fn a_paused_schedule_creates_no_order(harness: &dyn Harness) {
    let (fixture, planned) = fixture_with_due_schedule(harness).await;
    fixture.set_pause_rule("@nightly").await;
    let request = |seconds| {
        FireRequestBuilder::adding_order(new_order("/x/y")).build("nightly", planned.plus(secs(seconds)))
    };
    assert_eq!(
        fixture.record_fire(request(0)).await.0.outcome,
        FireOutcome::Skipped(SkipReason::PausedByRule)
    );
    fixture.lift_pause_rule("@nightly").await;
    fixture.set_pause_rule("/x/y").await;
    assert_eq!(
        fixture.record_fire(request(1)).await.0.outcome,
        FireOutcome::Fired,
        "a chain's rule blocks only its steps"
    );
    fixture.assert_nothing_claimable("the chain is paused").await;
    assert_eq!(fixture.list_orders("/").await.len(), 1);
}

/// The event's due time becomes the order's planned time.
pub async fn a_delayed_event_creates_a_planned_order(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let due = fixture.seconds_from_now(60);
    let emitted = fixture.emit(new_event("record").due_at(due)).await;
    assert_eq!(fixture.read_order(&format!("/x/y,{}", emitted.id)).await.order.planned_at, Some(due));
    fixture.assert_nothing_claimable("its planned time has not come").await;
    fixture.advance_clock(60);
    assert_eq!(fixture.claim(10).await.len(), 1);
}
