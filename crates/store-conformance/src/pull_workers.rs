//! Pull workers: remote processes that claim tasks, each task under a lease of its own.

use std::sync::Arc;

use pointsman_core::store::{AttemptLogLine, ClaimRequest, Claimant, ClaimedTask};
use pointsman_core::task::{AttemptOutcome, ErrorReason, TaskCommandError, TaskSeq, TaskState};
use pointsman_core::{TaskStatus, Tenant};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().route("record", &["index", "remote"]).pulled_by_workers("remote")
}

/// A registration whose only handler is pulled by workers.
fn pulled_only_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().route("record", &["remote"]).pulled_by_workers("remote")
}

async fn fixture_with_task_claimed_by_worker(harness: &dyn Harness) -> (StoreFixture<'_>, ClaimedTask) {
    let fixture = StoreFixture::new(harness, pulled_only_registration()).await;
    fixture.emit(new_event("record").with_key("a").with_value("[1]")).await;
    let task = fixture.claim_one_as_pull_worker("remote").await;
    (fixture, task)
}

fn handler_names_of_tasks(tasks: &[ClaimedTask]) -> Vec<&str> {
    tasks.iter().map(|task| task.handler.as_str()).collect()
}

pub async fn nodes_do_not_claim_pulled_tasks(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!((handler_names_of_tasks(&claims.tasks), claims.has_more), (vec!["index"], false));
    let batches = vec![new_emit_batch([new_event("record")])];
    let (_, claims) =
        expect_ok(fixture.store.append(batches, Some(fixture.claim_request(10)), fixture.now).await);
    assert_eq!(
        (handler_names_of_tasks(&claims.tasks), claims.has_more),
        (vec!["index"], false),
        "nor by the claim of an append"
    );
    let attempts = vec![finished_attempt(&claims.tasks[0], success())];
    let (_, claims) = expect_ok(
        fixture.store.finish_attempts(attempts, Some(fixture.claim_request(10)), fixture.now).await,
    );
    assert!(claims.tasks.is_empty() && !claims.has_more, "nor by the claim of a finish");
    fixture.schedule_tasks(10).await;
    assert!(fixture.claim(10).await.is_empty(), "nor after prefetching");
    assert_eq!(fixture.claim_as_pull_worker(&["remote"], 10).await.len(), 2);
}

pub async fn workers_claim_only_pulled_tasks(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(3, new_event("record")).await;
    let claim = fixture.pull_worker_claim_request(&["index", "remote", "unheard-of"], 2);
    let claims = expect_ok(fixture.store.claim_tasks(claim.clone(), fixture.now).await);
    assert_eq!((handler_names_of_tasks(&claims.tasks), claims.has_more), (vec!["remote"; 2], true));
    let claims = expect_ok(fixture.store.claim_tasks(claim.clone(), fixture.now).await);
    assert_eq!(
        (handler_names_of_tasks(&claims.tasks), claims.has_more),
        (vec!["remote"], false),
        "index is not pulled"
    );
    let batches = vec![new_emit_batch([new_event("record")])];
    let (_, claims) = expect_ok(fixture.store.append(batches, Some(claim), fixture.now).await);
    assert_eq!(handler_names_of_tasks(&claims.tasks), ["remote"]);
    assert_eq!(fixture.claim(10).await.len(), 4, "the tasks of nodes");
}

