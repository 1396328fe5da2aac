//! The one exception to lane order: a failed task that an operator retries runs out of order, at the end of its lane.

use pointsman_core::TaskStatus;
use pointsman_core::store::{ClaimedTask, EmittedEventReceipt};
use pointsman_core::task::{TaskCommandError, TaskSeq};

use crate::Harness;
use crate::fixture::*;

/// A fixture with four events of one object; the task of the first has failed permanently.
async fn fixture_with_one_failed_task(harness: &dyn Harness) -> (StoreFixture<'_>, Vec<EmittedEventReceipt>) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(4, new_event("record").with_key("a")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    (fixture, events)
}

/// A fixture with four events of one object whose tasks have all failed permanently, and their sequence numbers.
async fn fixture_with_four_failed_tasks(
    harness: &dyn Harness,
) -> (StoreFixture<'_>, Vec<EmittedEventReceipt>, Vec<TaskSeq>) {
    let (fixture, events) = fixture_with_one_failed_task(harness).await;
    let mut tasks = vec![fixture.read_task(&events[0].tasks[0]).await.seq];
    for _ in 1..4 {
        let task = fixture.claim_one().await;
        fixture.fail_permanently(&task).await;
        tasks.push(task.seq);
    }
    (fixture, events, tasks)
}

fn out_of_order_flags(tasks: &[ClaimedTask]) -> Vec<bool> {
    tasks.iter().map(|task| task.out_of_order).collect()
}

pub async fn retrying_a_failed_task_marks_it_out_of_order(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_one_failed_task(harness).await;
    fixture.run_all_ready_tasks().await;
    assert_eq!(fixture.retry_task(&events[0].tasks[0]).await, Ok(()));
    let retried = fixture.claim_one().await;
    assert!(retried.out_of_order);
    assert_eq!((retried.event().id, retried.attempt, retried.retries), (events[0].id, 2, 0));
    fixture.succeed(&retried).await;
    let task = fixture.read_task(&events[0].tasks[0]).await;
    assert_eq!(task.lifecycle.state.status(), TaskStatus::Done);
    assert_eq!(task.attempts.len(), 2);
    assert_eq!(fixture.read_queue("index").await.ready_count, 0);
}

pub async fn an_out_of_order_task_goes_to_the_end_of_its_lane(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_one_failed_task(harness).await;
    fixture.retry_task(&events[0].tasks[0]).await.expect("the task has failed permanently");
    let newest = fixture.emit(new_event("record").with_key("a")).await;
    let ran = fixture.run_all_ready_tasks().await;
    let want = [&events[1], &events[2], &events[3], &events[0], &newest].map(|event| event.id);
    assert_eq!(event_ids_of_tasks(&ran), want);
    assert_eq!(out_of_order_flags(&ran), [false, false, false, true, false]);
}

pub async fn an_out_of_order_task_waits_for_the_lane_head(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_one_failed_task(harness).await;
    let head = fixture.claim_one().await;
    assert_eq!(head.event().id, events[1].id);
    fixture.retry_task(&events[0].tasks[0]).await.expect("the task has failed permanently");
    assert!(fixture.claim(10).await.is_empty(), "the head still runs");
    fixture.succeed(&head).await;
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!(event_ids_of_tasks(&ran), [&events[2], &events[3], &events[0]].map(|event| event.id));
}

pub async fn later_tasks_wait_for_an_out_of_order_task(harness: &dyn Harness) {
    let (mut fixture, events) = fixture_with_one_failed_task(harness).await;
    fixture.run_all_ready_tasks().await;
    fixture.retry_task(&events[0].tasks[0]).await.expect("the task has failed permanently");
    let newest = fixture.emit(new_event("record").with_key("a")).await;
    let retried = fixture.claim(10).await;
    assert_eq!(event_ids_of_tasks(&retried), [events[0].id]);
    fixture.fail(&retried[0]).await;
    assert!(fixture.claim(10).await.is_empty(), "also while it waits for its retry");
    fixture.advance_clock(RETRY_DELAY_SECS);
    let again = fixture.claim_one().await;
    assert!(again.out_of_order, "the task stays out of order");
    fixture.succeed(&again).await;
    let ran = fixture.run_all_ready_tasks().await;
    assert_eq!((event_ids_of_tasks(&ran), ran[0].out_of_order), (vec![newest.id], false));
}

pub async fn out_of_order_tasks_run_one_at_a_time_in_the_order_they_were_retried(harness: &dyn Harness) {
    let (fixture, events, tasks) = fixture_with_four_failed_tasks(harness).await;
    let order = [2, 0, 3, 1];
    assert_eq!(fixture.retry_tasks(&order.map(|n| tasks[n])).await, [Ok(()); 4]);
    for n in order {
        let claimed = fixture.claim(10).await;
        assert_eq!(
            (event_ids_of_tasks(&claimed), out_of_order_flags(&claimed)),
            (vec![events[n].id], vec![true])
        );
        assert!(fixture.claim(10).await.is_empty());
        fixture.succeed(&claimed[0]).await;
    }
    assert!(fixture.claim(10).await.is_empty());
}

