//! The end of an attempt and everything that commits with it.

use pointsman_core::store::{AttemptResult, FinishedAttempt, TaskFilter};
use pointsman_core::task::{AttemptOutcome, ErrorReason, TaskCommandError, TaskSeq};
use pointsman_core::{EventId, TaskStatus};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::single_handler().route("note", &["notify"])
}

pub async fn a_successful_task_stores_its_result(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record").with_key("a").with_value("1")).await;
    let task = fixture.claim_one().await;
    fixture.advance_clock(3);
    let result = parse_json("{ \"pages\": 1.50 }");
    let finished =
        fixture.finish_with_result(&task, AttemptResult::Succeeded { result: Some(result.clone()) }).await;
    assert_eq!(
        (finished.status, finished.next_attempt_due_at, finished.emitted_events.len()),
        (TaskStatus::Done, None, 0)
    );
    let stored = fixture.read_task(&task.id).await;
    assert_eq!(stored.result.as_ref().map(|json| json.as_str()), Some(result.as_str()));
    assert_eq!((stored.finished_at, stored.error), (Some(fixture.now), None));
    assert_eq!(fixture.read_all_events().await[0].value.as_str(), "1", "the event value is never changed");
}

pub async fn attempts_are_recorded_in_order(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let sequenced = fixture.emit(new_event("record")).await;
    let mut want = Vec::new();
    for (result, end, error) in [
        (retryable_failure(), AttemptOutcome::Failed, Some("it broke".to_string())),
        (AttemptResult::Snoozed { until: START_TIME }, AttemptOutcome::Snoozed, None),
        (AttemptResult::Released, AttemptOutcome::Released, None),
        (success(), AttemptOutcome::Succeeded, None),
    ] {
        let task = fixture.claim_one().await;
        let started = fixture.now;
        fixture.advance_clock(2);
        fixture.finish_with_result(&task, result).await;
        want.push((task.attempt, started, fixture.now, end, error));
        fixture.advance_clock(RETRY_DELAY_SECS);
    }
    let stored = fixture.read_task(&sequenced.tasks[0]).await;
    let attempts = stored.attempts.into_iter();
    let got: Vec<_> = attempts.map(|a| (a.number, a.started_at, a.ended_at, a.outcome, a.error)).collect();
    assert_eq!(got, want);
    assert_eq!((stored.lifecycle.attempt, stored.lifecycle.retries, stored.lifecycle.crashes), (4, 1, 0));
}

pub async fn a_task_fails_permanently_after_three_attempts(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let sequenced = fixture.emit(new_event("record")).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let task = fixture.claim_one().await;
        let finished = fixture.fail(&task).await;
        seen.push((task.attempt, task.retries, finished.status, finished.next_attempt_due_at));
        fixture.advance_clock(RETRY_DELAY_SECS);
    }
    let due = |seconds| Some(START_TIME.plus(secs(seconds)));
    assert_eq!(
        seen,
        [(1, 0, TaskStatus::New, due(10)), (2, 1, TaskStatus::New, due(20)), (3, 2, TaskStatus::Error, None)]
    );
    let stored = fixture.read_task(&sequenced.tasks[0]).await;
    assert_eq!(stored.lifecycle.state.error_reason(), Some(ErrorReason::Failed));
    assert_eq!(stored.error.as_deref(), Some("it broke"));
    assert!(stored.finished_at.is_some());
    assert!(fixture.claim(10).await.is_empty());
}

pub async fn snoozing_and_releasing_use_no_retry(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    for _ in 0..5 {
        let task = fixture.claim_one().await;
        assert_eq!(task.retries, 0);
        fixture.snooze_task(&task, 60).await;
        fixture.advance_clock(60);
        fixture.release_task(&fixture.claim_one().await).await;
    }
    assert_eq!(fixture.claim_one().await.attempt, 11);
}

pub async fn a_failed_attempt_can_request_its_retry_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    let task = fixture.claim_one().await;
    let retry_at = fixture.seconds_from_now(3600);
    let result = AttemptResult::Failed {
        error: "busy".into(),
        return_code: 1,
        retry_at: Some(retry_at),
        permanent: false,
    };
    let finished = fixture.finish_with_result(&task, result).await;
    assert_eq!((finished.status, finished.next_attempt_due_at), (TaskStatus::New, Some(retry_at)));
    fixture.advance_clock(3599);
    assert!(fixture.claim(10).await.is_empty());
    fixture.advance_clock(1);
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn emitted_events_commit_with_the_end_of_the_attempt(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let before = fixture.emit(new_event("note").with_key("n")).await;
    fixture.emit(new_event("record").with_key("a")).await;
    let task = fixture.claim_one_for_handler("index").await;
    let emits = vec![
        new_event("note").with_key("n").with_value("1").caused_by(&task),
        new_event("note").with_key("n").with_value("2").caused_by(&task),
        new_event("unrouted").caused_by(&task),
    ];
    let finished = fixture
        .finish_attempt(FinishedAttempt {
            emitted_events: emits.clone(),
            ..finished_attempt(&task, success())
        })
        .await
        .expect("the fence is current");
    let prevs: Vec<_> = finished.emitted_events.iter().map(|event| event.prev).collect();
    assert_eq!(prevs, [Some(before.id), Some(finished.emitted_events[0].id), None]);
    let counts: Vec<_> = finished.emitted_events.iter().map(|event| event.tasks.len()).collect();
    assert_eq!(counts, [1, 1, 0], "routed like any other");
    let read = fixture.read_events_after(task.event().id, &Default::default()).await;
    assert_eq!(
        read.iter().map(|event| event.id).collect::<Vec<_>>(),
        event_ids_of_receipts(&finished.emitted_events)
    );
    for (event, emit) in read.iter().zip(&emits) {
        assert_eq!((event.cause, event.value.as_str()), (emit.cause, emit.value.as_str()));
        assert_eq!(event.cause_depth(), 1);
    }
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 3);
}