pub async fn a_task_claimed_by_a_worker_has_a_lease_and_can_finish(harness: &dyn Harness) {
    let (fixture, task) = fixture_with_task_claimed_by_worker(harness).await;
    assert_eq!((task.attempt, task.event().value.as_str()), (1, "[1]"));
    let stored = fixture.read_task(&task.id).await;
    let TaskState::Locked(lease) = stored.lifecycle.state else {
        panic!("locked, not {:?}", stored.lifecycle.state)
    };
    assert_eq!(
        (lease.fence, lease.since, lease.until),
        (task.fence, fixture.now, Some(fixture.seconds_from_now(LEASE_SECS)))
    );
    assert!(
        fixture.claim_as_pull_worker(&["remote"], 10).await.is_empty(),
        "the claimed task is not claimed again"
    );
    let lines = vec![AttemptLogLine {
        task_seq: task.seq,
        fence: task.fence,
        line: info_log_line(fixture.now, "at it"),
    }];
    assert_eq!(expect_ok(fixture.store.append_log_lines(lines).await), 1);
    assert_eq!(fixture.succeed(&task).await.status, TaskStatus::Done);
    assert_eq!(fixture.read_log_messages(&task.id).await, ["at it"]);
}

pub async fn a_renewed_lease_does_not_expire(harness: &dyn Harness) {
    let (mut fixture, task) = fixture_with_task_claimed_by_worker(harness).await;
    for _ in 0..5 {
        fixture.advance_clock(LEASE_SECS - 5);
        assert_eq!(fixture.renew_lease(&task, LEASE_SECS).await, Ok(()));
        assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, []);
    }
    let stored = fixture.read_task(&task.id).await;
    assert!(
        matches!(stored.lifecycle.state, TaskState::Locked(lease) if lease.until == Some(fixture.seconds_from_now(LEASE_SECS)))
    );
    let mut fixture = fixture.reopen().await;
    fixture.advance_clock(LEASE_SECS - 1);
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, []);
    assert_eq!(fixture.renew_lease(&task, LEASE_SECS).await, Ok(()), "also after a restart");
    fixture.advance_clock(LEASE_SECS + 1);
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, [(task.id, TaskStatus::New)]);
}

pub async fn an_expired_lease_counts_as_a_crash(harness: &dyn Harness) {
    let (mut fixture, stale_attempt) = fixture_with_task_claimed_by_worker(harness).await;
    let behind = fixture.emit(new_event("record").with_key("a")).await;
    fixture.advance_clock(LEASE_SECS + 1);
    assert_eq!(
        fixture.rescue_tasks().await.freed_tasks_with_status,
        [(stale_attempt.id.clone(), TaskStatus::New)]
    );
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, [], "once");
    let again = fixture.claim_as_pull_worker(&["remote"], 10).await;
    assert_eq!(again.len(), 1, "its lane still waits for it");
    assert_eq!((&again[0].id, again[0].attempt, again[0].retries), (&stale_attempt.id, 2, 0));
    let life = fixture.read_task(&stale_attempt.id).await.lifecycle;
    assert_eq!((life.crashes, life.retries), (1, 0), "counted apart from its retries");
    fixture.succeed(&again[0]).await;
    assert_eq!(event_ids_of_tasks(&fixture.claim_as_pull_worker(&["remote"], 10).await), [behind.id]);
    let ends: Vec<_> =
        fixture.read_task(&stale_attempt.id).await.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(ends, [AttemptOutcome::Crashed, AttemptOutcome::Succeeded]);
}

pub async fn a_task_fails_after_three_expired_leases(harness: &dyn Harness) {
    let (mut fixture, task) = fixture_with_task_claimed_by_worker(harness).await;
    let mut statuses = Vec::new();
    for round in 0..3 {
        if round > 0 {
            assert_eq!(fixture.claim_one_as_pull_worker("remote").await.id, task.id);
        }
        fixture.advance_clock(LEASE_SECS + 1);
        statuses.extend(
            fixture.rescue_tasks().await.freed_tasks_with_status.into_iter().map(|(_, status)| status),
        );
    }
    assert_eq!(statuses, [TaskStatus::New, TaskStatus::New, TaskStatus::Error]);
    assert_eq!(fixture.read_task(&task.id).await.lifecycle.state.error_reason(), Some(ErrorReason::Crashed));
}

