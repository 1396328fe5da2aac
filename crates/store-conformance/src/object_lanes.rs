//! An object view includes its lanes: the head of each and the number of tasks behind it.

use pointsman_core::store::{
    EmittedEventReceipt, LaneView, MAX_COUNTED_TASKS_BEHIND_HEAD, MAX_LISTED_LANES, ObjectView,
};
use pointsman_core::task::{Task, TaskState};
use pointsman_core::{Limits, TaskId, TaskStatus};

use crate::Harness;
use crate::fixture::*;

async fn read_object(fixture: &StoreFixture<'_>, tenant_name: &str, key: &str) -> ObjectView {
    expect_ok(fixture.store.read_object(&tenant(tenant_name), &object_key(key), 1).await).expect("it exists")
}

/// Reads the lanes of the object `a`.
async fn read_lanes_of_object_a(fixture: &StoreFixture<'_>) -> Vec<LaneView> {
    read_object(fixture, "default", "a").await.lanes
}

/// Reads the lane of the object `a`; panics if it has none or several.
async fn expect_one_lane_of_object_a(fixture: &StoreFixture<'_>) -> LaneView {
    let mut lanes = read_lanes_of_object_a(fixture).await;
    assert_eq!(lanes.len(), 1, "{lanes:?}");
    lanes.remove(0)
}

/// Handler, head and number of tasks behind it.
fn summarize_lanes(lanes: &[LaneView]) -> Vec<(&str, &TaskId, u64)> {
    lanes
        .iter()
        .map(|lane| (lane.head.handler.as_str(), &lane.head.id, lane.task_count_behind_head))
        .collect()
}

/// The first task of the n-th event.
fn first_task_id_of_event(events: &[EmittedEventReceipt], n: usize) -> &TaskId {
    &events[n].tasks[0]
}

pub async fn lanes_show_their_head_and_the_number_of_tasks_behind_it(harness: &dyn Harness) {
    let registration =
        RegistrationBuilder::default().route("record", &["index", "audit"]).route("note", &["audit"]);
    let fixture = StoreFixture::new(harness, registration).await;
    fixture.emit_copies(2, new_event("record").with_key("before")).await;
    let events = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.emit(new_event("note").with_key("a")).await;
    fixture.emit_copies(5, new_event("record").with_key("behind")).await;
    let view = read_object(&fixture, "default", "a").await;
    let audit = &events[0].tasks[1];
    assert_eq!(
        summarize_lanes(&view.lanes),
        [("audit", audit, 3), ("index", first_task_id_of_event(&events, 0), 2)],
        "by handler"
    );
    assert_eq!((view.journal_range, view.has_more_lanes), (fixture.read_journal_range().await, false));
    assert!(view.lanes.iter().all(|lane| !lane.has_more_behind_head && !lane.is_halted()));

    let fixture = fixture.reopen().await;
    assert_eq!(read_lanes_of_object_a(&fixture).await, view.lanes, "after a restart, too");
    for claimed in fixture.claim_for_handlers(&["index"], 10).await {
        fixture.succeed(&claimed).await;
    }
    assert_eq!(
        summarize_lanes(&read_lanes_of_object_a(&fixture).await),
        [("audit", audit, 3), ("index", first_task_id_of_event(&events, 1), 1)]
    );
    assert_eq!(summarize_lanes(&read_object(&fixture, "default", "behind").await.lanes).len(), 2);
}

/// Checked in every state of the head.
pub async fn a_lane_head_equals_its_task_without_attempts(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let check = async |fixture: &StoreFixture<'_>, status: TaskStatus| {
        let lane = expect_one_lane_of_object_a(fixture).await;
        let listed = Task { attempts: vec![], ..fixture.read_task(first_task_id_of_event(&events, 0)).await };
        assert_eq!((&lane.head, lane.head.lifecycle.state.status()), (&listed, status));
        assert_eq!((lane.task_count_behind_head, lane.is_halted()), (1, status == TaskStatus::Error));
    };
    check(&fixture, TaskStatus::New).await;
    assert_eq!(fixture.schedule_tasks(10).await, 1);
    check(&fixture, TaskStatus::Scheduled).await;
    let running = fixture.claim_one().await;
    check(&fixture, TaskStatus::Locked).await;
    fixture.fail(&running).await;
    check(&fixture, TaskStatus::New).await;
    let lane = expect_one_lane_of_object_a(&fixture).await;
    assert_eq!(
        lane.head.lifecycle.state,
        TaskState::New { due: fixture.seconds_from_now(RETRY_DELAY_SECS) },
        "it is retried at that time"
    );
    assert_eq!(lane.head.error.as_deref(), Some("it broke"));
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.fail_permanently(&fixture.claim_one().await).await;
    check(&fixture, TaskStatus::Error).await;
}

