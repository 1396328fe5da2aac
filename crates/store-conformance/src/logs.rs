//! Log lines of tasks, in order.

use pointsman_core::TaskStatus;
use pointsman_core::store::{AttemptLogLine, AttemptResult, ClaimedTask, FinishedAttempt};
use pointsman_core::task::{LogLevel, LogLine};

use crate::Harness;
use crate::fixture::*;

async fn fixture_with_running_task(harness: &dyn Harness) -> (StoreFixture<'_>, ClaimedTask) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record").with_key("a")).await;
    let task = fixture.claim_one().await;
    (fixture, task)
}

async fn write_log_lines(fixture: &StoreFixture<'_>, task: &ClaimedTask, messages: &[&str]) {
    let lines = messages.iter().map(|message| info_log_line(fixture.now, message));
    let lines = lines.map(|line| AttemptLogLine { task_seq: task.seq, fence: task.fence, line }).collect();
    expect_ok(fixture.store.append_log_lines(lines).await);
}

pub async fn log_lines_keep_their_order_across_attempts(harness: &dyn Harness) {
    let (mut fixture, task) = fixture_with_running_task(harness).await;
    write_log_lines(&fixture, &task, &["one", "two"]).await;
    write_log_lines(&fixture, &task, &["three"]).await;
    let logs = vec![info_log_line(fixture.now, "four"), info_log_line(fixture.now, "five")];
    fixture
        .finish_attempt(FinishedAttempt { log_lines: logs, ..finished_attempt(&task, retryable_failure()) })
        .await
        .expect("the fence is current");
    assert_eq!(fixture.read_log_messages(&task.id).await, ["one", "two", "three", "four", "five"]);
    fixture.advance_clock(RETRY_DELAY_SECS);
    let again = fixture.claim_one().await;
    write_log_lines(&fixture, &again, &["six"]).await;
    let logs = vec![info_log_line(fixture.now, "seven")];
    fixture
        .finish_attempt(FinishedAttempt { log_lines: logs, ..finished_attempt(&again, success()) })
        .await
        .expect("the fence is current");
    let fixture = fixture.reopen().await;
    let want = ["one", "two", "three", "four", "five", "six", "seven"];
    assert_eq!(fixture.read_log_messages(&task.id).await, want);
    let numbers: Vec<_> = fixture.read_logs(&task.id).await.iter().map(|line| line.number).collect();
    assert_eq!(numbers, (numbers[0]..numbers[0] + 7).collect::<Vec<_>>(), "numbered without holes");
}

pub async fn a_log_line_is_stored_as_written(harness: &dyn Harness) {
    let (fixture, task) = fixture_with_running_task(harness).await;
    let written = LogLine {
        time: fixture.seconds_from_now(2),
        level: LogLevel::Error,
        message: "tab\there, \"quoted\", ключ".into(),
    };
    let lines = vec![AttemptLogLine { task_seq: task.seq, fence: task.fence, line: written.clone() }];
    expect_ok(fixture.store.append_log_lines(lines).await);
    assert_eq!(
        fixture.read_logs(&task.id).await.into_iter().map(|line| line.line).collect::<Vec<_>>(),
        [written]
    );
}

pub async fn identical_log_lines_are_all_kept(harness: &dyn Harness) {
    let (fixture, task) = fixture_with_running_task(harness).await;
    for _ in 0..10 {
        write_log_lines(&fixture, &task, &["again"; 100]).await;
    }
    assert_eq!(fixture.read_log_messages(&task.id).await.len(), 1000);
}

pub async fn log_lines_with_a_stale_fence_are_dropped(harness: &dyn Harness) {
    let (fixture, stale_attempt) = fixture_with_running_task(harness).await;
    fixture.release_task(&stale_attempt).await;
    write_log_lines(&fixture, &stale_attempt, &["after the end"]).await;
    let owner = fixture.claim_one().await;
    write_log_lines(&fixture, &stale_attempt, &["from a stale attempt"]).await;
    write_log_lines(&fixture, &owner, &["from the owner"]).await;
    assert_eq!(fixture.read_log_messages(&owner.id).await, ["from the owner"]);
    fixture.finish_with_result(&owner, AttemptResult::Succeeded { result: None }).await;
    write_log_lines(&fixture, &owner, &["too late"]).await;
    assert_eq!(fixture.read_log_messages(&owner.id).await, ["from the owner"]);
}

pub async fn logs_are_read_in_pages(harness: &dyn Harness) {
    let (fixture, task) = fixture_with_running_task(harness).await;
    let messages: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    write_log_lines(&fixture, &task, &messages.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let first = expect_ok(fixture.store.read_logs(&task.id, 0, 10).await).expect("the task exists");
    assert_eq!((first.lines.len(), first.task_status), (10, TaskStatus::Locked));
    let from = first.lines[9].number + 1;
    let next = expect_ok(fixture.store.read_logs(&task.id, from, 100).await).expect("the task exists");
    let rest: Vec<_> = next.lines.iter().map(|line| line.line.message.clone()).collect();
    assert_eq!(rest, messages[10..]);
    let beyond =
        expect_ok(fixture.store.read_logs(&task.id, from + 1000, 10).await).expect("the task exists");
    assert!(beyond.lines.is_empty());
    fixture.succeed(&task).await;
    let page_of_ended_task =
        expect_ok(fixture.store.read_logs(&task.id, 0, 1).await).expect("the task exists");
    assert_eq!((page_of_ended_task.lines.len(), page_of_ended_task.task_status), (1, TaskStatus::Done));
}

pub async fn an_unknown_task_has_no_log(harness: &dyn Harness) {
    let (fixture, task) = fixture_with_running_task(harness).await;
    let foreign = pointsman_core::TaskId::from_text("index_record_00000000-0000-8000-8000-000000000000");
    assert!(expect_ok(fixture.store.read_logs(&foreign, 0, 10).await).is_none());
    assert!(expect_ok(fixture.store.read_logs(&task.id, 0, 10).await).is_some());
}