/// A worker that lost its lease cannot renew or finish, and gets an error.
pub async fn a_worker_whose_lease_expired_cannot_renew_or_finish(harness: &dyn Harness) {
    let (mut fixture, stale_attempt) = fixture_with_task_claimed_by_worker(harness).await;
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.rescue_tasks().await;
    let gone = Err(TaskCommandError::WrongState(TaskStatus::New));
    assert_eq!(fixture.renew_lease(&stale_attempt, LEASE_SECS).await, gone);
    assert_eq!(fixture.finish_attempt(finished_attempt(&stale_attempt, success())).await.map(drop), gone);
    let owner = fixture.claim_one_as_pull_worker("remote").await;
    assert!(owner.fence > stale_attempt.fence);
    let before = fixture.read_task(&owner.id).await;
    assert_eq!(fixture.renew_lease(&stale_attempt, 1000).await, Err(TaskCommandError::StaleFence));
    assert_eq!(
        fixture.finish_attempt(finished_attempt(&stale_attempt, permanent_failure())).await.map(drop),
        Err(TaskCommandError::StaleFence)
    );
    let lines = vec![AttemptLogLine {
        task_seq: stale_attempt.seq,
        fence: stale_attempt.fence,
        line: info_log_line(fixture.now, "still here"),
    }];
    assert_eq!(expect_ok(fixture.store.append_log_lines(lines).await), 0);
    assert_eq!(fixture.read_task(&owner.id).await, before);
    assert_eq!(fixture.succeed(&owner).await.status, TaskStatus::Done);
    assert_eq!(
        fixture.renew_lease(&owner, LEASE_SECS).await,
        Err(TaskCommandError::WrongState(TaskStatus::Done))
    );
}

/// A worker learns of a cancellation when its next renewal is refused.
pub async fn renewing_the_lease_of_a_cancelled_task_is_refused(harness: &dyn Harness) {
    let (fixture, task) = fixture_with_task_claimed_by_worker(harness).await;
    assert_eq!(fixture.cancel_task(&task.id).await, Ok(()));
    assert_eq!(
        fixture.renew_lease(&task, LEASE_SECS).await,
        Err(TaskCommandError::WrongState(TaskStatus::Error))
    );
    let never = expect_ok(
        fixture
            .store
            .renew_pull_worker_lease(TaskSeq(i64::MAX), task.fence, fixture.seconds_from_now(LEASE_SECS))
            .await,
    );
    assert_eq!(never, Err(TaskCommandError::NoSuchTask));
}

pub async fn a_worker_can_claim_for_one_tenant(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, pulled_only_registration()).await;
    for tenant_name in ["default", "shop", "shop", "depot"] {
        fixture.emit(new_event("record").for_tenant(tenant_name)).await;
    }
    let claimant_for = |tenant_name: Option<Tenant>| Claimant::PullWorker {
        lease_until: fixture.seconds_from_now(LEASE_SECS),
        tenant: tenant_name,
    };
    let claim = |tenant_name| ClaimRequest {
        claimant: claimant_for(tenant_name),
        ..fixture.pull_worker_claim_request(&["remote"], 10)
    };
    let claims = expect_ok(fixture.store.claim_tasks(claim(Some(tenant("shop"))), fixture.now).await);
    let tenants: Vec<_> = claims.tasks.iter().map(|task| task.event().tenant.as_str()).collect();
    assert_eq!(
        (tenants, claims.has_more),
        (vec!["shop"; 2], false),
        "tasks of other tenants do not count as more"
    );
    let claims = expect_ok(fixture.store.claim_tasks(claim(Some(tenant("nobody"))), fixture.now).await);
    assert!(claims.tasks.is_empty() && !claims.has_more);
    assert_eq!(expect_ok(fixture.store.claim_tasks(claim(None), fixture.now).await).tasks.len(), 2);
}

