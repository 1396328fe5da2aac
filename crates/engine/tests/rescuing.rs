//! Nodes that die, nodes that were thought dead, and handlers that are gone.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::*;
use pointsman_core::Status;
use pointsman_core::store::{Claim, Claimant, Queue, Registry, Sweep, Tasks};
use pointsman_core::task::{AttemptEnd, State};
use pointsman_engine::{AttemptOutcome, Delivery, Setup};

/// A node that never works, so that what is emitted stays where a test wants it.
fn idle_house() -> TestEngineBuilder {
    let mut house =
        TestEngineBuilder::default().handler("h", |_| async { AttemptOutcome::done() }).route("a", "h");
    house.settings.services.worker = false;
    house.settings.services.rescuer = false;
    house
}

fn quick(mut house: TestEngineBuilder) -> TestEngineBuilder {
    house.settings.sweep_interval = Duration::from_millis(20);
    house.settings.lease = Duration::from_millis(200);
    house
}

#[tokio::test]
async fn what_a_dead_node_held_goes_on() {
    let store = store();
    let producer = idle_house().start(&store).await;
    let receipt = emit(&producer, vec![event("a", "x")]).await;
    // A node that claims and is never heard of again.
    let dead = store.join("dead", now()).await.unwrap();
    let handlers = Arc::new([name("h")].into());
    let claims = store.claim(Claim { by: Claimant::Node(dead), handlers, max: 1 }, now()).await.unwrap();
    assert_eq!(claims.tasks.len(), 1);

    let engine = quick(
        TestEngineBuilder::default().handler("h", |_| async { AttemptOutcome::done() }).route("a", "h"),
    )
    .start(&store)
    .await;
    let id = &receipt.events[0].tasks[0];
    soon("the task to be done", async {
        while store.task(id).await.unwrap().unwrap().0.life.state != State::Done {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (task, _) = store.task(id).await.unwrap().unwrap();
    let ends: Vec<_> = task.attempts.iter().map(|attempt| attempt.end).collect();
    assert_eq!(ends, [AttemptEnd::Crashed, AttemptEnd::Succeeded]);
    assert_eq!((task.life.retries, task.life.crashes), (0, 1));
    engine.stop(TEST_TIMEOUT).await;
    producer.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_node_that_was_given_up_ends_its_attempts_and_joins_again() {
    let store = store();
    let diary = CallLog::default();
    let handler = {
        let diary = diary.clone();
        move |d: Delivery| {
            let diary = diary.clone();
            async move {
                if d.task.attempt == 1 {
                    d.cancel.cancelled().await;
                    diary.note("told to stop");
                }
                AttemptOutcome::done()
            }
        }
    };
    let mut house = TestEngineBuilder::default().handler("h", handler).route("a", "h");
    house.settings.sweep_interval = Duration::from_millis(20);
    house.settings.services.rescuer = false;
    let engine = house.start(&store).await;
    let mut watcher = TaskWatcher::of(&engine);
    emit(&engine, vec![event("a", "x")]).await;
    watcher.until(|c| c.status == Status::Locked).await;
    // Another node whose clock is far ahead takes it for dead.
    store.rescue(Sweep::whole(Duration::from_secs(1)), now().plus(Duration::from_secs(3600))).await.unwrap();
    let ended = watcher.ended(1).await.remove(0);
    assert_eq!((ended.status, ended.attempt), (Status::Done, 2));
    soon("the first attempt to be told", async {
        while diary.read().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    let (task, _) = store.task(&ended.id).await.unwrap().unwrap();
    let ends: Vec<_> = task.attempts.iter().map(|attempt| attempt.end).collect();
    assert_eq!(ends, [AttemptEnd::Crashed, AttemptEnd::Succeeded]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn tasks_of_a_handler_that_is_gone_are_parked_and_can_be_adopted() {
    let store = store();
    let producer = idle_house().start(&store).await;
    let receipt = emit(&producer, vec![event("a", "x")]).await;
    let id = receipt.events[0].tasks[0].clone();
    producer.stop(TEST_TIMEOUT).await;

    let engine = quick(TestEngineBuilder::default()).start(&store).await;
    let status = || async { store.task(&id).await.unwrap().unwrap().0.life.state.status() };
    soon("the task to be parked", async {
        while status().await != Status::Missing {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;

    let back =
        TestEngineBuilder::default().handler("h", |_| async { AttemptOutcome::done() }).route("a", "h").setup;
    engine.reconfigure(back).await.unwrap();
    let mut watcher = TaskWatcher::of(&engine);
    assert_eq!(engine.adopt_missing_tasks(&name("h")).await.unwrap(), 1);
    assert_eq!(watcher.ended(1).await[0].id, id);
    engine.reconfigure(Setup::default()).await.unwrap();
    engine.stop(TEST_TIMEOUT).await;
}
