//! Expired data is deleted; data in use never is.

use pointsman_core::journal::Retention;
use pointsman_core::store::{FinishedAttempt, TaskFilter, TaskPage};
use pointsman_core::task::TaskCommandError;
use pointsman_core::{EventId, TaskStatus};

use crate::Harness;
use crate::fixture::*;

const DAY_SECS: u64 = 86_400;

/// Keeps data younger than a day.
const KEEP_ONE_DAY: Retention =
    Retention { max_count: 1_000_000_000, max_age: std::time::Duration::from_secs(DAY_SECS) };

/// Keeps nothing older than a second.
const KEEP_NOTHING: Retention = Retention { max_count: 0, max_age: std::time::Duration::from_secs(1) };

pub async fn the_journal_keeps_at_most_a_tenth_more_than_its_retention_count(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let count = Retention::MIN_JOURNAL_MAX_COUNT;
    let mut ids = Vec::new();
    for _ in 0..13 {
        ids.extend(event_ids_of_receipts(&fixture.emit_copies(1000, new_event("note").with_key("a")).await));
    }
    let pruned = fixture
        .prune_events_and_tasks(Retention { max_count: count, ..KEEP_EVERYTHING }, KEEP_EVERYTHING)
        .await;
    let kept: Vec<EventId> = fixture.read_all_events().await.iter().map(|event| event.id).collect();
    assert!(kept.len() as u64 >= count && kept.len() as u64 * 10 <= count * 11, "{} kept", kept.len());
    assert_eq!(kept, ids[ids.len() - kept.len()..], "the newest, without a hole");
    assert_eq!(pruned.deleted_event_count, (ids.len() - kept.len()) as u64);
    let journal_range = fixture.read_journal_range().await;
    assert_eq!(journal_range.last_expired_event_id, ids[ids.len() - kept.len() - 1]);
    assert_eq!(journal_range.newest_event_id, ids[ids.len() - 1]);
    assert!(journal_range.has_gap_after(EventId::ZERO));
    assert!(!journal_range.has_gap_after(journal_range.last_expired_event_id));
}

pub async fn the_journal_is_pruned_by_age(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let old = fixture.emit_copies(100, new_event("note")).await;
    fixture.advance_clock(DAY_SECS - 60);
    assert_eq!(fixture.prune_events_and_tasks(KEEP_ONE_DAY, KEEP_EVERYTHING).await.deleted_event_count, 0);
    for _ in 0..30 {
        fixture.rescue_tasks().await;
    }
    let recent = fixture.emit_copies(10, new_event("note")).await;
    fixture.advance_clock(120);
    assert_eq!(fixture.prune_events_and_tasks(KEEP_ONE_DAY, KEEP_EVERYTHING).await.deleted_event_count, 100);
    let kept: Vec<_> = fixture.read_all_events().await.iter().map(|event| event.id).collect();
    assert_eq!(kept, event_ids_of_receipts(&recent));
    let journal_range = fixture.read_journal_range().await;
    assert_eq!(journal_range.last_expired_event_id, old[99].id);
    assert!(journal_range.has_gap_after(old[98].id) && !journal_range.has_gap_after(old[99].id));
    assert!(expect_ok(fixture.store.read_event(old[0].id).await).is_none());
}

