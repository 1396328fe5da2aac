//! Concurrency limits of handlers, across tenants, nodes and all ways to start a task.

use std::sync::Arc;

use pointsman_core::store::{AttemptResult, ClaimRequest, Claimant, TaskFilter};
use pointsman_core::{Limits, TaskStatus};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default()
        .route("record", &["index"])
        .route("note", &["notify"])
        .concurrency_limit("index", 2)
}

async fn count_running_tasks(fixture: &StoreFixture<'_>) -> usize {
    fixture
        .list_tasks(&TaskFilter { statuses: vec![TaskStatus::Locked], ..TaskFilter::default() })
        .await
        .len()
}

pub async fn running_tasks_never_exceed_the_concurrency_limit(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let events = fixture.emit_copies(5, new_event("record")).await;
    let mut ran = Vec::new();
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!((claims.tasks.len(), claims.has_more), (2, false), "tasks beyond the limit are not ready");
    let mut running = claims.tasks;
    while let Some(task) = running.pop() {
        assert!(fixture.claim(10).await.is_empty());
        fixture.succeed(&task).await;
        ran.push(task.event().id);
        running.extend(fixture.claim(10).await);
        assert!(running.len() <= 2);
    }
    ran.sort();
    assert_eq!(ran, event_ids_of_receipts(&events));
}

pub async fn concurrency_limit_applies_across_tenants_and_nodes(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    for tenant_name in ["default", "shop", "depot"] {
        fixture.emit_copies(3, new_event("record").for_tenant(tenant_name)).await;
    }
    let first = fixture.claim_one().await;
    fixture.node_id = expect_ok(fixture.store.join_node("second", fixture.now).await);
    assert_eq!(fixture.claim(10).await.len(), 1);
    fixture.node_id = expect_ok(fixture.store.join_node("third", fixture.now).await);
    assert!(fixture.claim(10).await.is_empty());
    fixture.succeed(&first).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
    assert_eq!(count_running_tasks(&fixture).await, 2);
}

pub async fn concurrency_limit_applies_to_tasks_claimed_by_an_append(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let append = async |count: usize| {
        let batches = vec![new_emit_batch(vec![new_event("record"); count])];
        let (_, claims) =
            expect_ok(fixture.store.append(batches, Some(fixture.claim_request(10)), fixture.now).await);
        (claims.tasks.len(), claims.has_more)
    };
    assert_eq!(append(1).await, (1, false));
    assert_eq!(append(5).await, (1, false));
    assert_eq!(append(5).await, (0, false));
    assert_eq!(count_running_tasks(&fixture).await, 2);
}

pub async fn concurrency_limit_applies_to_tasks_claimed_by_a_finish(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(9, new_event("record")).await;
    let mut running = fixture.claim(10).await;
    for _ in 0..3 {
        let attempts = running.iter().map(|task| finished_attempt(task, success())).collect();
        let (_, claims) = expect_ok(
            fixture.store.finish_attempts(attempts, Some(fixture.claim_request(10)), fixture.now).await,
        );
        assert_eq!((claims.tasks.len(), claims.has_more), (2, false));
        running = claims.tasks;
    }
    let attempts = vec![finished_attempt(&running[0], success())];
    let (_, claims) = expect_ok(
        fixture.store.finish_attempts(attempts, Some(fixture.claim_request(10)), fixture.now).await,
    );
    assert_eq!(claims.tasks.len(), 1);
    assert_eq!(count_running_tasks(&fixture).await, 2);
}

pub async fn concurrency_limit_applies_to_prefetched_tasks(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(6, new_event("record")).await;
    fixture.schedule_tasks(6).await;
    let mut ran = 0;
    let mut running = fixture.claim(10).await;
    assert_eq!(running.len(), 2);
    while let Some(task) = running.pop() {
        fixture.schedule_tasks(6).await;
        assert!(fixture.claim(10).await.is_empty());
        fixture.succeed(&task).await;
        ran += 1;
        running.extend(fixture.claim(10).await);
        assert_eq!(count_running_tasks(&fixture).await, running.len());
        assert!(running.len() <= 2);
    }
    assert_eq!(ran, 6);
}

pub async fn racing_nodes_respect_the_concurrency_limit(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(50, new_event("record")).await;
    let handlers = Arc::new(fixture.registration.handler_names());
    let mut racers = Vec::new();
    for n in 0..10 {
        let node = expect_ok(fixture.store.join_node(&format!("node-{n}"), fixture.now).await);
        let claim =
            ClaimRequest { claimant: Claimant::Node(node), handlers: Arc::clone(&handlers), max_tasks: 5 };
        let (store, now) = (Arc::clone(&fixture.store), fixture.now);
        racers.push(tokio::spawn(async move { expect_ok(store.claim_tasks(claim, now).await).tasks.len() }));
    }
    let mut claimed = 0;
    for racer in racers {
        claimed += racer.await.expect("the racing call succeeded");
    }
    assert_eq!(claimed, 2);
}

