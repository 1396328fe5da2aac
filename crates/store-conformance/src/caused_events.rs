//! What an event caused, and what that caused, as far as it is remembered.

use pointsman_core::journal::Retention;
use pointsman_core::order::Origin;
use pointsman_core::store::{Claimed, Ending, MOST_CAUSED};
use pointsman_core::{EventId, NewEvent};

use crate::Harness;
use crate::fixture::*;

/// Every type has a handler of its own.
fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .route("one", &["first", "also-first"])
        .route("two", &["second"])
        .route("three", &["third"])
}

async fn caused(world: &StoreFixture<'_>, id: EventId) -> Vec<EventId> {
    let view = expect_ok(world.store.event(id).await).expect("it is remembered");
    view.caused.iter().map(|event| event.id).collect()
}

/// Ends a task well with these emits, each of which names it as its cause.
async fn emitting(world: &StoreFixture<'_>, task: &Claimed, emits: Vec<NewEvent>) -> Vec<EventId> {
    let emits = emits.into_iter().map(|event| event.caused_by(task)).collect();
    let finished =
        world.finish_attempt(Ending { emits, ..attempt_ending(task, success()) }).await.expect("ours");
    sequenced_ids(&finished.emitted)
}

pub async fn an_event_view_includes_all_events_it_caused(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let root = world.emit(new_event("one")).await.id;
    let unrelated = world.emit(new_event("one")).await.id;
    assert_eq!(caused(&world, root).await, []);
    let mut of_root = Vec::new();
    for name in ["first", "also-first"] {
        let task = world.claim_one_for_handler(name).await;
        assert_eq!(task.event().id, root);
        of_root.extend(emitting(&world, &task, vec![new_event("two"), new_event("leaf")]).await);
    }
    assert_eq!(caused(&world, root).await, of_root, "by all of its tasks");
    let mut deeper = Vec::new();
    for _ in 0..2 {
        let task = world.claim_one_for_handler("second").await;
        deeper.extend(emitting(&world, &task, vec![new_event("three")]).await);
    }
    let deepest =
        emitting(&world, &world.claim_one_for_handler("third").await, vec![new_event("leaf")]).await;
    let whole = [of_root.clone(), deeper.clone(), deepest.clone()].concat();
    assert_eq!(caused(&world, root).await, whole, "the nearer first");
    assert_eq!(caused(&world, of_root[0]).await, [deeper[0], deepest[0]]);
    assert_eq!(caused(&world, deepest[0]).await, []);
    assert_eq!(caused(&world, unrelated).await, []);
    let world = world.reopen().await;
    assert_eq!(caused(&world, root).await, whole, "after a restart");
}

/// From which whoever reads can build the tree.
pub async fn every_caused_event_names_its_cause(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let root = world.emit(new_event("one")).await.id;
    let task = world.claim_one_for_handler("first").await;
    let child = emitting(&world, &task, vec![new_event("two").with_value("[1]")]).await[0];
    let below = world.claim_one_for_handler("second").await;
    let grandchild = emitting(&world, &below, vec![new_event("leaf")]).await[0];
    let view = expect_ok(world.store.event(root).await).expect("it is remembered");
    let causes: Vec<_> =
        view.caused.iter().filter_map(|event| event.cause).map(|cause| (cause.event, cause.task)).collect();
    assert_eq!(causes, [(Some(root), task.seq), (Some(child), below.seq)]);
    assert_eq!((view.caused[0].value.as_str(), view.caused[1].id), ("[1]", grandchild));
    assert_eq!(view.extent, world.journal_extent().await);
}

/// A task may also emit while it runs.
pub async fn events_emitted_while_a_task_runs_name_it_as_cause(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let root = world.emit(new_event("one")).await.id;
    let task = world.claim_one_for_handler("first").await;
    let meanwhile = world.emit(new_event("leaf").caused_by(&task)).await.id;
    let ended = emitting(&world, &task, vec![new_event("leaf")]).await;
    assert_eq!(caused(&world, root).await, [meanwhile, ended[0]]);
}

pub async fn the_number_of_caused_events_shown_is_limited(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let root = world.emit(new_event("one")).await.id;
    let near =
        emitting(&world, &world.claim_one_for_handler("first").await, vec![new_event("two"); 20]).await;
    let task = world.claim_one_for_handler("second").await;
    emitting(&world, &task, vec![new_event("leaf"); MOST_CAUSED + 100]).await;
    let shown = caused(&world, root).await;
    assert_eq!(shown.len(), MOST_CAUSED);
    assert_eq!(shown[..20], near, "the nearer first");
    assert_eq!(caused(&world, task.event().id).await.len(), MOST_CAUSED);
}

