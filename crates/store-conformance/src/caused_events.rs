//! The events that an event caused, directly and indirectly. Expired ones are left out.

use pointsman_core::journal::Retention;
use pointsman_core::order::OrderOrigin;
use pointsman_core::store::{ClaimedTask, FinishedAttempt, MAX_CAUSED_EVENTS};
use pointsman_core::{EventId, NewEvent};

use crate::Harness;
use crate::fixture::*;

/// Each of three event types has its own handlers.
fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .route("one", &["first", "also-first"])
        .route("two", &["second"])
        .route("three", &["third"])
}

async fn read_caused_event_ids(fixture: &StoreFixture<'_>, id: EventId) -> Vec<EventId> {
    let view = expect_ok(fixture.store.read_event(id).await).expect("the event has not expired");
    view.caused_events.iter().map(|event| event.id).collect()
}

/// Finishes a task successfully with these emitted events, each with the task as its cause. Returns their ids.
async fn succeed_and_emit(
    fixture: &StoreFixture<'_>,
    task: &ClaimedTask,
    emits: Vec<NewEvent>,
) -> Vec<EventId> {
    let emits = emits.into_iter().map(|event| event.caused_by(task)).collect();
    let finished = fixture
        .finish_attempt(FinishedAttempt { emitted_events: emits, ..finished_attempt(task, success()) })
        .await
        .expect("the fence is current");
    event_ids_of_receipts(&finished.emitted_events)
}

pub async fn an_event_view_includes_all_events_it_caused(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let root = fixture.emit(new_event("one")).await.id;
    let unrelated = fixture.emit(new_event("one")).await.id;
    assert_eq!(read_caused_event_ids(&fixture, root).await, []);
    let mut of_root = Vec::new();
    for name in ["first", "also-first"] {
        let task = fixture.claim_one_for_handler(name).await;
        assert_eq!(task.event().id, root);
        of_root.extend(succeed_and_emit(&fixture, &task, vec![new_event("two"), new_event("leaf")]).await);
    }
    assert_eq!(read_caused_event_ids(&fixture, root).await, of_root, "by all of its tasks");
    let mut deeper = Vec::new();
    for _ in 0..2 {
        let task = fixture.claim_one_for_handler("second").await;
        deeper.extend(succeed_and_emit(&fixture, &task, vec![new_event("three")]).await);
    }
    let deepest =
        succeed_and_emit(&fixture, &fixture.claim_one_for_handler("third").await, vec![new_event("leaf")])
            .await;
    let whole = [of_root.clone(), deeper.clone(), deepest.clone()].concat();
    assert_eq!(read_caused_event_ids(&fixture, root).await, whole, "the nearer events first");
    assert_eq!(read_caused_event_ids(&fixture, of_root[0]).await, [deeper[0], deepest[0]]);
    assert_eq!(read_caused_event_ids(&fixture, deepest[0]).await, []);
    assert_eq!(read_caused_event_ids(&fixture, unrelated).await, []);
    let fixture = fixture.reopen().await;
    assert_eq!(read_caused_event_ids(&fixture, root).await, whole, "after a restart");
}

/// A client can build the tree of events from their causes.
pub async fn every_caused_event_names_its_cause(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let root = fixture.emit(new_event("one")).await.id;
    let task = fixture.claim_one_for_handler("first").await;
    let child = succeed_and_emit(&fixture, &task, vec![new_event("two").with_value("[1]")]).await[0];
    let below = fixture.claim_one_for_handler("second").await;
    let grandchild = succeed_and_emit(&fixture, &below, vec![new_event("leaf")]).await[0];
    let view = expect_ok(fixture.store.read_event(root).await).expect("the event has not expired");
    let causes: Vec<_> = view
        .caused_events
        .iter()
        .filter_map(|event| event.cause)
        .map(|cause| (cause.event, cause.task))
        .collect();
    assert_eq!(causes, [(Some(root), task.seq), (Some(child), below.seq)]);
    assert_eq!((view.caused_events[0].value.as_str(), view.caused_events[1].id), ("[1]", grandchild));
    assert_eq!(view.journal_range, fixture.read_journal_range().await);
}

/// Events that a task emits while it runs are caused by the event of the task, as are those that commit with its end.
pub async fn events_emitted_while_a_task_runs_are_caused_by_its_event(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let root = fixture.emit(new_event("one")).await.id;
    let task = fixture.claim_one_for_handler("first").await;
    let emitted_while_running = fixture.emit(new_event("leaf").caused_by(&task)).await.id;
    let emitted_at_end = succeed_and_emit(&fixture, &task, vec![new_event("leaf")]).await;
    assert_eq!(read_caused_event_ids(&fixture, root).await, [emitted_while_running, emitted_at_end[0]]);
}