/// However an attempt ends, its slot is freed exactly once.
pub async fn every_attempt_end_frees_a_concurrency_slot(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    for end in ["success", "failure", "permanent failure", "snooze", "release", "cancel", "crash"] {
        fixture.emit_copies(4, new_event("record")).await;
        let running = fixture.claim(10).await;
        assert_eq!(running.len(), 2, "before {end}");
        let task = &running[0];
        match end {
            "success" => drop(fixture.succeed(task).await),
            "failure" => drop(fixture.fail(task).await),
            "permanent failure" => drop(fixture.fail_permanently(task).await),
            "snooze" => drop(fixture.snooze_task(task, 60).await),
            "release" => drop(fixture.finish_with_result(task, AttemptResult::Released).await),
            "cancel" => assert_eq!(fixture.cancel_task(&task.id).await, Ok(())),
            _ => {
                fixture.advance_clock(LEASE_SECS + 1);
                fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
                assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status.len(), 2);
                assert_eq!(fixture.claim(10).await.len(), 2, "after a crash");
                return;
            }
        }
        let next = fixture.claim(10).await;
        assert_eq!(next.len(), 1, "after {end}");
        fixture.succeed(&running[1]).await;
        fixture.succeed(&next[0]).await;
        fixture.advance_clock(100);
        fixture.send_heartbeat().await;
        fixture.run_all_ready_tasks().await;
    }
}

pub async fn concurrency_limit_changes_with_the_registration(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(20, new_event("record")).await;
    let mut running = fixture.claim(20).await;
    fixture.register(base_registration().concurrency_limit("index", 5)).await;
    running.extend(fixture.claim(20).await);
    assert_eq!(running.len(), 5, "with a higher limit");
    fixture.register(base_registration().concurrency_limit("index", 1)).await;
    for task in running.drain(..4) {
        fixture.succeed(&task).await;
        assert!(
            fixture.claim(20).await.is_empty(),
            "with a lower limit: running tasks finish, then one at a time"
        );
    }
    fixture.succeed(&running[0]).await;
    assert_eq!(fixture.claim(20).await.len(), 1);
    fixture.register(base_registration().limits("index", Limits::default())).await;
    assert_eq!(fixture.claim(20).await.len(), 14, "without a limit");
}

pub async fn a_new_concurrency_limit_counts_already_running_tasks(harness: &dyn Harness) {
    let free = RegistrationBuilder::single_handler();
    let mut fixture = StoreFixture::new(harness, free.clone()).await;
    fixture.emit_copies(6, new_event("record")).await;
    let running = fixture.claim(3).await;
    fixture.register(free.concurrency_limit("index", 2)).await;
    assert!(fixture.claim(10).await.is_empty());
    for task in &running[..2] {
        fixture.succeed(task).await;
    }
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn a_handler_at_its_limit_does_not_delay_other_handlers(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(500, new_event("record").with_priority(9000)).await;
    fixture.claim(2).await;
    fixture.emit_copies(5, new_event("note").with_priority(1)).await;
    let claimed = fixture.claim(5).await;
    assert_eq!(claimed.len(), 5);
    assert!(claimed.iter().all(|task| task.handler == handler_name("notify")));
}

/// Prefetching a limited handler does not take slots from other handlers.
pub async fn prefetch_skips_a_handler_at_its_limit(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().concurrency_limit("index", 1)).await;
    fixture.emit_copies(10, new_event("record")).await;
    fixture.emit_copies(20, new_event("note")).await;
    for _ in 0..4 {
        fixture.schedule_tasks(4).await;
        assert_eq!(fixture.claim(4).await.len(), 4);
    }
}

/// Prefetching other handlers does not starve a limited one.
pub async fn prefetching_other_handlers_does_not_starve_a_limited_one(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().concurrency_limit("index", 1)).await;
    fixture.emit_copies(20, new_event("record")).await;
    fixture.emit_copies(200, new_event("note")).await;
    let mut limited_count = 0;
    for _ in 0..20 {
        fixture.schedule_tasks(8).await;
        let claimed = fixture.claim(4).await;
        assert_eq!(claimed.len(), 4);
        limited_count += claimed.iter().filter(|task| task.handler == handler_name("index")).count();
        for task in &claimed {
            fixture.succeed(task).await;
        }
    }
    assert!(limited_count >= 10, "{limited_count} tasks of the limited handler in 20 rounds");
}

