//! Every log line, in order.

use pointsman_core::Status;
use pointsman_core::store::{Claimed, Ended, Ending, NewLogLine};
use pointsman_core::task::{Level, LogLine};

use crate::Harness;
use crate::fixture::*;

async fn running(harness: &dyn Harness) -> (StoreFixture<'_>, Claimed) {
    let world = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    world.emit(new_event("record").with_key("a")).await;
    let task = world.claim_one().await;
    (world, task)
}

async fn write(world: &StoreFixture<'_>, task: &Claimed, messages: &[&str]) {
    let lines = messages.iter().map(|message| info_line(world.now, message));
    let lines = lines.map(|line| NewLogLine { task: task.seq, fence: task.fence, line }).collect();
    expect_ok(world.store.log(lines).await);
}

pub async fn log_lines_keep_their_order_across_attempts(harness: &dyn Harness) {
    let (mut world, task) = running(harness).await;
    write(&world, &task, &["one", "two"]).await;
    write(&world, &task, &["three"]).await;
    let logs = vec![info_line(world.now, "four"), info_line(world.now, "five")];
    world.finish_attempt(Ending { logs, ..attempt_ending(&task, retryable_failure()) }).await.expect("ours");
    assert_eq!(world.log_messages(&task.id).await, ["one", "two", "three", "four", "five"]);
    world.advance_clock(RETRY_DELAY_SECS);
    let again = world.claim_one().await;
    write(&world, &again, &["six"]).await;
    let logs = vec![info_line(world.now, "seven")];
    world.finish_attempt(Ending { logs, ..attempt_ending(&again, success()) }).await.expect("ours");
    let world = world.reopen().await;
    let want = ["one", "two", "three", "four", "five", "six", "seven"];
    assert_eq!(world.log_messages(&task.id).await, want);
    let numbers: Vec<_> = world.read_logs(&task.id).await.iter().map(|line| line.number).collect();
    assert_eq!(numbers, (numbers[0]..numbers[0] + 7).collect::<Vec<_>>(), "numbered without holes");
}

pub async fn a_log_line_is_stored_as_written(harness: &dyn Harness) {
    let (world, task) = running(harness).await;
    let said = LogLine {
        time: world.seconds_from_now(2),
        level: Level::Error,
        message: "tab\there, \"quoted\", ключ".into(),
    };
    let lines = vec![NewLogLine { task: task.seq, fence: task.fence, line: said.clone() }];
    expect_ok(world.store.log(lines).await);
    assert_eq!(world.read_logs(&task.id).await.into_iter().map(|line| line.line).collect::<Vec<_>>(), [said]);
}

pub async fn identical_log_lines_are_all_kept(harness: &dyn Harness) {
    let (world, task) = running(harness).await;
    for _ in 0..10 {
        write(&world, &task, &["again"; 100]).await;
    }
    assert_eq!(world.log_messages(&task.id).await.len(), 1000);
}

pub async fn log_lines_with_a_stale_fence_are_dropped(harness: &dyn Harness) {
    let (world, zombie) = running(harness).await;
    world.release_task(&zombie).await;
    write(&world, &zombie, &["after the end"]).await;
    let owner = world.claim_one().await;
    write(&world, &zombie, &["from beyond"]).await;
    write(&world, &owner, &["mine"]).await;
    assert_eq!(world.log_messages(&owner.id).await, ["mine"]);
    world.finish_as(&owner, Ended::Succeeded { result: None }).await;
    write(&world, &owner, &["too late"]).await;
    assert_eq!(world.log_messages(&owner.id).await, ["mine"]);
}

pub async fn logs_are_read_in_pages(harness: &dyn Harness) {
    let (world, task) = running(harness).await;
    let said: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    write(&world, &task, &said.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let first = expect_ok(world.store.logs(&task.id, 0, 10).await).expect("the task is there");
    assert_eq!((first.lines.len(), first.status), (10, Status::Locked));
    let from = first.lines[9].number + 1;
    let next = expect_ok(world.store.logs(&task.id, from, 100).await).expect("the task is there");
    let rest: Vec<_> = next.lines.iter().map(|line| line.line.message.clone()).collect();
    assert_eq!(rest, said[10..]);
    let beyond = expect_ok(world.store.logs(&task.id, from + 1000, 10).await).expect("the task is there");
    assert!(beyond.lines.is_empty());
    world.succeed(&task).await;
    let ended = expect_ok(world.store.logs(&task.id, 0, 1).await).expect("the task is there");
    assert_eq!((ended.lines.len(), ended.status), (1, Status::Done));
}

pub async fn an_unknown_task_has_no_log(harness: &dyn Harness) {
    let (world, task) = running(harness).await;
    let foreign = pointsman_core::TaskId::from_text("index_record_00000000-0000-8000-8000-000000000000");
    assert!(expect_ok(world.store.logs(&foreign, 0, 10).await).is_none());
    assert!(expect_ok(world.store.logs(&task.id, 0, 10).await).is_some());
}
