//! Which tasks a claim returns, and when.

use std::sync::Arc;

use pointsman_core::TaskStatus;
use pointsman_core::store::{ClaimRequest, Claimant};

use crate::Harness;
use crate::fixture::*;

pub async fn a_claim_returns_only_tasks_of_the_handlers_it_names(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    fixture.emit_copies(3, new_event("record")).await;
    let claimed = fixture.claim_for_handlers(&["notify"], 10).await;
    assert_eq!(claimed.len(), 3);
    assert!(claimed.iter().all(|task| task.handler == handler_name("notify")));
    assert!(fixture.claim_for_handlers(&["notify"], 10).await.is_empty());
    assert!(fixture.claim_for_handlers(&["unheard-of"], 10).await.is_empty());
    assert!(fixture.claim_for_handlers(&[], 10).await.is_empty());
    assert_eq!(fixture.claim_for_handlers(&["index"], 10).await.len(), 3);
}

pub async fn a_claim_returns_at_most_the_requested_number(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(7, new_event("record")).await;
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let claims = fixture.claim_with_remaining_work(2).await;
        sizes.push((claims.tasks.len(), claims.has_more));
    }
    assert_eq!(sizes, [(2, true), (2, true), (2, true), (1, false)]);
    assert!(fixture.claim(0).await.is_empty());
}

/// Tasks behind a claimed head are not ready, so `has_more` is false.
pub async fn has_more_is_false_if_no_other_task_is_ready(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(5, new_event("record").with_key("a")).await;
    fixture.emit(new_event("record").due_at(fixture.seconds_from_now(60))).await;
    let claims = fixture.claim_with_remaining_work(1).await;
    assert_eq!((claims.tasks.len(), claims.has_more), (1, false));
}

pub async fn has_more_is_true_while_prefetched_tasks_remain(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(3, new_event("record")).await;
    assert_eq!(fixture.schedule_tasks(3).await, 3);
    let claims = fixture.claim_with_remaining_work(1).await;
    assert_eq!((claims.tasks.len(), claims.has_more), (1, true));
    let claims = fixture.claim_with_remaining_work(2).await;
    assert_eq!((claims.tasks.len(), claims.has_more), (2, false));
}

pub async fn a_claimed_task_is_locked_by_the_claiming_node(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record").with_key("a").with_value("{\"n\":1}")).await;
    fixture.advance_clock(5);
    let claimed = fixture.claim_one().await;
    assert_eq!((claimed.attempt, claimed.retries, claimed.out_of_order), (1, 0, false));
    assert_eq!(claimed.event().value.as_str(), "{\"n\":1}");
    let task = fixture.read_task(&claimed.id).await;
    assert_eq!((task.seq, &task.handler), (claimed.seq, &claimed.handler));
    let pointsman_core::task::TaskState::Locked(lease) = task.lifecycle.state else {
        panic!("locked, not {:?}", task.lifecycle.state);
    };
    assert_eq!((lease.node, lease.fence, lease.since), (fixture.node_id, claimed.fence, fixture.now));
    assert_eq!(task.started_at, Some(fixture.now));
    assert!(fixture.claim(10).await.is_empty(), "the claimed task is not claimed again");
}

pub async fn claims_go_by_priority_then_age(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut events = Vec::new();
    for priority in [100, 5, 100, 9000, 5] {
        events.push(fixture.emit(new_event("record").with_priority(priority)).await.id);
    }
    let order = event_ids_of_tasks(&fixture.run_all_ready_tasks().await);
    assert_eq!(order, [3, 0, 2, 1, 4].map(|n| events[n]));
    let mut events = Vec::new();
    for priority in [100, 5, 100, 9000, 5] {
        events.push(fixture.emit(new_event("record").with_priority(priority)).await.id);
    }
    let mut order = Vec::new();
    for _ in 0..2 {
        let claimed = fixture.claim(2).await;
        order.extend(event_ids_of_tasks(&claimed));
    }
    order.sort();
    let mut want = [3, 0, 2, 1].map(|n| events[n]);
    want.sort();
    assert_eq!(order, want, "the same when several are claimed at once");
}

