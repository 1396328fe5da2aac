//! Orders that nobody adds: events make them by their routes, schedules at their planned times.

use pointsman_core::Timestamp;
use pointsman_core::fire::{Outcome, Overlap, Skipped};
use pointsman_core::journal::Retention;
use pointsman_core::store::Ending;

use crate::Harness;
use crate::fixture::*;

fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .chain("/x/y", "a=first>b b=second>done done")
        .chain("/x/z", "a=first>done done")
        .orders("record", "/x/y")
}

fn keys(world: &[pointsman_core::store::OrderView]) -> Vec<String> {
    world.iter().map(|view| view.order.key.to_string()).collect()
}

pub async fn an_event_creates_an_order(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let made = world.emit(new_event("record").key("k").value("[1]").tenant("shop").priority(7)).await;
    let key = format!("/x/y,{}", made.id);
    let view = world.find_of("shop", &key).await.expect("it is on its way");
    assert_eq!((view.order.value.as_str(), view.order.node.as_str()), ("[1]", "a"));
    assert_eq!((view.order.tenant.as_str(), view.order.priority.get()), ("shop", 7));
    let told: Vec<_> = world.read_after(made.id, &Default::default()).await;
    assert_eq!((told.len(), summarize_event(&told[0]).as_str()), (1, "FileBasedAdded nodeId:a"));
    let task = world.claim_one().await;
    assert_eq!((task.step().order.to_string(), task.step().value.as_str()), (key.clone(), "[1]"));
    world.succeed(&task).await;
    world.run_all().await;
    assert!(world.find_of("shop", &key).await.is_none());
    assert_eq!(world.emit(new_event("note")).await.tasks.len(), 0);
    assert!(world.orders_at("/").await.is_empty(), "others make none");
}

/// Beside the tasks of its handlers.
pub async fn an_event_can_create_tasks_and_an_order(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan().on("record", &["index"])).await;
    let made = world.emit(new_event("record").key("k")).await;
    assert_eq!(world.orders_at("/").await.len(), 1);
    let mut handlers: Vec<_> = world.claim(10).await.iter().map(|task| task.handler.to_string()).collect();
    handlers.sort();
    assert_eq!(handlers, ["first", "index"]);
    let own: Vec<_> = made.tasks.iter().filter(|id| id.as_str().starts_with("index_record_")).collect();
    assert_eq!(own.len(), 1);
}

pub async fn parent_routes_create_orders(harness: &dyn Harness) {
    let plan = plan().orders("record.published", "/x/y").orders("record.published", "/x/z");
    let world = StoreFixture::new(harness, plan).await;
    let made = world.emit(new_event("record.published.twice")).await;
    let want = [format!("/x/y,{}", made.id), format!("/x/z,{}", made.id)];
    assert_eq!(keys(&world.orders_at("/").await), want, "one for each chain");
    world.emit(new_event("records")).await;
    assert_eq!(world.orders_at("/").await.len(), 2);
}

pub async fn a_repeated_emission_creates_no_second_order(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    for _ in 0..2 {
        world
            .append(vec![keyed_emission("default", "once", 1, [new_event("record"), new_event("record")])])
            .await;
    }
    assert_eq!(world.orders_at("/").await.len(), 2);
    world.run_all().await;
    world
        .append(vec![keyed_emission("default", "once", 1, [new_event("record"), new_event("record")])])
        .await;
    assert!(world.orders_at("/").await.is_empty(), "nor when the first is gone");
}

pub async fn events_emitted_by_tasks_create_orders(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan().on("note", &["index"])).await;
    world.emit(new_event("note")).await;
    let task = world.claim_one().await;
    let emits = vec![new_event("record").caused_by(&task).value("1"), new_event("record").value("2")];
    let finished = world.end(Ending { emits, ..attempt_ending(&task, success()) }).await.expect("ours");
    for (emitted, value) in finished.emitted.iter().zip(["1", "2"]) {
        assert_eq!(world.look(&format!("/x/y,{}", emitted.id)).await.order.value.as_str(), value);
    }
}

pub async fn an_append_can_claim_the_first_step(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let emission = emission([new_event("record").value("5")]);
    let (_, claims) = expect_ok(world.store.append(vec![emission], Some(world.asking(5)), world.now).await);
    assert_eq!(claims.tasks.len(), 1);
    assert_eq!(claims.tasks[0].step().value.as_str(), "5");
    let key = claims.tasks[0].step().order.to_string();
    assert_eq!(
        world.told_after(world.extent().await.forgotten).await,
        [
            "FileBasedAdded nodeId:a",
            "OrderStarted nodeId:a,taskId:first_a",
            "OrderStepStarted nodeId:a,taskId:first_a"
        ]
    );
    assert!(world.look(&key).await.order.running);
}

/// The order has what it needs: its event may be forgotten.
pub async fn an_order_outlives_its_event(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let made = world.emit(new_event("record").value("[1]")).await;
    world.tick(1000);
    world.prune(Retention { count: 0, age: secs(1) }, Retention { count: 0, age: secs(1) }).await;
    assert!(expect_ok(world.store.event(made.id).await).is_none());
    let world = world.reopen().await;
    assert_eq!(world.claim_one().await.step().value.as_str(), "[1]");
}