pub async fn a_halted_head_is_shown_until_retried_or_cancelled(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    let events = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let halted = expect_one_lane_of_object_a(&fixture).await;
    assert_eq!(
        (&halted.head.id, halted.task_count_behind_head, halted.is_halted()),
        (first_task_id_of_event(&events, 0), 2, true)
    );
    assert_eq!(halted.head.error.as_deref(), Some("it broke for good"));
    assert_eq!(halted.head.finished_at, Some(fixture.now));
    fixture.retry_task(first_task_id_of_event(&events, 0)).await.expect("it is halted");
    let again = expect_one_lane_of_object_a(&fixture).await;
    assert_eq!(
        (&again.head.id, again.task_count_behind_head, again.is_halted()),
        (first_task_id_of_event(&events, 0), 2, false)
    );
    fixture.fail_permanently(&fixture.claim_one().await).await;
    fixture.cancel_task(first_task_id_of_event(&events, 0)).await.expect("it is halted");
    assert_eq!(
        summarize_lanes(&read_lanes_of_object_a(&fixture).await),
        [("index", first_task_id_of_event(&events, 1), 1)]
    );
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let last = expect_one_lane_of_object_a(&fixture).await;
    assert_eq!(
        (&last.head.id, last.task_count_behind_head, last.is_halted()),
        (first_task_id_of_event(&events, 2), 0, true),
        "no task waits"
    );
}

/// Done, cancelled, permanently failed and missing tasks are in no lane.
pub async fn empty_lanes_are_not_listed(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("note").with_key("a")).await;
    assert_eq!(read_lanes_of_object_a(&fixture).await, [], "no handler is routed");
    let events = fixture.emit_copies(4, new_event("record").with_key("a")).await;
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    fixture.cancel_task(first_task_id_of_event(&events, 2)).await.expect("it waits");
    assert_eq!(
        summarize_lanes(&read_lanes_of_object_a(&fixture).await),
        [("index", first_task_id_of_event(&events, 3), 0)]
    );
    assert_eq!(fixture.undefine_handler_and_rescue("index").await, 1);
    assert_eq!(read_lanes_of_object_a(&fixture).await, [], "it is missing");
    fixture.register(RegistrationBuilder::single_handler()).await;
    assert_eq!(fixture.adopt_missing_tasks("index").await, 1);
    assert_eq!(
        summarize_lanes(&read_lanes_of_object_a(&fixture).await),
        [("index", first_task_id_of_event(&events, 3), 0)]
    );
    fixture.run_all_ready_tasks().await;
    assert_eq!(read_lanes_of_object_a(&fixture).await, []);
}

/// A task that runs out of order is behind tasks that were created after it.
pub async fn lane_heads_follow_lane_position_not_task_age(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    fixture.retry_task(first_task_id_of_event(&events, 0)).await.expect("the task has failed permanently");
    assert_eq!(
        summarize_lanes(&read_lanes_of_object_a(&fixture).await),
        [("index", first_task_id_of_event(&events, 1), 2)]
    );
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.succeed(&fixture.claim_one().await).await;
    assert_eq!(
        summarize_lanes(&read_lanes_of_object_a(&fixture).await),
        [("index", first_task_id_of_event(&events, 0), 0)]
    );
}

pub async fn each_tenant_has_its_own_lanes(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let ours = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let theirs = fixture.emit_copies(3, new_event("record").with_key("a").for_tenant("shop")).await;
    let shop = async |fixture: &StoreFixture<'_>| read_object(fixture, "shop", "a").await.lanes;
    assert_eq!(
        summarize_lanes(&read_lanes_of_object_a(&fixture).await),
        [("index", first_task_id_of_event(&ours, 0), 1)]
    );
    assert_eq!(summarize_lanes(&shop(&fixture).await), [("index", first_task_id_of_event(&theirs, 0), 2)]);
    for id in [first_task_id_of_event(&ours, 0), first_task_id_of_event(&ours, 1)] {
        fixture.cancel_task(id).await.expect("it waits");
    }
    assert_eq!(read_lanes_of_object_a(&fixture).await, []);
    let lane = shop(&fixture).await.remove(0);
    assert_eq!((lane.task_count_behind_head, lane.head.tenant), (2, tenant("shop")));
}