pub async fn no_task_is_claimed_before_it_is_due(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let late = fixture.emit(new_event("record").due_at(fixture.seconds_from_now(120))).await;
    let soon = fixture.emit(new_event("record").due_at(fixture.seconds_from_now(60))).await;
    let now = fixture.emit(new_event("record").due_at(fixture.now)).await;
    let past = fixture.emit(new_event("record").due_at(START_TIME.minus(secs(60)))).await;
    let claims = fixture.claim_with_remaining_work(10).await;
    let mut claimed = event_ids_of_tasks(&claims.tasks);
    claimed.sort();
    assert_eq!(claimed, [now.id, past.id]);
    assert_eq!(claims.next_task_due_at, Some(fixture.seconds_from_now(60)));
    fixture.advance_clock(59);
    assert!(fixture.claim(10).await.is_empty());
    fixture.advance_clock(1);
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!(event_ids_of_tasks(&claims.tasks), [soon.id]);
    assert_eq!(claims.next_task_due_at, Some(fixture.seconds_from_now(60)));
    fixture.advance_clock(60);
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!(
        (event_ids_of_tasks(&claims.tasks), claims.next_task_due_at, claims.has_more),
        (vec![late.id], None, false)
    );
}

pub async fn claims_report_the_due_times_of_retries_and_snoozes(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(2, new_event("record")).await;
    let claimed = fixture.claim(2).await;
    fixture.snooze_task(&claimed[0], 300).await;
    assert_eq!(
        fixture.claim_with_remaining_work(10).await.next_task_due_at,
        Some(fixture.seconds_from_now(300))
    );
    fixture.fail(&claimed[1]).await;
    assert_eq!(
        fixture.claim_with_remaining_work(10).await.next_task_due_at,
        Some(fixture.seconds_from_now(RETRY_DELAY_SECS))
    );
}

/// A claim may return some of the due tasks, as long as it reports that there are more.
pub async fn many_tasks_due_at_once_are_all_claimed(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(2500, new_event("record").due_at(fixture.seconds_from_now(60))).await;
    fixture.advance_clock(60);
    let mut claimed = 0;
    loop {
        let claims = fixture.claim_with_remaining_work(10_000).await;
        claimed += claims.tasks.len();
        let due = claims.next_task_due_at.is_some_and(|due| due <= fixture.now);
        if !claims.has_more && !due {
            break;
        }
        assert!(!claims.tasks.is_empty(), "`has_more` is set, but no task is returned");
    }
    assert_eq!(claimed, 2500);
}

pub async fn due_times_survive_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let delayed = fixture.emit(new_event("record").due_at(fixture.seconds_from_now(60))).await;
    let mut fixture = fixture.reopen().await;
    let claims = fixture.claim_with_remaining_work(10).await;
    assert_eq!((claims.tasks.len(), claims.next_task_due_at), (0, Some(fixture.seconds_from_now(60))));
    fixture.advance_clock(60);
    assert_eq!(event_ids_of_tasks(&fixture.claim(10).await), [delayed.id]);
}

pub async fn scheduling_prefetches_at_most_the_requested_total(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(10, new_event("record")).await;
    assert_eq!(fixture.schedule_tasks(2).await, 2);
    assert_eq!(fixture.schedule_tasks(2).await, 2, "in total, not per call");
    assert_eq!(fixture.schedule_tasks(4).await, 4);
    assert_eq!(fixture.read_queue("index").await.scheduled_count, 4);
    fixture.claim(3).await;
    assert_eq!(fixture.schedule_tasks(4).await, 4);
    assert_eq!(fixture.schedule_tasks(100).await, 7);
}

pub async fn no_task_is_prefetched_before_it_is_due(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let delayed = fixture.emit(new_event("record").due_at(fixture.seconds_from_now(60))).await;
    assert_eq!(fixture.schedule_tasks(10).await, 0);
    fixture.advance_clock(60);
    assert_eq!(fixture.schedule_tasks(10).await, 1);
    assert_eq!(fixture.read_task_status(&delayed.tasks[0]).await, TaskStatus::Scheduled);
}

