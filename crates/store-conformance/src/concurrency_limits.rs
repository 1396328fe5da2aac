//! No more of a handler's tasks run at a time than may, over all tenants, nodes and ways to begin.

use std::sync::Arc;

use pointsman_core::store::{Claim, Claimant, Ended, TaskFilter};
use pointsman_core::{Limits, Status};

use crate::Harness;
use crate::fixture::*;

fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .route("record", &["index"])
        .route("note", &["notify"])
        .concurrency_limit("index", 2)
}

async fn running(world: &StoreFixture<'_>) -> usize {
    world.list_tasks(&TaskFilter { statuses: vec![Status::Locked], ..TaskFilter::default() }).await.len()
}

pub async fn running_tasks_never_exceed_the_concurrency_limit(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let events = world.emit_many(5, new_event("record")).await;
    let mut ran = Vec::new();
    let claims = world.claim_outcome(10).await;
    assert_eq!((claims.tasks.len(), claims.more), (2, false), "what may not run is not ready");
    let mut held = claims.tasks;
    while let Some(task) = held.pop() {
        assert!(world.claim(10).await.is_empty());
        world.succeed(&task).await;
        ran.push(task.event().id);
        held.extend(world.claim(10).await);
        assert!(held.len() <= 2);
    }
    ran.sort();
    assert_eq!(ran, sequenced_ids(&events));
}

pub async fn concurrency_limit_applies_across_tenants_and_nodes(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    for of in ["default", "shop", "depot"] {
        world.emit_many(3, new_event("record").for_tenant(of)).await;
    }
    let first = world.claim_one().await;
    world.node = expect_ok(world.store.join("second", world.now).await);
    assert_eq!(world.claim(10).await.len(), 1);
    world.node = expect_ok(world.store.join("third", world.now).await);
    assert!(world.claim(10).await.is_empty());
    world.succeed(&first).await;
    assert_eq!(world.claim(10).await.len(), 1);
    assert_eq!(running(&world).await, 2);
}

pub async fn concurrency_limit_applies_to_tasks_claimed_by_an_append(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let append = async |count: usize| {
        let emissions = vec![emission(vec![new_event("record"); count])];
        let (_, claims) =
            expect_ok(world.store.append(emissions, Some(world.claim_request(10)), world.now).await);
        (claims.tasks.len(), claims.more)
    };
    assert_eq!(append(1).await, (1, false));
    assert_eq!(append(5).await, (1, false));
    assert_eq!(append(5).await, (0, false));
    assert_eq!(running(&world).await, 2);
}

pub async fn concurrency_limit_applies_to_tasks_claimed_by_a_finish(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    world.emit_many(9, new_event("record")).await;
    let mut held = world.claim(10).await;
    for _ in 0..3 {
        let endings = held.iter().map(|task| attempt_ending(task, success())).collect();
        let (_, claims) =
            expect_ok(world.store.finish(endings, Some(world.claim_request(10)), world.now).await);
        assert_eq!((claims.tasks.len(), claims.more), (2, false));
        held = claims.tasks;
    }
    let endings = vec![attempt_ending(&held[0], success())];
    let (_, claims) = expect_ok(world.store.finish(endings, Some(world.claim_request(10)), world.now).await);
    assert_eq!(claims.tasks.len(), 1);
    assert_eq!(running(&world).await, 2);
}

pub async fn concurrency_limit_applies_to_scheduled_tasks(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    world.emit_many(6, new_event("record")).await;
    world.schedule_ahead(6).await;
    let mut ran = 0;
    let mut held = world.claim(10).await;
    assert_eq!(held.len(), 2);
    while let Some(task) = held.pop() {
        world.schedule_ahead(6).await;
        assert!(world.claim(10).await.is_empty());
        world.succeed(&task).await;
        ran += 1;
        held.extend(world.claim(10).await);
        assert_eq!(running(&world).await, held.len());
        assert!(held.len() <= 2);
    }
    assert_eq!(ran, 6);
}

pub async fn racing_nodes_respect_the_concurrency_limit(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    world.emit_many(50, new_event("record")).await;
    let handlers = Arc::new(world.plan.handler_names());
    let mut racers = Vec::new();
    for n in 0..10 {
        let node = expect_ok(world.store.join(&format!("node-{n}"), world.now).await);
        let claim = Claim { by: Claimant::Node(node), handlers: Arc::clone(&handlers), max: 5 };
        let (store, now) = (Arc::clone(&world.store), world.now);
        racers.push(tokio::spawn(async move { expect_ok(store.claim(claim, now).await).tasks.len() }));
    }
    let mut claimed = 0;
    for racer in racers {
        claimed += racer.await.expect("the racer ended well");
    }
    assert_eq!(claimed, 2);
}