pub async fn expired_events_are_not_shown_as_causes(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let root = world.emit(new_event("one")).await.id;
    let child =
        emitting(&world, &world.claim_one_for_handler("first").await, vec![new_event("two")]).await[0];
    world.advance_clock(100);
    let task = world.claim_one_for_handler("second").await;
    let grandchild = emitting(&world, &task, vec![new_event("leaf")]).await[0];
    world.prune(Retention { count: 0, age: secs(50) }, KEEP_EVERYTHING).await;
    assert!(expect_ok(world.store.event(root).await).is_none());
    let seen = expect_ok(world.store.event(grandchild).await).expect("it is young");
    assert_eq!(seen.event.cause.and_then(|cause| cause.event), Some(child), "it still names its cause");
    assert!(seen.caused.is_empty());
}

/// Nothing lies above what a step emits if no event made its order.
pub async fn events_emitted_by_a_manually_added_order_have_no_cause_event(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan().chain("/x/y", "a=step>done done")).await;
    world.add_order(new_order("/x/y,1")).await;
    let task = world.claim_one().await;
    assert_eq!((task.subject.cause(), task.subject.depth()), (None, 0));
    let emitted = emitting(&world, &task, vec![new_event("one")]).await[0];
    let view = expect_ok(world.store.event(emitted).await).expect("it is remembered");
    let cause = view.event.cause.expect("a task emitted it");
    assert_eq!((cause.event, cause.task, cause.depth), (None, task.seq, 1));
    let below = emitting(&world, &world.claim_one_for_handler("first").await, vec![new_event("leaf")]).await;
    assert_eq!(caused(&world, emitted).await, below);
}

/// What each step of an order emits was caused by the event that made the order, also after a restart, and when the
/// journal has forgotten the event.
pub async fn events_emitted_by_a_step_are_caused_by_the_orders_event(harness: &dyn Harness) {
    let plan = plan().chain("/x/y", "a=step>b b=step>c c=step>done done").chain_route("start", "/x/y");
    let world = StoreFixture::new(harness, plan).await;
    let root = world.emit(new_event("start")).await.id;
    let mut emitted =
        emitting(&world, &world.claim_one().await, vec![new_event("leaf"), new_event("one")]).await;
    let mut world = world.reopen().await;
    let task = world.claim_one_for_handler("step").await;
    assert_eq!((task.subject.cause(), task.subject.depth()), (Some(root), 0));
    emitted.extend(emitting(&world, &task, vec![new_event("leaf")]).await);
    assert_eq!(caused(&world, root).await, emitted);
    let below = emitting(&world, &world.claim_one_for_handler("first").await, vec![new_event("leaf")]).await;
    assert_eq!(caused(&world, root).await, [emitted, below].concat(), "and what that caused");
    world.advance_clock(100);
    world.prune(Retention { count: 0, age: secs(50) }, KEEP_EVERYTHING).await;
    assert!(expect_ok(world.store.event(root).await).is_none());
    assert_eq!(
        world.claim_one_for_handler("step").await.subject.cause(),
        Some(root),
        "the order still knows"
    );
}

/// An event makes an order whose step emits the next event: each lies one deeper, so that a circle is seen to be one.
pub async fn causation_depth_increases_through_orders(harness: &dyn Harness) {
    let plan = plan().chain("/x/y", "a=step>done done").chain_route("round", "/x/y");
    let world = StoreFixture::new(harness, plan).await;
    let mut last = world.emit(new_event("round")).await.id;
    for depth in 0..5 {
        let task = world.claim_one().await;
        assert_eq!((task.subject.cause(), task.subject.depth()), (Some(last), depth));
        let view = expect_ok(world.store.order(&tenant("default"), &task.step().order).await)
            .expect("it is on its way")
            .0;
        assert_eq!(view.order.origin, Some(Origin { event: last, depth }));
        last = emitting(&world, &task, vec![new_event("round")]).await[0];
        let made = expect_ok(world.store.event(last).await).expect("it is remembered").event;
        assert_eq!(made.depth(), depth + 1);
    }
}
