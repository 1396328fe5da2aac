//! Nodes that die or leave, and the rescue of their tasks.

use pointsman_core::TaskStatus;
use pointsman_core::store::{AttemptResult, ClaimRequest, Claimant};
use pointsman_core::task::{AttemptOutcome, ErrorReason, TaskCommandError};

use crate::Harness;
use crate::fixture::*;

/// Joins another node, which replaces the fixture's.
async fn join_replacement_node(fixture: &mut StoreFixture<'_>) {
    fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
}

pub async fn every_join_gets_a_new_node_id(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut nodes = vec![fixture.node_id];
    for _ in 0..3 {
        nodes.push(expect_ok(fixture.store.join_node("first", fixture.now).await));
    }
    let fixture = fixture.reopen().await;
    nodes.push(fixture.node_id);
    nodes.sort();
    assert_strictly_ascending(&nodes);
}

pub async fn a_node_without_heartbeats_loses_its_tasks(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(3, new_event("record").with_key("a")).await;
    let stale_attempt = fixture.claim_one().await;
    fixture.advance_clock(LEASE_SECS - 1);
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, [], "not before its lease is over");
    fixture.advance_clock(2);
    join_replacement_node(&mut fixture).await;
    assert_eq!(
        fixture.rescue_tasks().await.freed_tasks_with_status,
        [(stale_attempt.id.clone(), TaskStatus::New)]
    );
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, [], "once");
    assert_eq!(
        fixture.finish_attempt(finished_attempt(&stale_attempt, success())).await,
        Err(TaskCommandError::WrongState(TaskStatus::New))
    );
    let again = fixture.claim_one().await;
    assert_eq!((&again.id, again.attempt, again.retries), (&stale_attempt.id, 2, 0), "a crash is no retry");
    assert!(again.fence > stale_attempt.fence);
    assert_eq!(
        fixture.finish_attempt(finished_attempt(&stale_attempt, success())).await,
        Err(TaskCommandError::StaleFence)
    );
    fixture.succeed(&again).await;
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), event_ids_of_receipts(&events[1..]));
    let ends: Vec<_> =
        fixture.read_task(&stale_attempt.id).await.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(ends, [AttemptOutcome::Crashed, AttemptOutcome::Succeeded]);
}

pub async fn a_node_with_heartbeats_keeps_its_tasks(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record")).await;
    let task = fixture.claim_one().await;
    for _ in 0..10 {
        fixture.advance_clock(LEASE_SECS - 5);
        assert!(fixture.send_heartbeat().await);
        assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, []);
    }
    assert_eq!(fixture.succeed(&task).await.status, TaskStatus::Done);
}

pub async fn a_rescue_frees_only_the_dead_nodes_tasks(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(4, new_event("record")).await;
    let dead = fixture.claim(2).await;
    join_replacement_node(&mut fixture).await;
    let alive = fixture.claim(2).await;
    fixture.advance_clock(LEASE_SECS + 1);
    assert!(fixture.send_heartbeat().await);
    let mut freed: Vec<_> =
        fixture.rescue_tasks().await.freed_tasks_with_status.into_iter().map(|(id, _)| id).collect();
    freed.sort();
    let mut want: Vec<_> = dead.iter().map(|task| task.id.clone()).collect();
    want.sort();
    assert_eq!(freed, want);
    for task in &alive {
        assert_eq!(fixture.succeed(task).await.status, TaskStatus::Done);
    }
}

pub async fn a_node_can_query_which_of_its_attempts_were_lost(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(5, new_event("record")).await;
    let tasks = fixture.claim(5).await;
    let [kept, cancelled, returned, done, _] = tasks.as_slice() else { panic!("{tasks:?}") };
    let claimed_attempts: Vec<_> = tasks.iter().map(|task| (task.seq, task.fence)).collect();
    assert!(expect_ok(fixture.store.find_lost_attempts(claimed_attempts.clone()).await).is_empty());
    assert!(expect_ok(fixture.store.find_lost_attempts(vec![]).await).is_empty());
    assert_eq!(fixture.cancel_task(&cancelled.id).await, Ok(()));
    fixture.release_task(returned).await;
    fixture.succeed(done).await;
    let mut lost = expect_ok(fixture.store.find_lost_attempts(claimed_attempts.clone()).await);
    lost.sort();
    assert_eq!(lost, [cancelled.fence, returned.fence, done.fence]);
    fixture.advance_clock(LEASE_SECS + 1);
    join_replacement_node(&mut fixture).await;
    fixture.rescue_tasks().await;
    let again = fixture.claim(5).await;
    assert!(again.iter().any(|task| task.seq == kept.seq), "it runs elsewhere");
    assert_eq!(expect_ok(fixture.store.find_lost_attempts(claimed_attempts).await).len(), 5);
    let claimed_attempts = again.iter().map(|task| (task.seq, task.fence)).collect();
    assert!(
        expect_ok(fixture.store.find_lost_attempts(claimed_attempts).await).is_empty(),
        "a task of later attempts is theirs"
    );
}