pub async fn a_nodes_death_does_not_affect_a_workers_lease(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    let (mine, theirs) = (fixture.claim_one().await, fixture.claim_one_as_pull_worker("remote").await);
    assert_eq!(fixture.renew_lease(&theirs, 10 * LEASE_SECS).await, Ok(()));
    fixture.advance_clock(LEASE_SECS + 1);
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, [(mine.id, TaskStatus::New)]);
    assert_eq!(fixture.succeed(&theirs).await.status, TaskStatus::Done);
}

pub async fn an_expired_worker_lease_does_not_affect_a_nodes_task(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    let (mine, theirs) = (fixture.claim_one().await, fixture.claim_one_as_pull_worker("remote").await);
    fixture.advance_clock(LEASE_SECS + 1);
    assert!(fixture.send_heartbeat().await);
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, [(theirs.id, TaskStatus::New)]);
    assert_eq!(fixture.succeed(&mine).await.status, TaskStatus::Done);
}

pub async fn a_worker_claim_reports_the_next_due_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, pulled_only_registration()).await;
    let delayed = fixture.emit(new_event("record").due_at(fixture.seconds_from_now(60))).await;
    let claims = expect_ok(
        fixture.store.claim_tasks(fixture.pull_worker_claim_request(&["remote"], 10), fixture.now).await,
    );
    assert_eq!(
        (claims.tasks.len(), claims.has_more, claims.next_task_due_at),
        (0, false, Some(fixture.seconds_from_now(60)))
    );
    fixture.advance_clock(60);
    assert_eq!(event_ids_of_tasks(&fixture.claim_as_pull_worker(&["remote"], 10).await), [delayed.id]);
}

pub async fn workers_claim_prefetched_tasks(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, pulled_only_registration()).await;
    fixture.emit_copies(4, new_event("record")).await;
    fixture.schedule_tasks(2).await;
    assert_eq!(fixture.claim_as_pull_worker(&["remote"], 10).await.len(), 4);
}

pub async fn lanes_and_rules_apply_to_workers(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, pulled_only_registration()).await;
    let events = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    let head = fixture.claim_as_pull_worker(&["remote"], 10).await;
    assert_eq!(event_ids_of_tasks(&head), [events[0].id]);
    let claim = fixture.pull_worker_claim_request(&["remote"], 10);
    let (_, next) = expect_ok(
        fixture
            .store
            .finish_attempts(vec![finished_attempt(&head[0], success())], Some(claim), fixture.now)
            .await,
    );
    assert_eq!(event_ids_of_tasks(&next.tasks), [events[1].id], "an end may claim as a worker, too");
    fixture.succeed(&next.tasks[0]).await;
    fixture.set_pause_rule("remote").await;
    assert!(fixture.claim_as_pull_worker(&["remote"], 10).await.is_empty());
    fixture.lift_pause_rule("remote").await;
    assert_eq!(event_ids_of_tasks(&fixture.claim_as_pull_worker(&["remote"], 10).await), [events[2].id]);
}

pub async fn workers_can_pull_source_runs(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .collection("shop/orders", 100)
        .collection("crm/people", 200)
        .pulled_by_workers("shop")
        .pulled_by_workers("crm");
    let mut fixture = StoreFixture::new(harness, registration).await;
    let (orders, people) = (
        fixture.request_new_collection_run("shop/orders").await,
        fixture.request_new_collection_run("crm/people").await,
    );
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.claim_one_as_pull_worker("shop").await.id, orders);
    assert!(
        fixture.claim_as_pull_worker(&["shop"], 10).await.is_empty(),
        "only tasks of the requested handlers"
    );
    assert_eq!(fixture.claim_as_pull_worker(&["shop", "crm"], 10).await.remove(0).id, people);
    assert!(!fixture.request_collection_run("shop/orders").await.created);
    fixture.advance_clock(LEASE_SECS + 1);
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status.len(), 2);
    assert!(!fixture.request_collection_run("shop/orders").await.created, "the run continues");
    let again = fixture.claim_as_pull_worker(&["shop", "crm"], 1).await;
    assert_eq!(source_collection_names_of_tasks(&again), ["crm/people"], "the more urgent one first");
}