pub async fn every_retry_in_a_batch_gets_its_own_result(harness: &dyn Harness) {
    let (fixture, _, tasks) = fixture_with_four_failed_tasks(harness).await;
    let done = fixture.emit(new_event("record")).await.tasks.remove(0);
    fixture.run_all_ready_tasks().await;
    let done = fixture.read_task(&done).await.seq;
    let requested = [tasks[1], done, TaskSeq(i64::MAX), tasks[1], tasks[0]];
    let wrong = |status| Err(TaskCommandError::WrongState(status));
    let want =
        [Ok(()), wrong(TaskStatus::Done), Err(TaskCommandError::NoSuchTask), wrong(TaskStatus::New), Ok(())];
    assert_eq!(fixture.retry_tasks(&requested).await, want);
    assert_eq!(fixture.retry_tasks(&[]).await, []);
    assert_eq!(
        fixture.run_all_ready_tasks().await.iter().map(|task| task.seq).collect::<Vec<_>>(),
        [tasks[1], tasks[0]]
    );
}

pub async fn cancelling_an_out_of_order_task_does_not_unblock_the_lane(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_one_failed_task(harness).await;
    fixture.retry_task(&events[0].tasks[0]).await.expect("the task has failed permanently");
    let newest = fixture.emit(new_event("record").with_key("a")).await;
    let head = fixture.claim_one().await;
    assert_eq!(fixture.cancel_task(&events[0].tasks[0]).await, Ok(()));
    assert!(fixture.claim(10).await.is_empty(), "the head still runs");
    fixture.succeed(&head).await;
    assert_eq!(
        event_ids_of_tasks(&fixture.run_all_ready_tasks().await),
        [&events[2], &events[3], &newest].map(|event| event.id)
    );
}

/// A task that runs out of order is in its lane again, so it halts the lane if the handler halts on failure.
pub async fn an_out_of_order_task_that_fails_again_follows_the_lane_failure_policy(harness: &dyn Harness) {
    let (mut fixture, events) = fixture_with_one_failed_task(harness).await;
    fixture.run_all_ready_tasks().await;
    fixture.retry_task(&events[0].tasks[0]).await.expect("the task has failed permanently");
    fixture.fail_permanently(&fixture.claim_one().await).await;
    assert_eq!(fixture.read_queue("index").await.halted_count, 0);
    fixture.register(RegistrationBuilder::single_handler().halt_on_error("index")).await;
    assert_eq!(
        fixture.retry_task(&events[0].tasks[0]).await,
        Ok(()),
        "failed again, it can be retried again"
    );
    fixture.fail_permanently(&fixture.claim_one().await).await;
    assert_eq!(fixture.read_queue("index").await.halted_count, 1);
    let behind = fixture.emit(new_event("record").with_key("a")).await;
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.cancel_task(&events[0].tasks[0]).await, Ok(()));
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [behind.id]);
}

pub async fn out_of_order_tasks_of_different_lanes_run_concurrently(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut failed = Vec::new();
    for key in ["a", "b"] {
        fixture.emit_copies(2, new_event("record").with_key(key)).await;
    }
    fixture.emit(new_event("record")).await;
    while let Some(task) = fixture.claim(1).await.pop() {
        fixture.fail_permanently(&task).await;
        failed.push(task.seq);
    }
    failed.sort();
    assert_eq!(fixture.retry_tasks(&failed).await, [Ok(()); 5]);
    let claimed = fixture.claim(10).await;
    let mut keys: Vec<_> = claimed.iter().map(|task| task.event().key.clone()).collect();
    keys.sort();
    assert_eq!(
        keys,
        [None, Some(object_key("a")), Some(object_key("b"))],
        "one task of each lane, and all tasks without a lane"
    );
    assert!(fixture.claim(10).await.is_empty());
}

pub async fn the_out_of_order_flag_survives_a_restart(harness: &dyn Harness) {
    let (fixture, events) = fixture_with_one_failed_task(harness).await;
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.retry_task(&events[0].tasks[0]).await.expect("the task has failed permanently");
    let fixture = fixture.reopen().await;
    let newest = fixture.emit(new_event("record").with_key("a")).await;
    let ran = fixture.run_all_ready_tasks().await;
    let want = [&events[2], &events[3], &events[0], &newest].map(|event| event.id);
    assert_eq!(event_ids_of_tasks(&ran), want);
    assert_eq!(out_of_order_flags(&ran), [false, false, true, false]);
}

/// Lane positions are never reused, or a task created later would overtake an unfinished one.
pub async fn a_lane_with_out_of_order_tasks_continues_after_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    for key in ["a", "b"] {
        fixture.emit(new_event("record").with_key(key)).await;
    }
    let mut failed = Vec::new();
    for task in fixture.claim(10).await {
        fixture.fail_permanently(&task).await;
        failed.push(task.seq);
    }
    assert!(fixture.retry_tasks(&failed).await.iter().all(Result::is_ok));
    let mut fixture = fixture.reopen().await;
    fixture.emit(new_event("record").with_key("b")).await;
    for task in fixture.claim(10).await {
        fixture.fail(&task).await;
    }
    fixture.advance_clock(3600);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 3);
}