/// Whatever an attempt comes to, its place is free again, and is taken once.
pub async fn every_attempt_end_frees_a_concurrency_slot(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    for end in ["success", "failure", "parked", "snooze", "release", "cancel", "crash"] {
        world.emit_many(4, new_event("record")).await;
        let held = world.claim(10).await;
        assert_eq!(held.len(), 2, "before {end}");
        let task = &held[0];
        match end {
            "success" => drop(world.succeed(task).await),
            "failure" => drop(world.fail(task).await),
            "parked" => drop(world.fail_permanently(task).await),
            "snooze" => drop(world.snooze(task, 60).await),
            "release" => drop(world.finish_as(task, Ended::Released).await),
            "cancel" => assert_eq!(world.cancel_task(&task.id).await, Ok(())),
            _ => {
                world.advance_clock(LEASE_SECS + 1);
                world.node = expect_ok(world.store.join("heir", world.now).await);
                assert_eq!(world.rescue_tasks().await.tasks.len(), 2);
                assert_eq!(world.claim(10).await.len(), 2, "after a crash");
                return;
            }
        }
        let next = world.claim(10).await;
        assert_eq!(next.len(), 1, "after {end}");
        world.succeed(&held[1]).await;
        world.succeed(&next[0]).await;
        world.advance_clock(100);
        world.heartbeat().await;
        world.run_all_ready().await;
    }
}

pub async fn concurrency_limit_changes_with_the_registration(harness: &dyn Harness) {
    let mut world = StoreFixture::new(harness, plan()).await;
    world.emit_many(20, new_event("record")).await;
    let mut held = world.claim(20).await;
    world.register(plan().concurrency_limit("index", 5)).await;
    held.extend(world.claim(20).await);
    assert_eq!(held.len(), 5, "wider");
    world.register(plan().concurrency_limit("index", 1)).await;
    for task in held.drain(..4) {
        world.succeed(&task).await;
        assert!(world.claim(20).await.is_empty(), "narrower: what runs may end, and then one at a time");
    }
    world.succeed(&held[0]).await;
    assert_eq!(world.claim(20).await.len(), 1);
    world.register(plan().limits("index", Limits::default())).await;
    assert_eq!(world.claim(20).await.len(), 14, "without a limit");
}

pub async fn a_new_concurrency_limit_counts_already_running_tasks(harness: &dyn Harness) {
    let free = RegistrationBuilder::single_handler();
    let mut world = StoreFixture::new(harness, free.clone()).await;
    world.emit_many(6, new_event("record")).await;
    let held = world.claim(3).await;
    world.register(free.concurrency_limit("index", 2)).await;
    assert!(world.claim(10).await.is_empty());
    for task in &held[..2] {
        world.succeed(task).await;
    }
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn a_handler_at_its_limit_does_not_delay_other_handlers(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    world.emit_many(500, new_event("record").with_priority(9000)).await;
    world.claim(2).await;
    world.emit_many(5, new_event("note").with_priority(1)).await;
    let claimed = world.claim(5).await;
    assert_eq!(claimed.len(), 5);
    assert!(claimed.iter().all(|task| task.handler == handler_name("notify")));
}

/// The look-ahead of a narrow handler does not keep slots from others.
pub async fn prefetch_skips_a_handler_at_its_limit(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan().concurrency_limit("index", 1)).await;
    world.emit_many(10, new_event("record")).await;
    world.emit_many(20, new_event("note")).await;
    for _ in 0..4 {
        world.schedule_ahead(4).await;
        assert_eq!(world.claim(4).await.len(), 4);
    }
}

/// Nor does that of the others keep the narrow one from its turns.
pub async fn prefetch_does_not_starve_a_limited_handler(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan().concurrency_limit("index", 1)).await;
    world.emit_many(20, new_event("record")).await;
    world.emit_many(200, new_event("note")).await;
    let mut narrow = 0;
    for _ in 0..20 {
        world.schedule_ahead(8).await;
        let claimed = world.claim(4).await;
        assert_eq!(claimed.len(), 4);
        narrow += claimed.iter().filter(|task| task.handler == handler_name("index")).count();
        for task in &claimed {
            world.succeed(task).await;
        }
    }
    assert!(narrow >= 10, "{narrow} turns of 20 in which one was free");
}