/// A handler can switch between workers and nodes; its waiting tasks switch with it.
pub async fn a_handler_can_switch_between_pull_and_push(harness: &dyn Harness) {
    let plain = RegistrationBuilder::default().route("record", &["remote"]);
    let mut fixture = StoreFixture::new(harness, plain.clone()).await;
    fixture.emit_copies(3, new_event("record")).await;
    fixture.schedule_tasks(1).await;
    fixture.register(plain.clone().pulled_by_workers("remote")).await;
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.claim_as_pull_worker(&["remote"], 2).await.len(), 2);
    fixture.register(plain).await;
    assert!(fixture.claim_as_pull_worker(&["remote"], 10).await.is_empty());
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn racing_workers_never_claim_the_same_task(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, pulled_only_registration()).await;
    fixture.emit_copies(100, new_event("record")).await;
    let mut racers = Vec::new();
    for _ in 0..10 {
        let (store, now, claim) =
            (Arc::clone(&fixture.store), fixture.now, fixture.pull_worker_claim_request(&["remote"], 13));
        racers.push(tokio::spawn(async move { expect_ok(store.claim_tasks(claim, now).await).tasks }));
    }
    let mut seen = Vec::new();
    for racer in racers {
        seen.extend(racer.await.expect("the racing call succeeded").iter().map(|task| task.seq));
    }
    assert_eq!(seen.len(), 100);
    seen.sort();
    assert_strictly_ascending(&seen);
}

/// Each handler that a worker names is served, whatever other workers ask for.
pub async fn a_worker_gets_tasks_of_all_handlers_it_names(harness: &dyn Harness) {
    let registration =
        RegistrationBuilder::default().route("a", &["first"]).route("b", &["second"]).route("c", &["third"]);
    let registration =
        registration.pulled_by_workers("first").pulled_by_workers("second").pulled_by_workers("third");
    let fixture = StoreFixture::new(harness, registration).await;
    for kind in ["a", "b", "c"] {
        fixture.emit_copies(60, new_event(kind)).await;
    }
    let mut second = 0;
    for _ in 0..40 {
        for names in [&["first", "second"][..], &["third"]] {
            for task in fixture.claim_as_pull_worker(names, 1).await {
                second += usize::from(task.handler == handler_name("second"));
                fixture.succeed(&task).await;
            }
        }
    }
    assert!((15..=25).contains(&second), "{second} of 40");
}

pub async fn handler_weights_apply_to_worker_claims(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .route("a", &["light"])
        .route("b", &["heavy"])
        .handler_weight("heavy", 9);
    let fixture =
        StoreFixture::new(harness, registration.pulled_by_workers("light").pulled_by_workers("heavy")).await;
    for kind in ["a", "b"] {
        fixture.emit_copies(150, new_event(kind)).await;
    }
    let served = fixture.claim_as_pull_worker(&["light", "heavy"], 100).await;
    let heavy = served.iter().filter(|task| task.handler == handler_name("heavy")).count();
    assert!((85..=95).contains(&heavy), "{heavy} of 100");
}

/// Tasks served to workers are not charged to the handler when nodes run it.
pub async fn worker_claims_do_not_count_against_a_handler_switched_to_push(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default().route("a", &["was-pulled"]).route("b", &["other"]);
    let mut fixture = StoreFixture::new(harness, registration.clone().pulled_by_workers("was-pulled")).await;
    for _ in 0..50 {
        fixture.emit(new_event("a")).await;
        fixture.succeed(&fixture.claim_one_as_pull_worker("was-pulled").await).await;
    }
    fixture.register(registration).await;
    fixture.emit_copies(60, new_event("b")).await;
    fixture.emit_copies(2, new_event("a")).await;
    let first = fixture.claim(4).await;
    assert!(first.iter().any(|task| task.handler == handler_name("was-pulled")));
}