pub async fn emitted_events_commit_with_failures_and_snoozes(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record")).await;
    for result in [retryable_failure(), AttemptResult::Snoozed { until: fixture.now }, permanent_failure()] {
        let task = fixture.claim_one().await;
        let emits = vec![new_event("note").caused_by(&task)];
        let finished = fixture
            .finish_attempt(FinishedAttempt { emitted_events: emits, ..finished_attempt(&task, result) })
            .await
            .expect("the fence is current");
        assert_eq!(finished.emitted_events.len(), 1);
        fixture.advance_clock(RETRY_DELAY_SECS);
    }
    assert_eq!(fixture.read_all_events().await.len(), 4);
}

/// An attempt that lost its task leaves no trace.
pub async fn finishing_with_a_stale_fence_changes_nothing(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record").with_key("a")).await;
    let stale_attempt = fixture.claim_one().await;
    fixture.release_task(&stale_attempt).await;
    let owner = fixture.claim_one().await;
    let before = (fixture.read_task(&owner.id).await, fixture.read_journal_range().await);
    for result in [
        success(),
        retryable_failure(),
        permanent_failure(),
        AttemptResult::Released,
        AttemptResult::Snoozed { until: fixture.now },
    ] {
        let emits = vec![new_event("note").caused_by(&stale_attempt)];
        let logs = vec![info_log_line(fixture.now, "from a stale attempt")];
        let answer = fixture
            .finish_attempt(FinishedAttempt {
                emitted_events: emits,
                log_lines: logs,
                ..finished_attempt(&stale_attempt, result)
            })
            .await;
        assert_eq!(answer, Err(TaskCommandError::StaleFence));
    }
    assert_eq!((fixture.read_task(&owner.id).await, fixture.read_journal_range().await), before);
    assert!(fixture.read_log_messages(&owner.id).await.is_empty());
    assert_eq!(fixture.list_tasks(&TaskFilter::default()).await.len(), 1);
    assert_eq!(fixture.succeed(&owner).await.status, TaskStatus::Done);
}

pub async fn an_attempt_can_end_only_once(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(2, new_event("record")).await;
    let task = fixture.claim_one().await;
    fixture.succeed(&task).await;
    assert_eq!(
        fixture.finish_attempt(finished_attempt(&task, retryable_failure())).await,
        Err(TaskCommandError::WrongState(TaskStatus::Done))
    );
    let task = fixture.claim_one().await;
    let answers = fixture
        .finish_attempts(vec![finished_attempt(&task, success()), finished_attempt(&task, success())])
        .await;
    assert_eq!(answers[0].as_ref().map(|finished| finished.status), Ok(TaskStatus::Done));
    assert_eq!(answers[1], Err(TaskCommandError::WrongState(TaskStatus::Done)), "within one call too");
    assert_eq!(fixture.read_task(&task.id).await.attempts.len(), 1);
}

pub async fn an_unknown_task_cannot_be_finished(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    let task = fixture.claim_one().await;
    let foreign =
        FinishedAttempt { task_seq: TaskSeq(task.seq.0 + 1000), ..finished_attempt(&task, success()) };
    assert_eq!(fixture.finish_attempt(foreign).await, Err(TaskCommandError::NoSuchTask));
}

/// Each finish succeeds or fails separately; the results are in the order of the attempts.
pub async fn valid_and_stale_attempts_in_one_call_get_separate_results(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit_copies(3, new_event("record")).await;
    let tasks = fixture.claim(3).await;
    let attempt_with_note = |n: usize, fence: i64| FinishedAttempt {
        fence,
        emitted_events: vec![new_event("note").with_value(&n.to_string()).caused_by(&tasks[n])],
        ..finished_attempt(&tasks[n], success())
    };
    let attempts = vec![
        attempt_with_note(0, tasks[0].fence),
        attempt_with_note(1, tasks[1].fence - 1000),
        attempt_with_note(2, tasks[2].fence),
    ];
    let answers = fixture.finish_attempts(attempts).await;
    assert_eq!(answers[1], Err(TaskCommandError::StaleFence));
    let emitted: Vec<EventId> = answers
        .iter()
        .flatten()
        .flat_map(|finished| event_ids_of_receipts(&finished.emitted_events))
        .collect();
    assert_eq!(emitted.len(), 2);
    assert_strictly_ascending(&emitted);
    let read = fixture.read_events_after(tasks[2].event().id, &Default::default()).await;
    assert_eq!(read.iter().map(|event| event.value.as_str()).collect::<Vec<_>>(), ["0", "2"]);
    assert_eq!(fixture.read_task_status(&tasks[1].id).await, TaskStatus::Locked);
}

pub async fn a_cancelled_attempt_cannot_finish(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.emit(new_event("record")).await;
    let task = fixture.claim_one().await;
    assert_eq!(fixture.cancel_task(&task.id).await, Ok(()));
    let emits = vec![new_event("note").caused_by(&task)];
    let answer = fixture
        .finish_attempt(FinishedAttempt { emitted_events: emits, ..finished_attempt(&task, success()) })
        .await;
    assert_eq!(answer, Err(TaskCommandError::WrongState(TaskStatus::Error)));
    let stored = fixture.read_task(&task.id).await;
    assert_eq!(stored.lifecycle.state.error_reason(), Some(ErrorReason::Canceled));
    assert_eq!(
        stored.attempts.iter().map(|attempt| attempt.outcome).collect::<Vec<_>>(),
        [AttemptOutcome::Canceled]
    );
    assert_eq!(fixture.read_all_events().await.len(), 1);
}