pub async fn tasks_without_a_lane_are_not_listed(harness: &dyn Harness) {
    let two_at_a_time = Limits { concurrency_per_key: Some(2), ..Limits::default() };
    let registration = RegistrationBuilder::default()
        .route("record", &["free", "per_key", "index"])
        .route("note", &["free", "per_key"])
        .unordered("free")
        .unordered("per_key")
        .limits("per_key", two_at_a_time)
        .collection("shop/orders", 100);
    let fixture = StoreFixture::new(harness, registration).await;
    fixture.emit_copies(5, new_event("note").with_key("a")).await;
    fixture.emit_copies(5, new_event("record")).await;
    fixture.request_collection_run("shop/orders").await;
    assert_eq!(read_lanes_of_object_a(&fixture).await, []);
    let ordered = fixture.emit(new_event("record").with_key("a")).await;
    assert_eq!(summarize_lanes(&read_lanes_of_object_a(&fixture).await), [("index", &ordered.tasks[2], 0)]);
    fixture.run_all_ready_tasks().await;
    assert_eq!(read_lanes_of_object_a(&fixture).await, []);
}

/// Tasks already in a lane keep it when their handler becomes unordered, until they have run.
pub async fn existing_lanes_are_listed_after_a_handler_becomes_unordered(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    fixture.register(RegistrationBuilder::single_handler().unordered("index")).await;
    fixture.emit(new_event("record").with_key("a")).await;
    assert_eq!(
        summarize_lanes(&read_lanes_of_object_a(&fixture).await),
        [("index", first_task_id_of_event(&events, 0), 1)]
    );
}

pub async fn waiting_tasks_of_a_long_lane_are_counted_up_to_a_limit(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().route("note", &["later"])).await;
    let mut events = Vec::new();
    while events.len() < MAX_COUNTED_TASKS_BEHIND_HEAD as usize + 2 {
        let remaining = MAX_COUNTED_TASKS_BEHIND_HEAD as usize + 2 - events.len();
        events.extend(fixture.emit_copies(remaining.min(2_500), new_event("record").with_key("a")).await);
    }
    let note = fixture.emit(new_event("note").with_key("a")).await;
    let want = [
        ("index", first_task_id_of_event(&events, 0), MAX_COUNTED_TASKS_BEHIND_HEAD),
        ("later", &note.tasks[0], 0),
    ];
    let long = read_lanes_of_object_a(&fixture).await;
    assert_eq!(
        (summarize_lanes(&long), long[0].has_more_behind_head, long[1].has_more_behind_head),
        (want.to_vec(), true, false)
    );
    fixture.cancel_task(first_task_id_of_event(&events, 7)).await.expect("it waits");
    let exact = read_lanes_of_object_a(&fixture).await;
    assert_eq!((summarize_lanes(&exact), exact[0].has_more_behind_head), (want.to_vec(), false));
}

pub async fn at_most_a_fixed_number_of_lanes_is_listed(harness: &dyn Harness) {
    let names: Vec<String> = (0..=MAX_LISTED_LANES).map(|n| format!("h{n:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fixture = StoreFixture::new(harness, RegistrationBuilder::default().route("record", &names)).await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let view = read_object(&fixture, "default", "a").await;
    assert_eq!((view.lanes.len(), view.has_more_lanes), (MAX_LISTED_LANES, true));
    assert!(
        view.lanes
            .iter()
            .all(|lane| lane.task_count_behind_head == 1 && events[0].tasks.contains(&lane.head.id))
    );
    let handlers: Vec<_> = view.lanes.iter().map(|lane| lane.head.handler.as_str()).collect();
    assert_strictly_ascending(&handlers);
    for id in [first_task_id_of_event(&events, 0), first_task_id_of_event(&events, 1)] {
        fixture.cancel_task(id).await.expect("it waits");
    }
    let view = read_object(&fixture, "default", "a").await;
    assert_eq!((view.lanes.len(), view.has_more_lanes), (MAX_LISTED_LANES, false));
}
