//! How many of one object's tasks run at a time, where they keep no order.

use pointsman_core::Limits;
use pointsman_core::store::Claimed;

use crate::Harness;
use crate::fixture::*;

fn plan(most: u32) -> RegistrationBuilder {
    let limits = Limits { concurrency_per_key: Some(most), ..Limits::default() };
    RegistrationBuilder::single_handler().unordered("index").limits("index", limits)
}

/// How many tasks of this object are among them.
fn of(tasks: &[Claimed], name: &str) -> usize {
    tasks.iter().filter(|task| task.event().key.as_ref().is_some_and(|key| key.as_str() == name)).count()
}

pub async fn running_tasks_of_an_object_never_exceed_the_per_key_limit(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(2)).await;
    for key in ["a", "b"] {
        world.emit_many(5, new_event("record").with_key(key)).await;
    }
    world.emit_many(3, new_event("record")).await;
    let claims = world.claim_outcome(100).await;
    let held = claims.tasks;
    assert_eq!((of(&held, "a"), of(&held, "b"), held.len(), claims.more), (2, 2, 7, false));
    let a = held.iter().find(|task| of(std::slice::from_ref(task), "a") == 1).expect("one of them");
    world.succeed(a).await;
    let next = world.claim(100).await;
    assert_eq!((of(&next, "a"), next.len()), (1, 1), "one ended, one begins");
}

pub async fn all_tasks_of_limited_keys_run_eventually(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(2)).await;
    let mut events = Vec::new();
    for n in 0..30 {
        events.push(world.emit(new_event("record").with_key(["a", "b", "c"][n % 3])).await);
    }
    world.schedule_ahead(10).await;
    let (mut ran, mut held) = (Vec::new(), world.claim(100).await);
    while let Some(task) = held.pop() {
        world.succeed(&task).await;
        ran.push(task.event().id);
        held.extend(world.claim(100).await);
        for key in ["a", "b", "c"] {
            assert!(of(&held, key) <= 2, "{key}");
        }
    }
    ran.sort();
    assert_eq!(ran, sequenced_ids(&events));
}

pub async fn a_backlog_of_one_object_does_not_delay_another(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(1)).await;
    world.emit_many(500, new_event("record").with_key("a")).await;
    world.claim(1).await;
    world.emit_many(1, new_event("record").with_key("b")).await;
    let claims = world.claim_outcome(1).await;
    assert_eq!((of(&claims.tasks, "b"), claims.more), (1, false));
}

pub async fn the_per_key_limit_counts_each_tenant_separately(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(1)).await;
    for name in ["default", "shop"] {
        world.emit_many(2, new_event("record").with_key("a").for_tenant(name)).await;
    }
    assert_eq!(world.claim(10).await.len(), 2);
}

/// A task that waits for its time gives up its place, and stands in line again when the time has come.
pub async fn delayed_tasks_use_no_per_key_slot(harness: &dyn Harness) {
    for snooze in [false, true] {
        let mut world = StoreFixture::new(harness, plan(2)).await;
        world.emit_many(5, new_event("record").with_key("a")).await;
        world.emit(new_event("record").with_key("a").due_at(world.seconds_from_now(RETRY_DELAY_SECS))).await;
        for task in world.claim(10).await {
            match snooze {
                true => drop(world.snooze(&task, RETRY_DELAY_SECS).await),
                false => drop(world.fail(&task).await),
            }
        }
        let held = world.claim(10).await;
        assert_eq!(held.len(), 2, "two others");
        assert!(held.iter().all(|task| task.attempt == 1));
        world.advance_clock(RETRY_DELAY_SECS);
        assert!(world.claim(10).await.is_empty(), "the places are taken");
        for task in &held {
            world.succeed(task).await;
        }
        assert_eq!(world.claim(10).await.len(), 2);
        assert!(world.claim(10).await.is_empty());
    }
}

pub async fn every_attempt_end_frees_a_per_key_slot(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan(1)).await;
    world.emit_many(5, new_event("record").with_key("a")).await;
    let task = world.claim_one().await;
    assert_eq!(world.cancel_task(&task.id).await, Ok(()));
    let task = world.claim_one().await;
    world.fail_permanently(&task).await;
    world.schedule_ahead(5).await;
    let task = world.claim_one().await;
    world.release_task(&task).await;
    world.claim_one().await;
    assert!(world.claim(10).await.is_empty());
    world.advance_clock(LEASE_SECS + 1);
    world.node = expect_ok(world.store.join("heir", world.now).await);
    world.rescue_tasks().await;
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn per_key_slots_survive_a_restart(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(2)).await;
    world.emit_many(5, new_event("record").with_key("a")).await;
    let held = world.claim_one().await;
    let world = world.reopen().await;
    assert_eq!(world.claim(10).await.len(), 1);
    world.succeed(&held).await;
    let world = world.reopen().await;
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn the_per_key_limit_changes_with_the_registration(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan(1)).await;
    world.emit_many(10, new_event("record").with_key("a")).await;
    let mut held = world.claim(10).await;
    world.register(plan(4)).await;
    held.extend(world.claim(10).await);
    assert_eq!(held.len(), 4, "wider");
    world.register(plan(2)).await;
    for task in held.drain(..2) {
        world.succeed(&task).await;
        assert!(world.claim(10).await.is_empty(), "narrower");
    }
    world.succeed(&held.remove(0)).await;
    assert_eq!(world.claim(10).await.len(), 1);
    world.register(RegistrationBuilder::single_handler().unordered("index")).await;
    assert_eq!(world.claim(10).await.len(), 5, "without a limit");
}

/// Set while there is a backlog, it holds for that, too.
pub async fn a_new_per_key_limit_applies_to_the_existing_backlog(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    world.emit_many(6, new_event("record").with_key("a")).await;
    let held = world.claim_one().await;
    world.register(plan(2)).await;
    assert_eq!(world.claim(10).await.len(), 1);
    world.succeed(&held).await;
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn rules_and_the_per_key_limit_both_apply(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan(1)).await;
    world.emit_many(3, new_event("record").with_key("a")).await;
    world.schedule_ahead(3).await;
    world.pause("index").await;
    assert!(world.claim(10).await.is_empty());
    world.resume("index").await;
    assert_eq!(world.claim(10).await.len(), 1);
    assert!(world.claim(10).await.is_empty());
}

/// What was away comes back by the limits that stand then.
pub async fn adopted_tasks_respect_the_per_key_limit(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().unordered("index")).await;
    world.emit_many(3, new_event("record").with_key("a")).await;
    world.undefine_handler("index").await;
    world.register(plan(1)).await;
    assert_eq!(world.adopt_missing_tasks("index").await, 3);
    assert_eq!(world.claim(10).await.len(), 1);
}

/// A handler that kept the order of an object gives it up while tasks stand in its lane: they go on.
pub async fn laned_tasks_still_run_after_the_handler_becomes_unordered(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(2, new_event("record").with_key("a")).await;
    let first = world.claim_one().await;
    world.register(plan(1)).await;
    world.emit(new_event("record").with_key("a")).await;
    let crowd = world.claim(5).await;
    world.release_task(&first).await;
    for task in &crowd {
        world.succeed(task).await;
    }
    world.advance_clock(100);
    let ran = world.run_all_ready().await.len() + crowd.len();
    assert_eq!(ran, 3, "each runs in the end");
}