pub async fn routes_to_chains_follow_their_registration(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    world.emit(new_event("record")).await;
    let world = {
        world.register(plan().without_chain("/x/y")).await;
        world.emit(new_event("record")).await;
        assert_eq!(world.orders_at("/").await.len(), 1, "there is no such chain now");
        world.register(plan()).await;
        world.reopen().await
    };
    world.emit(new_event("record")).await;
    assert_eq!(world.orders_at("/").await.len(), 2);
}

/// A world whose one schedule `nightly` is set up, and a planned time that has just come.
async fn nightly(harness: &dyn Harness) -> (StoreFixture<'_>, Timestamp) {
    let mut world = StoreFixture::new(harness, plan()).await;
    world.standing("nightly").await;
    world.tick(100);
    let planned = world.now;
    (world, planned)
}

pub async fn a_firing_creates_its_order(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let order = new_order("/x/y,night").holding("[1]").starting("b").ranking(9);
    let (fire, written) = world.settle(FiringBuilder::order(order).at("nightly", planned)).await;
    assert_eq!((fire.outcome, fire.planned, written), (Outcome::Fired, planned, true));
    let told = world.own_after(world.extent().await.forgotten).await;
    assert_eq!(told.iter().map(|event| Some(event.id)).collect::<Vec<_>>(), [fire.event]);
    assert_eq!(summarize_event(&told[0]), "FileBasedAdded nodeId:b");
    let view = world.look("/x/y,night").await;
    assert_eq!((view.order.value.as_str(), view.order.priority.get()), ("[1]", 9));
    assert_eq!(describe_steps(&world.claim(10).await), ["/x/y,night b"]);
    assert_eq!(world.standing("nightly").await.settled, planned);
    assert_eq!(world.fires("nightly").await, [fire]);
}

pub async fn a_firing_without_an_order_id_gets_a_generated_one(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    for seconds in 0..3 {
        let firing = FiringBuilder::order(new_order("/x/y")).at("nightly", planned.plus(secs(seconds)));
        assert_eq!(world.settle(firing).await.0.outcome, Outcome::Fired);
    }
    assert_eq!(world.orders_at("/x/y").await.len(), 3);
}

pub async fn a_resolved_time_creates_no_second_order(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let firing = || FiringBuilder::order(new_order("/x/y")).at("nightly", planned);
    let answers = world.settle_all(vec![firing(), firing()]).await;
    assert_eq!((answers[0].1, answers[1].1), (true, false));
    let world = world.reopen().await;
    assert_eq!(world.settle(firing()).await, (answers[0].0.clone(), false));
    assert_eq!(world.orders_at("/").await.len(), 1);
}

pub async fn a_firing_for_an_unknown_chain_is_skipped(harness: &dyn Harness) {
    let (mut world, planned) = nightly(harness).await;
    world.register(plan().without_chain("/x/z")).await;
    let since = world.head().await;
    let (fire, written) =
        world.settle(FiringBuilder::order(new_order("/x/z,1")).at("nightly", planned)).await;
    assert_eq!((fire.outcome, fire.event, written), (Outcome::Skipped(Skipped::Gone), None, true));
    assert_eq!(world.head().await, since);
    assert!(world.orders_at("/").await.is_empty());
}

pub async fn an_unfinished_order_causes_a_skip(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    let firing = |seconds, overlap| {
        let fires = FiringBuilder::order(new_order("/x/y,night").holding("[1]")).overlap(overlap);
        fires.at("nightly", planned.plus(secs(seconds)))
    };
    assert_eq!(world.settle(firing(0, Overlap::Skip)).await.0.outcome, Outcome::Fired);
    for (seconds, overlap) in [(1, Overlap::Skip), (2, Overlap::Queue)] {
        let (fire, written) = world.settle(firing(seconds, overlap)).await;
        assert_eq!((fire.outcome, written), (Outcome::Skipped(Skipped::Overlap), true), "{overlap:?}");
        assert_eq!(fire.event, None);
    }
    assert_eq!(world.orders_at("/").await.len(), 1);
    world.run_all().await;
    assert_eq!(world.settle(firing(3, Overlap::Skip)).await.0.outcome, Outcome::Fired, "it has arrived");
}

pub async fn a_paused_schedule_creates_no_order(harness: &dyn Harness) {
    let (world, planned) = nightly(harness).await;
    world.pause("@nightly").await;
    let firing = |seconds| FiringBuilder::order(new_order("/x/y")).at("nightly", planned.plus(secs(seconds)));
    assert_eq!(world.settle(firing(0)).await.0.outcome, Outcome::Skipped(Skipped::Held));
    world.resume("@nightly").await;
    world.pause("/x/y").await;
    assert_eq!(world.settle(firing(1)).await.0.outcome, Outcome::Fired, "a chain's rule holds steps alone");
    world.nothing_begins("the chain is paused").await;
    assert_eq!(world.orders_at("/").await.len(), 1);
}

/// An event for later makes an order for later.
pub async fn a_delayed_event_creates_a_planned_order(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    let due = world.later(60);
    let made = world.emit(new_event("record").due(due)).await;
    assert_eq!(world.look(&format!("/x/y,{}", made.id)).await.order.planned, Some(due));
    world.nothing_begins("its time has not come").await;
    world.tick(60);
    assert_eq!(world.claim(10).await.len(), 1);
}