pub async fn pruning_recent_data_changes_nothing(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(20, new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    let before = fixture.read_journal_range().await;
    let pruned = fixture.prune_events_and_tasks(KEEP_ONE_DAY, KEEP_ONE_DAY).await;
    assert_eq!((pruned.deleted_event_count, pruned.deleted_task_count), (0, 0));
    assert_eq!(fixture.read_journal_range().await, before);
}

/// Reads of the journal no longer return the event; its handler still gets it completely.
pub async fn an_unfinished_task_keeps_its_event(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let value = "{\"text\":\"still here\"}";
    let delayed =
        new_event("record").with_key("a").with_value(value).due_at(fixture.seconds_from_now(10 * DAY_SECS));
    let delayed = fixture.emit(delayed).await;
    fixture.emit(new_event("record").with_key("b").with_value(value)).await;
    let running = fixture.claim_one().await;
    fixture.advance_clock(9 * DAY_SECS);
    fixture.send_heartbeat().await;
    fixture.prune_events_and_tasks(KEEP_ONE_DAY, KEEP_ONE_DAY).await;
    assert_eq!(fixture.read_journal_range().await.last_expired_event_id, running.event().id);
    assert!(fixture.read_all_events().await.is_empty());
    let mut fixture = fixture.reopen().await;
    assert_eq!(
        fixture
            .finish_attempt(finished_attempt(&running, retryable_failure()))
            .await
            .map(|finished| finished.status),
        Ok(TaskStatus::New)
    );
    fixture.advance_clock(DAY_SECS);
    fixture.prune_events_and_tasks(KEEP_ONE_DAY, KEEP_ONE_DAY).await;
    let claimed = fixture.claim(10).await;
    assert_eq!(claimed.len(), 2);
    for task in &claimed {
        assert_eq!(task.event().value.as_str(), value);
        fixture.succeed(task).await;
    }
    assert_eq!(fixture.read_task_status(&delayed.tasks[0]).await, TaskStatus::Done);
    fixture.advance_clock(2 * DAY_SECS);
    fixture.prune_events_and_tasks(KEEP_ONE_DAY, KEEP_ONE_DAY).await;
    assert!(fixture.list_tasks(&TaskFilter::default()).await.is_empty(), "and then the task expires, too");
}

pub async fn an_objects_last_event_id_outlives_its_events(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let last = fixture.emit_copies(3, new_event("note").with_key("a")).await[2].id;
    fixture.advance_clock(2 * DAY_SECS);
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_NOTHING).await;
    let fixture = fixture.reopen().await;
    let view = expect_ok(fixture.store.read_object(&tenant("default"), &object_key("a"), 10).await)
        .expect("the event has not expired");
    assert_eq!((view.last_event_id, view.events.len()), (last, 0));
    assert_eq!(fixture.emit(new_event("note").with_key("a")).await.prev, Some(last));
}

pub async fn the_journal_head_outlives_all_events(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::default()).await;
    let last = fixture.emit_copies(3, new_event("note")).await[2].id;
    fixture.advance_clock(2 * DAY_SECS);
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_NOTHING).await;
    fixture.now = START_TIME;
    let fixture = fixture.reopen().await;
    let journal_range = fixture.read_journal_range().await;
    assert_eq!((journal_range.last_expired_event_id, journal_range.newest_event_id), (last, last));
    assert!(!journal_range.has_gap_after(last), "a reader at the head has missed nothing");
    assert!(fixture.emit(new_event("note")).await.id > last);
}

/// The two retentions are independent: a task outlives its event and is read as before.
pub async fn task_history_outlives_the_journal(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let sequenced = fixture.emit(new_event("record.published").with_key("a").with_priority(5)).await;
    fixture.run_all_ready_tasks().await;
    let before = fixture.read_task(&sequenced.tasks[0]).await;
    fixture.advance_clock(2 * DAY_SECS);
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_EVERYTHING).await;
    assert_eq!(fixture.read_task(&sequenced.tasks[0]).await, before);
    let filter = TaskFilter { key: Some(object_key("a")), ..TaskFilter::default() };
    let found: Vec<_> = fixture.list_tasks(&filter).await.into_iter().map(|task| task.id).collect();
    assert_eq!(found, [before.id], "and the task is found as before");
}

pub async fn task_history_is_pruned_by_count(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let mut ended_ids = Vec::new();
    for _ in 0..300 {
        fixture.advance_clock(1);
        ended_ids.extend(fixture.emit(new_event("record")).await.tasks);
    }
    fixture.run_all_ready_tasks().await;
    let pruned = fixture
        .prune_events_and_tasks(KEEP_EVERYTHING, Retention { max_count: 100, ..KEEP_EVERYTHING })
        .await;
    let TaskPage { tasks, .. } = expect_ok(fixture.store.list_tasks(TaskFilter::default(), None, 1000).await);
    assert!((100..=110).contains(&tasks.len()), "{} kept", tasks.len());
    assert_eq!(pruned.deleted_task_count, 300 - tasks.len() as u64);
    let kept: Vec<_> = tasks.iter().rev().map(|task| task.id.clone()).collect();
    assert_eq!(kept, ended_ids[300 - kept.len()..], "the youngest");
    assert_eq!(fixture.read_all_events().await.len(), 300, "the journal is not pruned");
}