pub async fn concurrency_limit_survives_a_restart(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    world.emit_many(6, new_event("record")).await;
    let held = world.claim(10).await;
    let world = world.reopen().await;
    assert!(world.claim(10).await.is_empty());
    world.succeed(&held[0]).await;
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn lanes_and_concurrency_limits_both_apply(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    for key in ["a", "b", "c"] {
        world.emit_many(2, new_event("record").with_key(key)).await;
    }
    let mut ran = 0;
    loop {
        let held = world.claim(10).await;
        assert!(held.len() <= 2);
        if held.len() == 2 {
            assert_ne!(held[0].event().key, held[1].event().key);
        }
        for task in &held {
            world.succeed(task).await;
            ran += 1;
        }
        if held.is_empty() {
            break;
        }
    }
    assert_eq!(ran, 6);
}

pub async fn concurrency_limit_applies_to_sources_and_workers(harness: &dyn Harness) {
    let plan = RegistrationBuilder::default()
        .route("record", &["remote"])
        .collection("shop/orders", 100)
        .collection("shop/items", 100)
        .concurrency_limit("shop", 1)
        .concurrency_limit("remote", 2)
        .pulled_by_workers("remote");
    let world = StoreFixture::new(harness, plan).await;
    world.request_new_run("shop/orders").await;
    world.request_new_run("shop/items").await;
    let run = world.claim(10).await;
    assert_eq!(run.len(), 1);
    world.succeed(&run[0]).await;
    assert_eq!(world.claim(10).await.len(), 1);
    for of in ["default", "shop"] {
        world.emit_many(3, new_event("record").for_tenant(of)).await;
    }
    let held = world.fetch_as_worker(&["remote"], 10).await;
    assert_eq!(held.len(), 2);
    world.succeed(&held[0]).await;
    assert_eq!(world.fetch_as_worker(&["remote"], 10).await.len(), 1);
}

/// A rule takes nobody's place, and lifting it gives none away twice.
pub async fn rules_and_concurrency_limits_both_apply(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    world.emit_many(6, new_event("record")).await;
    let held = world.claim(1).await;
    world.schedule_ahead(6).await;
    world.pause("index").await;
    assert!(world.claim(10).await.is_empty());
    world.resume("index").await;
    assert_eq!(world.claim(10).await.len(), 1);
    world.succeed(&held[0]).await;
    assert_eq!(world.claim(10).await.len(), 1);
}

/// A tenant's turn at a limited handler, with the other two waiting for theirs.
async fn three_tenants(harness: &dyn Harness, plan: RegistrationBuilder) -> StoreFixture<'_> {
    let world = StoreFixture::new(harness, plan.concurrency_limit("index", 1)).await;
    for name in ["a", "b", "c"] {
        world.emit(new_event("record").for_tenant(name)).await;
    }
    world
}

pub async fn cancelling_the_next_tenants_task_lets_the_following_tenant_run(harness: &dyn Harness) {
    let world = three_tenants(harness, RegistrationBuilder::single_handler()).await;
    let first = world.claim_one().await;
    assert!(world.claim(10).await.is_empty());
    world.succeed(&first).await;
    let second = TaskFilter { tenant: Some(tenant("b")), ..TaskFilter::default() };
    let second = world.list_tasks(&second).await.remove(0);
    assert_eq!(world.cancel_task(&second.id).await, Ok(()));
    assert_eq!(world.claim(10).await.len(), 1, "the third has its turn");
}

pub async fn a_worker_of_one_tenant_does_not_wait_for_other_tenants(harness: &dyn Harness) {
    let world =
        three_tenants(harness, RegistrationBuilder::single_handler().pulled_by_workers("index")).await;
    let first = world.fetch_one_as_worker("index").await;
    assert!(world.fetch_as_worker(&["index"], 10).await.is_empty());
    world.succeed(&first).await;
    let by = Claimant::Worker { until: world.seconds_from_now(LEASE_SECS), tenant: Some(tenant("c")) };
    let claim = Claim { by, ..world.worker_claim_request(&["index"], 10) };
    let claimed = expect_ok(world.store.claim(claim, world.now).await).tasks;
    assert_eq!(claimed.len(), 1);
    assert!(world.fetch_as_worker(&["index"], 10).await.is_empty(), "and the limit holds");
}
