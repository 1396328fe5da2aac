//! Nodes come and go; what a dead one held goes on.

use pointsman_core::Status;
use pointsman_core::store::{Claim, Claimant, Ended};
use pointsman_core::task::{AttemptEnd, EndReason, Rejected};

use crate::Harness;
use crate::fixture::*;

/// Another node takes the place of the world's.
async fn succeed_the_dead(world: &mut StoreFixture<'_>) {
    world.node = expect_ok(world.store.join("heir", world.now).await);
}

pub async fn every_start_is_a_new_node(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut nodes = vec![world.node];
    for _ in 0..3 {
        nodes.push(expect_ok(world.store.join("first", world.now).await));
    }
    let world = world.reopen().await;
    nodes.push(world.node);
    nodes.sort();
    assert_ascending(&nodes);
}

pub async fn a_node_without_heartbeats_loses_its_tasks(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = world.emit_many(3, new_event("record").with_key("a")).await;
    let zombie = world.claim_one().await;
    world.advance_clock(LEASE_SECS - 1);
    assert_eq!(world.rescue_tasks().await.tasks, [], "not before its lease is over");
    world.advance_clock(2);
    succeed_the_dead(&mut world).await;
    assert_eq!(world.rescue_tasks().await.tasks, [(zombie.id.clone(), Status::New)]);
    assert_eq!(world.rescue_tasks().await.tasks, [], "once");
    assert_eq!(
        world.finish_attempt(attempt_ending(&zombie, success())).await,
        Err(Rejected::WrongState(Status::New))
    );
    let again = world.claim_one().await;
    assert_eq!((&again.id, again.attempt, again.retries), (&zombie.id, 2, 0), "a crash is no retry");
    assert!(again.fence > zombie.fence);
    assert_eq!(world.finish_attempt(attempt_ending(&zombie, success())).await, Err(Rejected::StaleFence));
    world.succeed(&again).await;
    assert_eq!(event_ids_of(&world.run_all_ready().await), sequenced_ids(&events[1..]));
    let ends: Vec<_> = world.read_task(&zombie.id).await.attempts.iter().map(|attempt| attempt.end).collect();
    assert_eq!(ends, [AttemptEnd::Crashed, AttemptEnd::Succeeded]);
}

pub async fn a_node_with_heartbeats_keeps_its_tasks(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit(new_event("record")).await;
    let task = world.claim_one().await;
    for _ in 0..10 {
        world.advance_clock(LEASE_SECS - 5);
        assert!(world.heartbeat().await);
        assert_eq!(world.rescue_tasks().await.tasks, []);
    }
    assert_eq!(world.succeed(&task).await.status, Status::Done);
}

pub async fn a_rescue_frees_only_the_dead_nodes_tasks(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(4, new_event("record")).await;
    let dead = world.claim(2).await;
    succeed_the_dead(&mut world).await;
    let alive = world.claim(2).await;
    world.advance_clock(LEASE_SECS + 1);
    assert!(world.heartbeat().await);
    let mut freed: Vec<_> = world.rescue_tasks().await.tasks.into_iter().map(|(id, _)| id).collect();
    freed.sort();
    let mut want: Vec<_> = dead.iter().map(|task| task.id.clone()).collect();
    want.sort();
    assert_eq!(freed, want);
    for task in &alive {
        assert_eq!(world.succeed(task).await.status, Status::Done);
    }
}

pub async fn a_node_can_query_which_of_its_attempts_were_lost(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(5, new_event("record")).await;
    let tasks = world.claim(5).await;
    let [kept, cancelled, returned, done, _] = tasks.as_slice() else { panic!("{tasks:?}") };
    let held: Vec<_> = tasks.iter().map(|task| (task.seq, task.fence)).collect();
    assert!(expect_ok(world.store.lost(held.clone()).await).is_empty());
    assert!(expect_ok(world.store.lost(vec![]).await).is_empty());
    assert_eq!(world.cancel_task(&cancelled.id).await, Ok(()));
    world.release_task(returned).await;
    world.succeed(done).await;
    let mut lost = expect_ok(world.store.lost(held.clone()).await);
    lost.sort();
    assert_eq!(lost, [cancelled.fence, returned.fence, done.fence]);
    world.advance_clock(LEASE_SECS + 1);
    succeed_the_dead(&mut world).await;
    world.rescue_tasks().await;
    let again = world.claim(5).await;
    assert!(again.iter().any(|task| task.seq == kept.seq), "it runs elsewhere");
    assert_eq!(expect_ok(world.store.lost(held).await).len(), 5);
    let held = again.iter().map(|task| (task.seq, task.fence)).collect();
    assert!(expect_ok(world.store.lost(held).await).is_empty(), "a task of later attempts is theirs");
}