pub async fn concurrency_limit_survives_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(6, new_event("record")).await;
    let running = fixture.claim(10).await;
    let fixture = fixture.reopen().await;
    assert!(fixture.claim(10).await.is_empty());
    fixture.succeed(&running[0]).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn lanes_and_concurrency_limits_both_apply(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for key in ["a", "b", "c"] {
        fixture.emit_copies(2, new_event("record").with_key(key)).await;
    }
    let mut ran = 0;
    loop {
        let running = fixture.claim(10).await;
        assert!(running.len() <= 2);
        if running.len() == 2 {
            assert_ne!(running[0].event().key, running[1].event().key);
        }
        for task in &running {
            fixture.succeed(task).await;
            ran += 1;
        }
        if running.is_empty() {
            break;
        }
    }
    assert_eq!(ran, 6);
}

pub async fn concurrency_limit_applies_to_sources_and_pull_workers(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .route("record", &["remote"])
        .collection("shop/orders", 100)
        .collection("shop/items", 100)
        .concurrency_limit("shop", 1)
        .concurrency_limit("remote", 2)
        .pulled_by_workers("remote");
    let fixture = StoreFixture::new(harness, registration).await;
    fixture.request_new_collection_run("shop/orders").await;
    fixture.request_new_collection_run("shop/items").await;
    let run = fixture.claim(10).await;
    assert_eq!(run.len(), 1);
    fixture.succeed(&run[0]).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
    for tenant_name in ["default", "shop"] {
        fixture.emit_copies(3, new_event("record").for_tenant(tenant_name)).await;
    }
    let running = fixture.claim_as_pull_worker(&["remote"], 10).await;
    assert_eq!(running.len(), 2);
    fixture.succeed(&running[0]).await;
    assert_eq!(fixture.claim_as_pull_worker(&["remote"], 10).await.len(), 1);
}

/// A blocked task uses no slot, and lifting the rule frees no slot a second time.
pub async fn rules_and_concurrency_limits_both_apply(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(6, new_event("record")).await;
    let running = fixture.claim(1).await;
    fixture.schedule_tasks(6).await;
    fixture.set_pause_rule("index").await;
    assert!(fixture.claim(10).await.is_empty());
    fixture.lift_pause_rule("index").await;
    assert_eq!(fixture.claim(10).await.len(), 1);
    fixture.succeed(&running[0]).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
}

/// A fixture with three tenants, each with one task of a handler that is limited to one running task.
async fn fixture_with_three_tenants(
    harness: &dyn Harness,
    registration: RegistrationBuilder,
) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, registration.concurrency_limit("index", 1)).await;
    for name in ["a", "b", "c"] {
        fixture.emit(new_event("record").for_tenant(name)).await;
    }
    fixture
}

pub async fn cancelling_the_task_of_the_next_tenant_in_turn_lets_another_tenant_run(harness: &dyn Harness) {
    let fixture = fixture_with_three_tenants(harness, RegistrationBuilder::single_handler()).await;
    let first = fixture.claim_one().await;
    assert!(fixture.claim(10).await.is_empty());
    fixture.succeed(&first).await;
    let second = TaskFilter { tenant: Some(tenant("b")), ..TaskFilter::default() };
    let second = fixture.list_tasks(&second).await.remove(0);
    assert_eq!(fixture.cancel_task(&second.id).await, Ok(()));
    assert_eq!(fixture.claim(10).await.len(), 1, "the third tenant's task is claimed");
}

pub async fn a_pull_worker_of_one_tenant_does_not_wait_for_other_tenants(harness: &dyn Harness) {
    let fixture =
        fixture_with_three_tenants(harness, RegistrationBuilder::single_handler().pulled_by_workers("index"))
            .await;
    let first = fixture.claim_one_as_pull_worker("index").await;
    assert!(fixture.claim_as_pull_worker(&["index"], 10).await.is_empty());
    fixture.succeed(&first).await;
    let claimant =
        Claimant::PullWorker { lease_until: fixture.seconds_from_now(LEASE_SECS), tenant: Some(tenant("c")) };
    let claim = ClaimRequest { claimant, ..fixture.pull_worker_claim_request(&["index"], 10) };
    let claimed = expect_ok(fixture.store.claim_tasks(claim, fixture.now).await).tasks;
    assert_eq!(claimed.len(), 1);
    assert!(fixture.claim_as_pull_worker(&["index"], 10).await.is_empty(), "and the limit holds");
}