pub async fn an_event_view_lists_a_limited_number_of_caused_events(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let root = fixture.emit(new_event("one")).await.id;
    let near =
        succeed_and_emit(&fixture, &fixture.claim_one_for_handler("first").await, vec![new_event("two"); 20])
            .await;
    let task = fixture.claim_one_for_handler("second").await;
    succeed_and_emit(&fixture, &task, vec![new_event("leaf"); MAX_CAUSED_EVENTS + 100]).await;
    let shown = read_caused_event_ids(&fixture, root).await;
    assert_eq!(shown.len(), MAX_CAUSED_EVENTS);
    assert_eq!(shown[..20], near, "the nearer events first");
    assert_eq!(read_caused_event_ids(&fixture, task.event().id).await.len(), MAX_CAUSED_EVENTS);
}

pub async fn expired_events_cannot_be_read_but_are_still_named_as_causes(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let root = fixture.emit(new_event("one")).await.id;
    let child =
        succeed_and_emit(&fixture, &fixture.claim_one_for_handler("first").await, vec![new_event("two")])
            .await[0];
    fixture.advance_clock(100);
    let task = fixture.claim_one_for_handler("second").await;
    let grandchild = succeed_and_emit(&fixture, &task, vec![new_event("leaf")]).await[0];
    fixture.prune_events_and_tasks(Retention { max_count: 0, max_age: secs(50) }, KEEP_EVERYTHING).await;
    assert!(expect_ok(fixture.store.read_event(root).await).is_none());
    let view = expect_ok(fixture.store.read_event(grandchild).await).expect("the event has not expired");
    assert_eq!(
        view.event.cause.and_then(|cause| cause.event),
        Some(child),
        "the event still names its cause"
    );
    assert!(view.caused_events.is_empty());
}

/// An order that no event created has no cause event, so the events its steps emit have none either.
pub async fn events_emitted_by_steps_of_a_manually_added_order_have_no_cause_event(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().chain("/x/y", "a=step>done done")).await;
    fixture.add_order(new_order("/x/y,1")).await;
    let task = fixture.claim_one().await;
    assert_eq!((task.subject.cause_event(), task.subject.cause_depth()), (None, 0));
    let emitted = succeed_and_emit(&fixture, &task, vec![new_event("one")]).await[0];
    let view = expect_ok(fixture.store.read_event(emitted).await).expect("the event has not expired");
    let cause = view.event.cause.expect("a task emitted it");
    assert_eq!((cause.event, cause.task, cause.depth), (None, task.seq, 1));
    let below =
        succeed_and_emit(&fixture, &fixture.claim_one_for_handler("first").await, vec![new_event("leaf")])
            .await;
    assert_eq!(read_caused_event_ids(&fixture, emitted).await, below);
}

/// The event that created an order is the cause of all events its steps emit, also after a restart and after that
/// event has expired.
pub async fn step_events_are_caused_by_the_event_that_created_the_order(harness: &dyn Harness) {
    let registration =
        base_registration().chain("/x/y", "a=step>b b=step>c c=step>done done").chain_route("start", "/x/y");
    let fixture = StoreFixture::new(harness, registration).await;
    let root = fixture.emit(new_event("start")).await.id;
    let mut emitted =
        succeed_and_emit(&fixture, &fixture.claim_one().await, vec![new_event("leaf"), new_event("one")])
            .await;
    let mut fixture = fixture.reopen().await;
    let task = fixture.claim_one_for_handler("step").await;
    assert_eq!((task.subject.cause_event(), task.subject.cause_depth()), (Some(root), 0));
    emitted.extend(succeed_and_emit(&fixture, &task, vec![new_event("leaf")]).await);
    assert_eq!(read_caused_event_ids(&fixture, root).await, emitted);
    let below =
        succeed_and_emit(&fixture, &fixture.claim_one_for_handler("first").await, vec![new_event("leaf")])
            .await;
    assert_eq!(
        read_caused_event_ids(&fixture, root).await,
        [emitted, below].concat(),
        "and indirectly caused events"
    );
    fixture.advance_clock(100);
    fixture.prune_events_and_tasks(Retention { max_count: 0, max_age: secs(50) }, KEEP_EVERYTHING).await;
    assert!(expect_ok(fixture.store.read_event(root).await).is_none());
    assert_eq!(
        fixture.claim_one_for_handler("step").await.subject.cause_event(),
        Some(root),
        "the order keeps its cause"
    );
}

/// An event creates an order whose step emits the next event: the depth grows by one each time, which makes a cycle
/// detectable.
pub async fn cause_depth_increases_through_orders(harness: &dyn Harness) {
    let registration = base_registration().chain("/x/y", "a=step>done done").chain_route("round", "/x/y");
    let fixture = StoreFixture::new(harness, registration).await;
    let mut last = fixture.emit(new_event("round")).await.id;
    for depth in 0..5 {
        let task = fixture.claim_one().await;
        assert_eq!((task.subject.cause_event(), task.subject.cause_depth()), (Some(last), depth));
        let view = expect_ok(fixture.store.read_order(&tenant("default"), &task.step_run().order_key).await)
            .expect("the order is unfinished")
            .0;
        assert_eq!(view.order.origin, Some(OrderOrigin { event_id: last, cause_depth: depth }));
        last = succeed_and_emit(&fixture, &task, vec![new_event("round")]).await[0];
        let emitted =
            expect_ok(fixture.store.read_event(last).await).expect("the event has not expired").event;
        assert_eq!(emitted.cause_depth(), depth + 1);
    }
}
