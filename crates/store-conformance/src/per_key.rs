//! How many of one object's tasks run at a time, where they keep no order.

use pointsman_core::Limits;
use pointsman_core::store::Claimed;

use crate::Harness;
use crate::world::*;

fn plan(most: u32) -> Plan {
    let limits = Limits { concurrency_per_key: Some(most), ..Limits::default() };
    Plan::simple().free("index").limited("index", limits)
}

/// How many tasks of this object are among them.
fn of(tasks: &[Claimed], name: &str) -> usize {
    tasks.iter().filter(|task| task.event().key.as_ref().is_some_and(|key| key.as_str() == name)).count()
}

pub async fn no_more_of_an_object_run_than_may(harness: &dyn Harness) {
    let world = World::new(harness, plan(2)).await;
    for key in ["a", "b"] {
        world.emit_many(5, event("record").key(key)).await;
    }
    world.emit_many(3, event("record")).await;
    let claims = world.claims(100).await;
    let held = claims.tasks;
    assert_eq!((of(&held, "a"), of(&held, "b"), held.len(), claims.more), (2, 2, 7, false));
    let a = held.iter().find(|task| of(std::slice::from_ref(task), "a") == 1).expect("one of them");
    world.succeed(a).await;
    let next = world.claim(100).await;
    assert_eq!((of(&next, "a"), next.len()), (1, 1), "one ended, one begins");
}

pub async fn all_of_them_run_in_the_end(harness: &dyn Harness) {
    let world = World::new(harness, plan(2)).await;
    let mut events = Vec::new();
    for n in 0..30 {
        events.push(world.emit(event("record").key(["a", "b", "c"][n % 3])).await);
    }
    world.schedule(10).await;
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
    assert_eq!(ran, ids_of(&events));
}

pub async fn a_crowd_of_one_object_delays_no_other(harness: &dyn Harness) {
    let world = World::new(harness, plan(1)).await;
    world.emit_many(500, event("record").key("a")).await;
    world.claim(1).await;
    world.emit_many(1, event("record").key("b")).await;
    let claims = world.claims(1).await;
    assert_eq!((of(&claims.tasks, "b"), claims.more), (1, false));
}

pub async fn objects_of_two_tenants_are_two_objects(harness: &dyn Harness) {
    let world = World::new(harness, plan(1)).await;
    for name in ["default", "shop"] {
        world.emit_many(2, event("record").key("a").tenant(name)).await;
    }
    assert_eq!(world.claim(10).await.len(), 2);
}

/// A task that waits for its time gives up its place, and stands in line again when the time has come.
pub async fn what_waits_for_its_time_takes_no_place(harness: &dyn Harness) {
    for snooze in [false, true] {
        let mut world = World::new(harness, plan(2)).await;
        world.emit_many(5, event("record").key("a")).await;
        world.emit(event("record").key("a").due(world.later(BACKOFF))).await;
        for task in world.claim(10).await {
            match snooze {
                true => drop(world.snooze(&task, BACKOFF).await),
                false => drop(world.fail(&task).await),
            }
        }
        let held = world.claim(10).await;
        assert_eq!(held.len(), 2, "two others");
        assert!(held.iter().all(|task| task.attempt == 1));
        world.tick(BACKOFF);
        assert!(world.claim(10).await.is_empty(), "the places are taken");
        for task in &held {
            world.succeed(task).await;
        }
        assert_eq!(world.claim(10).await.len(), 2);
        assert!(world.claim(10).await.is_empty());
    }
}

pub async fn every_way_out_frees_a_place(harness: &dyn Harness) {
    let mut world = World::new(harness, plan(1)).await;
    world.emit_many(5, event("record").key("a")).await;
    let task = world.claim_one().await;
    assert_eq!(world.cancel(&task.id).await, Ok(()));
    let task = world.claim_one().await;
    world.fail_for_good(&task).await;
    world.schedule(5).await;
    let task = world.claim_one().await;
    world.give_back(&task).await;
    world.claim_one().await;
    assert!(world.claim(10).await.is_empty());
    world.tick(LEASE + 1);
    world.node = must(world.store.join("heir", world.now).await);
    world.rescue().await;
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn places_survive_a_restart(harness: &dyn Harness) {
    let world = World::new(harness, plan(2)).await;
    world.emit_many(5, event("record").key("a")).await;
    let held = world.claim_one().await;
    let world = world.reopen().await;
    assert_eq!(world.claim(10).await.len(), 1);
    world.succeed(&held).await;
    let world = world.reopen().await;
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn places_follow_their_registration(harness: &dyn Harness) {
    let mut world = World::new(harness, plan(1)).await;
    world.emit_many(10, event("record").key("a")).await;
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
    world.register(Plan::simple().free("index")).await;
    assert_eq!(world.claim(10).await.len(), 5, "without a limit");
}

/// Set while there is a backlog, it holds for that, too.
pub async fn a_limit_may_come_after_the_crowd(harness: &dyn Harness) {
    let mut world = World::new(harness, Plan::simple().free("index")).await;
    world.emit_many(6, event("record").key("a")).await;
    let held = world.claim_one().await;
    world.register(plan(2)).await;
    assert_eq!(world.claim(10).await.len(), 1);
    world.succeed(&held).await;
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn a_rule_and_a_place_both_hold(harness: &dyn Harness) {
    let world = World::new(harness, plan(1)).await;
    world.emit_many(3, event("record").key("a")).await;
    world.schedule(3).await;
    world.pause("index").await;
    assert!(world.claim(10).await.is_empty());
    world.resume("index").await;
    assert_eq!(world.claim(10).await.len(), 1);
    assert!(world.claim(10).await.is_empty());
}

/// What was away comes back by the limits that stand then.
pub async fn adopted_tasks_keep_the_limit(harness: &dyn Harness) {
    let mut world = World::new(harness, Plan::simple().free("index")).await;
    world.emit_many(3, event("record").key("a")).await;
    world.lose("index").await;
    world.register(plan(1)).await;
    assert_eq!(world.adopt("index").await, 3);
    assert_eq!(world.claim(10).await.len(), 1);
}

/// A handler that kept the order of an object gives it up while tasks stand in its lane: they go on.
pub async fn who_stands_in_a_lane_is_not_lost_in_a_crowd(harness: &dyn Harness) {
    let mut world = World::new(harness, Plan::simple()).await;
    world.emit_many(2, event("record").key("a")).await;
    let first = world.claim_one().await;
    world.register(plan(1)).await;
    world.emit(event("record").key("a")).await;
    let crowd = world.claim(5).await;
    world.give_back(&first).await;
    for task in &crowd {
        world.succeed(task).await;
    }
    world.tick(100);
    let ran = world.run_all().await.len() + crowd.len();
    assert_eq!(ran, 3, "each runs in the end");
}
