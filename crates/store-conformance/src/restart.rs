//! A process ends in the middle of its work, and another one takes over.

use pointsman_core::store::TaskFilter;
use pointsman_core::{RuleKind, Status};

use crate::Harness;
use crate::fixture::*;

pub async fn everything_acknowledged_survives_a_restart(harness: &dyn Harness) {
    let mut world =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    let mut acknowledged = Vec::new();
    for round in 0..5 {
        for n in 0..10 {
            let draft =
                new_event("record").with_key(&format!("k{}", n % 3)).with_value(&format!("[{round},{n}]"));
            acknowledged.push(world.emit(draft).await);
        }
        let before = (
            world.read_all_events().await,
            world.list_tasks(&TaskFilter::default()).await,
            world.journal_extent().await,
        );
        world = world.reopen().await;
        let after = (
            world.read_all_events().await,
            world.list_tasks(&TaskFilter::default()).await,
            world.journal_extent().await,
        );
        assert_eq!(before, after);
        world.advance_clock(1);
    }
    let read: Vec<_> = world.read_all_events().await.iter().map(|event| event.id).collect();
    assert_eq!(read, sequenced_ids(&acknowledged));
    assert_eq!(world.run_all_ready().await.len(), 100);
}

pub async fn tasks_of_the_old_process_are_rescued(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(4, new_event("record")).await;
    let held = world.claim(3).await;
    world.succeed(&held[0]).await;
    let mut world = world.reopen().await;
    assert_eq!(world.task_status(&held[1].id).await, Status::Locked, "perhaps it is still running");
    world.advance_clock(LEASE_SECS + 1);
    assert!(world.heartbeat().await);
    assert_eq!(world.rescue_tasks().await.tasks.len(), 2);
    let ran = world.run_all_ready().await;
    assert_eq!(ran.len(), 3);
    let attempts: Vec<_> = held[1..].iter().map(|old| ran.iter().find(|new| new.id == old.id)).collect();
    assert!(attempts.into_iter().all(|new| new.is_some_and(|new| new.attempt == 2)));
}

/// A process that was only slow may still end its attempts: its fence is good until somebody takes them.
pub async fn a_fence_stays_valid_across_a_restart(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit_many(2, new_event("record").with_key("a")).await;
    let held = world.claim_one().await;
    let world = world.reopen().await;
    assert_eq!(world.succeed(&held).await.status, Status::Done);
    assert_eq!(world.run_all_ready().await.len(), 1);
}

pub async fn every_task_state_survives_a_restart(harness: &dyn Harness) {
    let plan = RegistrationBuilder::default()
        .route("record", &["check!", "index", "gone"])
        .route("note", &["halts", "notify"])
        .halt_on_error("halts");
    let mut world = StoreFixture::new(harness, plan).await;
    for n in 0..6 {
        world.emit(new_event("record").with_key(&format!("r{}", n % 2))).await;
        world
            .emit(new_event("note").with_key(&format!("n{}", n % 2)).due_at(world.seconds_from_now(n * 10)))
            .await;
    }
    world.advance_clock(20);
    world.undefine_handler("gone").await;
    for (n, task) in world.claim(6).await.iter().enumerate() {
        match n % 3 {
            0 => drop(world.succeed(task).await),
            1 => drop(world.fail(task).await),
            _ => drop(world.fail_permanently(task).await),
        }
    }
    world.claim(2).await;
    world.schedule_ahead(3).await;
    expect_ok(world.store.hold(world.new_rule(RuleKind::Block, "notify", None)).await);
    let before = world.list_tasks(&TaskFilter::default()).await;
    let queues = sorted_queues(&world).await;
    let world = world.reopen().await;
    assert_eq!(world.list_tasks(&TaskFilter::default()).await, before);
    assert_eq!(sorted_queues(&world).await, queues);
}

async fn sorted_queues(world: &StoreFixture<'_>) -> Vec<pointsman_core::store::QueueView> {
    let mut queues = expect_ok(world.store.queues(None).await);
    queues.sort_by(|a, b| (&a.handler, &a.tenant).cmp(&(&b.handler, &b.tenant)));
    queues
}

pub async fn an_empty_store_survives_a_restart(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let world = world.reopen().await;
    let world = world.reopen().await;
    assert!(world.read_all_events().await.is_empty());
    assert!(world.claim(10).await.is_empty());
}