pub async fn the_heartbeat_of_an_expired_node_fails(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let dead = world.node;
    assert!(world.heartbeat().await);
    world.advance_clock(LEASE_SECS + 1);
    succeed_the_dead(&mut world).await;
    world.rescue_tasks().await;
    assert!(!expect_ok(world.store.heartbeat(dead, world.now).await));
    // Nobody would free what it got now, so it gets nothing.
    world.emit(new_event("record")).await;
    let asked = Claim { by: Claimant::Node(dead), ..world.claim_request(8) };
    assert!(expect_ok(world.store.claim(asked, world.now).await).tasks.is_empty());
    assert_eq!(world.claim(8).await.len(), 1);
    assert!(world.heartbeat().await);
    assert!(
        !expect_ok(world.store.heartbeat(world.node + 1000, world.now).await),
        "nor does one live that never was"
    );
}

pub async fn a_task_fails_after_three_crashes(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = world.emit_many(2, new_event("record").with_key("a")).await;
    let id = &events[0].tasks[0];
    let mut statuses = Vec::new();
    for _ in 0..3 {
        assert_eq!(world.claim_one().await.id, *id);
        world.advance_clock(LEASE_SECS + 1);
        succeed_the_dead(&mut world).await;
        statuses.extend(world.rescue_tasks().await.tasks.into_iter().map(|(_, status)| status));
    }
    assert_eq!(statuses, [Status::New, Status::New, Status::Error]);
    let task = world.read_task(id).await;
    assert_eq!(task.life.state.reason(), Some(EndReason::Crashed));
    assert_eq!((task.life.crashes, task.life.retries, task.attempts.len()), (3, 0, 3));
    assert_eq!(event_ids_of(&world.run_all_ready().await), [events[1].id], "and its lane goes on");
}

pub async fn tasks_of_a_node_that_left_are_rescued(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(2, new_event("record")).await;
    let tasks = world.claim(2).await;
    world.finish_as(&tasks[0], Ended::Released).await;
    let left = world.node;
    expect_ok(world.store.leave(left, world.now).await);
    assert!(!expect_ok(world.store.heartbeat(left, world.now).await));
    succeed_the_dead(&mut world).await;
    world.advance_clock(LEASE_SECS + 1);
    world.heartbeat().await;
    world.rescue_tasks().await;
    let mut claimed = event_ids_of(&world.claim(10).await);
    claimed.sort();
    assert_eq!(claimed, event_ids_of(&tasks), "what it gave back, and what it forgot to give back");
}

/// A node that does not know yet that it was given up, or that has left, asks for work all the same.
pub async fn no_task_gets_stuck_with_an_expired_or_left_node(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let (evicted, left) = (world.node, expect_ok(world.store.join("left", world.now).await));
    expect_ok(world.store.leave(left, world.now).await);
    world.advance_clock(LEASE_SECS + 1);
    world.rescue_tasks().await;
    let events = world.emit_many(2, new_event("record")).await;
    for node in [evicted, left] {
        world.node = node;
        world.claim(1).await;
        let emissions = vec![emission([new_event("note")])];
        expect_ok(world.store.append(emissions, Some(world.claim_request(1)), world.now).await);
    }
    succeed_the_dead(&mut world).await;
    world.advance_clock(LEASE_SECS + 1);
    world.heartbeat().await;
    world.rescue_tasks().await;
    let mut claimed = event_ids_of(&world.claim(10).await);
    claimed.sort();
    assert_eq!(claimed, sequenced_ids(&events));
}

/// Nothing is scheduled for a node: when one dies, the look-ahead stands for the others.
pub async fn scheduled_tasks_survive_a_nodes_death(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(2, new_event("record")).await;
    world.schedule_ahead(2).await;
    world.advance_clock(LEASE_SECS + 1);
    succeed_the_dead(&mut world).await;
    assert_eq!(world.rescue_tasks().await.tasks, []);
    assert_eq!(world.claim(10).await.len(), 2);
}

pub async fn repeated_crashes_halt_a_halting_lane(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    world.emit_many(2, new_event("record").with_key("a")).await;
    for _ in 0..3 {
        world.claim_one().await;
        world.advance_clock(LEASE_SECS + 1);
        succeed_the_dead(&mut world).await;
        world.rescue_tasks().await;
    }
    assert!(world.claim(10).await.is_empty());
    assert_eq!(world.read_queue("index").await.halted, 1);
}