pub async fn task_history_is_pruned_by_age_with_its_logs(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let old = fixture.emit(new_event("record")).await.tasks.remove(0);
    let task = fixture.claim_one().await;
    let logs = vec![info_log_line(fixture.now, "a log line")];
    fixture
        .finish_attempt(FinishedAttempt { log_lines: logs, ..finished_attempt(&task, success()) })
        .await
        .expect("the fence is current");
    fixture.advance_clock(2 * DAY_SECS);
    let recent = fixture.emit(new_event("record")).await.tasks.remove(0);
    fixture.run_all_ready_tasks().await;
    assert_eq!(fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_ONE_DAY).await.deleted_task_count, 1);
    assert!(expect_ok(fixture.store.read_task(&old).await).is_none());
    assert!(expect_ok(fixture.store.read_logs(&old, 0, 10).await).is_none());
    assert_eq!(fixture.read_task_status(&recent).await, TaskStatus::Done);
}

/// A task that ended while the clock was years ahead does not keep tasks that end later, at the correct time, from
/// expiring.
pub async fn a_task_ended_while_the_clock_ran_ahead_keeps_no_other_from_expiring(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let correct_time = fixture.now;
    fixture.advance_clock(3650 * DAY_SECS);
    fixture.emit(new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    fixture.now = correct_time;
    fixture.emit_copies(10, new_event("record")).await;
    fixture.run_all_ready_tasks().await;
    fixture.advance_clock(2 * DAY_SECS);
    assert_eq!(fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_ONE_DAY).await.deleted_task_count, 10);
}

pub async fn task_history_with_long_logs_is_deleted_completely(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let tasks = fixture.emit_copies(10, new_event("record")).await;
    for task in fixture.claim(10).await {
        let logs = vec![info_log_line(fixture.now, "a log line"); 10_000];
        fixture
            .finish_attempt(FinishedAttempt { log_lines: logs, ..finished_attempt(&task, success()) })
            .await
            .expect("the fence is current");
    }
    fixture.advance_clock(2 * DAY_SECS);
    assert_eq!(fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_ONE_DAY).await.deleted_task_count, 10);
    for sequenced in tasks {
        assert!(expect_ok(fixture.store.read_logs(&sequenced.tasks[0], 0, 1).await).is_none());
    }
}

pub async fn unfinished_tasks_are_never_pruned(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .route("record", &["index"])
        .route("note", &["halts"])
        .halt_on_error("halts");
    let mut fixture = StoreFixture::new(harness, registration).await;
    let halted = fixture.emit(new_event("note").with_key("a").with_value("1")).await;
    let behind = fixture.emit(new_event("note").with_key("a").with_value("2")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let running = fixture.emit(new_event("record")).await;
    fixture.claim_one().await;
    let waiting = fixture.emit(new_event("record")).await;
    fixture.advance_clock(100 * DAY_SECS);
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_NOTHING).await;
    let want = [TaskStatus::Error, TaskStatus::New, TaskStatus::Locked, TaskStatus::New];
    for (event, status) in [&halted, &behind, &running, &waiting].into_iter().zip(want) {
        assert_eq!(fixture.read_task_status(&event.tasks[0]).await, status);
    }
    fixture.retry_task(&halted.tasks[0]).await.expect("it is halted");
    let ran = fixture.run_all_ready_tasks().await;
    let notes: Vec<_> = ran.iter().filter(|task| task.handler == handler_name("halts")).collect();
    assert_eq!(notes.iter().map(|task| task.event().value.as_str()).collect::<Vec<_>>(), ["1", "2"]);
}

/// A permanently failed task is history, but it can be retried with its event until it is pruned.
pub async fn a_failed_task_can_be_retried_until_it_is_pruned(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let failed = fixture.emit(new_event("record").with_key("a").with_value("\"kept\"")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    fixture.advance_clock(100);
    fixture.prune_events_and_tasks(KEEP_EVERYTHING, KEEP_EVERYTHING).await;
    fixture.retry_task(&failed.tasks[0]).await.expect("the task has failed permanently");
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_NOTHING).await;
    assert_eq!(fixture.claim_one().await.event().value.as_str(), "\"kept\"");
}

pub async fn a_failed_task_cannot_be_retried_without_its_event(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let failed = fixture.emit(new_event("record").with_key("a")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let before = fixture.read_task(&failed.tasks[0]).await;
    fixture.advance_clock(100);
    fixture.prune_events_and_tasks(KEEP_NOTHING, KEEP_EVERYTHING).await;
    assert_eq!(fixture.retry_task(&failed.tasks[0]).await, Err(TaskCommandError::EventExpired));
    assert_eq!(fixture.read_task(&failed.tasks[0]).await, before);
    assert!(fixture.claim(10).await.is_empty());
}