pub async fn an_expired_node_can_neither_send_heartbeats_nor_claim(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let dead = fixture.node_id;
    assert!(fixture.send_heartbeat().await);
    fixture.advance_clock(LEASE_SECS + 1);
    join_replacement_node(&mut fixture).await;
    fixture.rescue_tasks().await;
    assert!(!expect_ok(fixture.store.record_heartbeat(dead, fixture.now).await));
    // No rescue would free tasks that an expired node claims, so it gets none.
    fixture.emit(new_event("record")).await;
    let claim = ClaimRequest { claimant: Claimant::Node(dead), ..fixture.claim_request(8) };
    assert!(expect_ok(fixture.store.claim_tasks(claim, fixture.now).await).tasks.is_empty());
    assert_eq!(fixture.claim(8).await.len(), 1);
    assert!(fixture.send_heartbeat().await);
    assert!(
        !expect_ok(fixture.store.record_heartbeat(fixture.node_id + 1000, fixture.now).await),
        "a node that never joined has no heartbeat"
    );
}

pub async fn a_task_fails_after_three_crashes(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let id = &events[0].tasks[0];
    let mut statuses = Vec::new();
    for _ in 0..3 {
        assert_eq!(fixture.claim_one().await.id, *id);
        fixture.advance_clock(LEASE_SECS + 1);
        join_replacement_node(&mut fixture).await;
        statuses.extend(
            fixture.rescue_tasks().await.freed_tasks_with_status.into_iter().map(|(_, status)| status),
        );
    }
    assert_eq!(statuses, [TaskStatus::New, TaskStatus::New, TaskStatus::Error]);
    let task = fixture.read_task(id).await;
    assert_eq!(task.lifecycle.state.error_reason(), Some(ErrorReason::Crashed));
    assert_eq!((task.lifecycle.crashes, task.lifecycle.retries, task.attempts.len()), (3, 0, 3));
    assert_eq!(
        event_ids_of_tasks(&fixture.run_all_ready_tasks().await),
        [events[1].id],
        "and its lane continues"
    );
}

pub async fn tasks_of_a_node_that_left_are_rescued(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(2, new_event("record")).await;
    let tasks = fixture.claim(2).await;
    fixture.finish_with_result(&tasks[0], AttemptResult::Released).await;
    let left = fixture.node_id;
    expect_ok(fixture.store.remove_node(left, fixture.now).await);
    assert!(!expect_ok(fixture.store.record_heartbeat(left, fixture.now).await));
    join_replacement_node(&mut fixture).await;
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.send_heartbeat().await;
    fixture.rescue_tasks().await;
    let mut claimed = event_ids_of_tasks(&fixture.claim(10).await);
    claimed.sort();
    assert_eq!(claimed, event_ids_of_tasks(&tasks), "the task that it released, and the one that it did not");
}

/// A node may have left or expired without knowing it, and still claim; its tasks must be freed.
pub async fn no_task_gets_stuck_with_an_expired_or_left_node(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let (evicted, left) = (fixture.node_id, expect_ok(fixture.store.join_node("left", fixture.now).await));
    expect_ok(fixture.store.remove_node(left, fixture.now).await);
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.rescue_tasks().await;
    let events = fixture.emit_copies(2, new_event("record")).await;
    for node in [evicted, left] {
        fixture.node_id = node;
        fixture.claim(1).await;
        let batches = vec![new_emit_batch([new_event("note")])];
        expect_ok(fixture.store.append(batches, Some(fixture.claim_request(1)), fixture.now).await);
    }
    join_replacement_node(&mut fixture).await;
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.send_heartbeat().await;
    fixture.rescue_tasks().await;
    let mut claimed = event_ids_of_tasks(&fixture.claim(10).await);
    claimed.sort();
    assert_eq!(claimed, event_ids_of_receipts(&events));
}

/// Prefetched tasks belong to no node: when a node dies, the other nodes claim them.
pub async fn prefetched_tasks_survive_a_nodes_death(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(2, new_event("record")).await;
    fixture.schedule_tasks(2).await;
    fixture.advance_clock(LEASE_SECS + 1);
    join_replacement_node(&mut fixture).await;
    assert_eq!(fixture.rescue_tasks().await.freed_tasks_with_status, []);
    assert_eq!(fixture.claim(10).await.len(), 2);
}

pub async fn repeated_crashes_halt_the_lane_of_a_halting_handler(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::single_handler().halt_on_error("index")).await;
    fixture.emit_copies(2, new_event("record").with_key("a")).await;
    for _ in 0..3 {
        fixture.claim_one().await;
        fixture.advance_clock(LEASE_SECS + 1);
        join_replacement_node(&mut fixture).await;
        fixture.rescue_tasks().await;
    }
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.read_queue("index").await.halted_count, 1);
}