pub async fn prefetched_tasks_are_claimed_first(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let scheduled = fixture.emit_copies(2, new_event("record")).await;
    assert_eq!(fixture.schedule_tasks(2).await, 2);
    let urgent = fixture.emit(new_event("record").with_priority(9000)).await;
    let mut first = event_ids_of_tasks(&fixture.claim(2).await);
    first.sort();
    assert_eq!(first, event_ids_of_receipts(&scheduled));
    assert_eq!(event_ids_of_tasks(&fixture.claim(2).await), [urgent.id]);
}

pub async fn prefetched_tasks_survive_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(3, new_event("record")).await;
    fixture.schedule_tasks(2).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.schedule_tasks(0).await, 2);
    assert_eq!(fixture.claim(10).await.len(), events.len());
}

pub async fn fences_strictly_increase(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(4, new_event("record")).await;
    let mut fences = Vec::new();
    for _ in 0..3 {
        let claimed = fixture.claim(2).await;
        let mut new: Vec<_> = claimed.iter().map(|task| task.fence).collect();
        new.sort();
        fences.extend(new);
        for task in &claimed {
            fixture.release_task(task).await;
        }
    }
    let fixture = fixture.reopen().await;
    let mut new: Vec<_> = fixture.claim(4).await.iter().map(|task| task.fence).collect();
    new.sort();
    fences.extend(new);
    assert_strictly_ascending(&fences);
}

pub async fn an_append_can_claim_the_tasks_it_creates(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let old = fixture.emit(new_event("record")).await;
    let batches = vec![new_emit_batch([new_event("record"), new_event("record")])];
    let (answers, claims) =
        expect_ok(fixture.store.append(batches, Some(fixture.claim_request(2)), fixture.now).await);
    let new = answers.into_iter().next().expect("one answer").expect("accepted").events;
    assert_eq!(event_ids_of_tasks(&claims.tasks), [old.id, new[0].id], "the older task first");
    assert!(claims.has_more);
    assert_eq!(fixture.read_task_status(&claims.tasks[1].id).await, TaskStatus::Locked);
    assert_eq!(event_ids_of_tasks(&fixture.claim(10).await), [new[1].id]);
}

pub async fn finishing_an_attempt_can_claim_the_tasks_it_unblocks(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let head = fixture.claim_one().await;
    let attempts = vec![finished_attempt(&head, success())];
    let (answers, claims) =
        expect_ok(fixture.store.finish_attempts(attempts, Some(fixture.claim_request(5)), fixture.now).await);
    assert_eq!(answers[0].as_ref().map(|finished| finished.status), Ok(TaskStatus::Done));
    assert_eq!(event_ids_of_tasks(&claims.tasks), [events[1].id]);
    assert!(claims.tasks[0].fence > head.fence);
}

/// A call that could claim does not claim unless it is given a claim.
pub async fn an_append_without_a_claim_claims_nothing(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let (_, claims) =
        expect_ok(fixture.store.append(vec![new_emit_batch([new_event("record")])], None, fixture.now).await);
    assert!(claims.tasks.is_empty());
    assert_eq!(fixture.read_queue("index").await.running_count, 0);
}

pub async fn racing_nodes_never_claim_the_same_task(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(100, new_event("record")).await;
    let handlers = Arc::new(fixture.registration.handler_names());
    let mut racers = Vec::new();
    for n in 0..10 {
        let node = expect_ok(fixture.store.join_node(&format!("node-{n}"), fixture.now).await);
        let claim =
            ClaimRequest { claimant: Claimant::Node(node), handlers: Arc::clone(&handlers), max_tasks: 13 };
        let (store, now) = (Arc::clone(&fixture.store), fixture.now);
        racers.push(tokio::spawn(async move { expect_ok(store.claim_tasks(claim, now).await).tasks }));
    }
    let mut claimed_seqs = Vec::new();
    for racer in racers {
        claimed_seqs.extend(racer.await.expect("the racing call succeeded").iter().map(|task| task.seq));
    }
    assert_eq!(claimed_seqs.len(), 100);
    claimed_seqs.sort();
    assert_strictly_ascending(&claimed_seqs);
}
