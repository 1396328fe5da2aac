//! Finding tasks, and commands to single tasks.

use pointsman_core::store::{EmittedEventReceipt, TaskFilter};
use pointsman_core::task::{ErrorReason, Task, TaskCommandError};
use pointsman_core::{TaskId, TaskStatus};

use crate::Harness;
use crate::fixture::*;

fn task_ids(tasks: &[Task]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id.clone()).collect()
}

/// The task ids of these events, newest first.
fn task_ids_newest_first(events: &[EmittedEventReceipt]) -> Vec<TaskId> {
    let mut tasks: Vec<_> = events.iter().flat_map(|event| event.tasks.clone()).collect();
    tasks.reverse();
    tasks
}

fn any_task_filter() -> TaskFilter {
    TaskFilter::default()
}

pub async fn a_task_is_read_by_its_id(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let sequenced = fixture.emit(new_event("record").with_key("a")).await;
    let (task, journal_range) =
        expect_ok(fixture.store.read_task(&sequenced.tasks[0]).await).expect("it exists");
    assert_eq!((task.id, task.event_id), (sequenced.tasks[0].clone(), Some(sequenced.id)));
    assert_eq!(journal_range, fixture.read_journal_range().await);
    let uuid = sequenced.tasks[0].uuid().expect("it ends in a uuid");
    for name in [
        String::from("nonsense"),
        String::from("index_record_00000000-0000-8000-8000-000000000000"),
        format!("other_record_{uuid}"),
        format!("index_note_{uuid}"),
        String::new(),
    ] {
        let id = TaskId::from_text(&name);
        assert!(expect_ok(fixture.store.read_task(&id).await).is_none(), "{name:?} is the id of no task");
        assert_eq!(fixture.retry_task(&id).await, Err(TaskCommandError::NoSuchTask), "{name:?}");
        assert_eq!(fixture.cancel_task(&id).await, Err(TaskCommandError::NoSuchTask), "{name:?}");
    }
}

pub async fn tasks_are_listed_newest_first_in_pages(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    let events = fixture.emit_copies(20, new_event("record")).await;
    for task in fixture.claim(7).await {
        fixture.succeed(&task).await;
    }
    let (mut before, mut found) = (None, Vec::new());
    loop {
        let page = expect_ok(fixture.store.list_tasks(any_task_filter(), before, 6).await);
        assert!(page.tasks.len() <= 6);
        assert_eq!(page.journal_range, fixture.read_journal_range().await);
        found.extend(task_ids(&page.tasks));
        match page.next_cursor {
            None => break,
            next => {
                assert!(before.is_none() || next < before, "paging goes down");
                before = next;
            }
        }
    }
    assert_eq!(found, task_ids_newest_first(&events), "active and ended tasks in one list, each once");
}

pub async fn tasks_are_filtered_by_handler_tenant_key_status_and_time(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .route("record", &["index"])
        .route("note", &["notify"])
        .halt_on_error("notify");
    let mut fixture = StoreFixture::new(harness, registration).await;
    let first = fixture.emit(new_event("record").with_key("a")).await;
    fixture.advance_clock(100);
    let second = fixture.emit(new_event("note").with_key("b").for_tenant("shop")).await;
    fixture.advance_clock(100);
    let third = fixture.emit(new_event("record").with_key("b")).await;
    let done = fixture.claim_for_handlers(&["index"], 1).await;
    fixture.succeed(&done[0]).await;
    fixture.fail_permanently(&fixture.claim_one_for_handler("notify").await).await;

    let filter_with = |change: &dyn Fn(&mut TaskFilter)| {
        let mut filter = any_task_filter();
        change(&mut filter);
        filter
    };
    let at = |seconds| Some(START_TIME.plus(secs(seconds)));
    let cases: [(TaskFilter, &[&EmittedEventReceipt]); 14] = [
        (any_task_filter(), &[&third, &second, &first]),
        (filter_with(&|f| f.handler = Some(handler_name("index"))), &[&third, &first]),
        (filter_with(&|f| f.handler = Some(handler_name("nobody"))), &[]),
        (filter_with(&|f| f.tenant = Some(tenant("shop"))), &[&second]),
        (filter_with(&|f| f.key = Some(object_key("b"))), &[&third, &second]),
        (filter_with(&|f| f.statuses = vec![TaskStatus::New]), &[&third]),
        (filter_with(&|f| f.statuses = vec![TaskStatus::Done]), &[&first]),
        (filter_with(&|f| f.statuses = vec![TaskStatus::Error]), &[&second]),
        (filter_with(&|f| f.statuses = vec![TaskStatus::Done, TaskStatus::New]), &[&third, &first]),
        (filter_with(&|f| f.statuses = vec![TaskStatus::Missing]), &[]),
        (filter_with(&|f| f.created_from = at(100)), &[&third, &second]),
        (filter_with(&|f| f.created_before = at(100)), &[&first]),
        (filter_with(&|f| (f.created_from, f.created_before) = (at(50), at(150))), &[&second]),
        (filter_with(&|f| (f.key, f.tenant) = (Some(object_key("b")), Some(tenant("default")))), &[&third]),
    ];
    for (filter, want) in cases {
        let want: Vec<_> = want.iter().map(|event| event.tasks[0].clone()).collect();
        assert_eq!(task_ids(&fixture.list_tasks(&filter).await), want, "{filter:?}");
    }
}

pub async fn tasks_are_filtered_by_event_type_and_event(harness: &dyn Harness) {
    let fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().route("record", &["index", "notify"]))
            .await;
    let one = fixture.emit(new_event("record")).await;
    let child = fixture.emit(new_event("record.published")).await;
    let other = fixture.emit(new_event("record")).await;
    for task in fixture.claim(3).await {
        fixture.succeed(&task).await;
    }
    let list_ids = async |filter: TaskFilter| task_ids(&fixture.list_tasks(&filter).await);
    let reversed = |events: &[&EmittedEventReceipt]| {
        task_ids_newest_first(&events.iter().map(|event| (*event).clone()).collect::<Vec<_>>())
    };
    let typed = |text: &str| TaskFilter { subject_name: Some(text.into()), ..any_task_filter() };
    assert_eq!(
        list_ids(typed("record")).await,
        reversed(&[&one, &other]),
        "the type itself, not its subtypes"
    );
    assert_eq!(list_ids(typed("record.published")).await, reversed(&[&child]));
    assert_eq!(list_ids(typed("rec")).await, []);
    assert_eq!(
        list_ids(TaskFilter { event_id: Some(child.id), ..any_task_filter() }).await,
        reversed(&[&child])
    );
    let both =
        TaskFilter { event_id: Some(one.id), handler: Some(handler_name("notify")), ..any_task_filter() };
    assert_eq!(list_ids(both).await, [one.tasks[1].clone()]);
    let neither = TaskFilter {
        event_id: Some(one.id),
        subject_name: Some("record.published".into()),
        ..any_task_filter()
    };
    assert_eq!(list_ids(neither).await, []);
}

/// The reason filter applies only to tasks in `error`.
pub async fn tasks_are_filtered_by_error_reason(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .route("record", &["index"])
        .route("note", &["halts"])
        .halt_on_error("halts");
    let mut fixture = StoreFixture::new(harness, registration).await;
    fixture.emit_copies(4, new_event("record")).await;
    let crashed = fixture.claim_one().await;
    for _ in 0..3 {
        fixture.advance_clock(LEASE_SECS + 1);
        fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
        fixture.rescue_tasks().await;
        if fixture.read_task_status(&crashed.id).await == TaskStatus::New {
            let again = fixture.claim(10).await;
            assert!(again.iter().any(|task| task.id == crashed.id));
            for task in again.iter().filter(|task| task.id != crashed.id) {
                fixture.release_task(task).await;
            }
        }
    }
    assert_eq!(fixture.read_task_status(&crashed.id).await, TaskStatus::Error);
    let failed = fixture.claim_one().await;
    fixture.fail_permanently(&failed).await;
    let canceled = fixture.claim_one().await;
    fixture.cancel_task(&canceled.id).await.expect("it runs");
    let done = fixture.claim_one().await;
    fixture.succeed(&done).await;
    fixture.emit(new_event("note").with_key("a")).await;
    let halted = fixture.claim_one().await;
    fixture.fail_permanently(&halted).await;
    let list_sorted_ids = async |statuses: &[TaskStatus], reasons: &[ErrorReason]| {
        let (statuses, reasons) = (statuses.to_vec(), reasons.to_vec());
        let mut found = task_ids(
            &fixture.list_tasks(&TaskFilter { statuses, error_reasons: reasons, ..any_task_filter() }).await,
        );
        found.sort();
        found
    };
    let sorted = |tasks: &[&pointsman_core::store::ClaimedTask]| {
        let mut ids: Vec<_> = tasks.iter().map(|task| task.id.clone()).collect();
        ids.sort();
        ids
    };
    let error = [TaskStatus::Error];
    assert_eq!(list_sorted_ids(&error, &[]).await, sorted(&[&crashed, &failed, &canceled, &halted]));
    assert_eq!(list_sorted_ids(&error, &[ErrorReason::Failed]).await, sorted(&[&failed, &halted]));
    assert_eq!(list_sorted_ids(&error, &[ErrorReason::Crashed]).await, sorted(&[&crashed]));
    assert_eq!(list_sorted_ids(&error, &[ErrorReason::Canceled]).await, sorted(&[&canceled]));
    assert_eq!(
        list_sorted_ids(&error, &[ErrorReason::Failed, ErrorReason::Crashed]).await,
        sorted(&[&crashed, &failed, &halted])
    );
    assert_eq!(
        list_sorted_ids(&[TaskStatus::Error, TaskStatus::Done], &[ErrorReason::Canceled]).await,
        sorted(&[&canceled, &done]),
        "the reason filter does not apply to other statuses"
    );
}

pub async fn time_filters_find_all_tasks_after_the_clock_stepped_back(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let start = fixture.seconds_from_now(990);
    fixture.advance_clock(1000);
    let found = fixture.emit(new_event("record")).await;
    fixture.now = START_TIME;
    fixture.emit(new_event("record")).await;
    let listed = fixture.list_tasks(&TaskFilter { created_from: Some(start), ..TaskFilter::default() }).await;
    assert_eq!(listed.into_iter().map(|task| task.id).collect::<Vec<_>>(), found.tasks);
}

/// The list and the single view are equal except for the attempts.
pub async fn a_listed_task_equals_the_single_view_without_attempts(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit_copies(3, new_event("record").with_key("a").with_priority(3)).await;
    fixture.fail(&fixture.claim_one().await).await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.claim_one().await;
    for task in fixture.list_tasks(&any_task_filter()).await {
        assert_eq!(task, Task { attempts: vec![], ..fixture.read_task(&task.id).await });
    }
}

pub async fn a_cancelled_task_has_the_reason_cancelled(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let sequenced = fixture.emit(new_event("record")).await;
    fixture.advance_clock(5);
    assert_eq!(fixture.cancel_task(&sequenced.tasks[0]).await, Ok(()));
    let task = fixture.read_task(&sequenced.tasks[0]).await;
    assert_eq!(task.lifecycle.state.error_reason(), Some(ErrorReason::Canceled));
    assert_eq!((task.finished_at, task.attempts.len()), (Some(fixture.now), 0));
    assert!(fixture.claim(10).await.is_empty());
    assert_eq!(fixture.retry_task(&task.id).await, Ok(()), "a cancelled task can be retried");
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
}

pub async fn a_retried_task_gets_fresh_retry_budgets(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let sequenced = fixture.emit(new_event("record")).await;
    for _ in 0..3 {
        fixture.fail(&fixture.claim_one().await).await;
        fixture.advance_clock(RETRY_DELAY_SECS);
    }
    assert_eq!(fixture.read_task_status(&sequenced.tasks[0]).await, TaskStatus::Error);
    assert_eq!(fixture.retry_task(&sequenced.tasks[0]).await, Ok(()));
    let task = fixture.read_task(&sequenced.tasks[0]).await;
    assert_eq!((task.lifecycle.attempt, task.lifecycle.retries, task.attempts.len()), (3, 0, 3));
    assert_eq!(task.finished_at, None, "it has not ended any more");
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(fixture.fail(&fixture.claim_one().await).await.status);
        fixture.advance_clock(RETRY_DELAY_SECS);
    }
    assert_eq!(statuses, [TaskStatus::New, TaskStatus::New, TaskStatus::Error]);
    assert_eq!(fixture.read_task(&sequenced.tasks[0]).await.attempts.len(), 6);
}

pub async fn task_ids_of_different_stores_differ(harness: &dyn Harness) {
    let (one, other) = (
        StoreFixture::new(harness, RegistrationBuilder::single_handler()).await,
        StoreFixture::new(harness, RegistrationBuilder::single_handler()).await,
    );
    let (mine, theirs) = (one.emit(new_event("record")).await, other.emit(new_event("record")).await);
    assert_ne!(mine.tasks, theirs.tasks);
    assert!(
        expect_ok(one.store.read_task(&theirs.tasks[0]).await).is_none(),
        "another store's task id is unknown here"
    );
}

/// Event ids lag behind a clock that jumped ahead; tasks keep their creation time.
pub async fn a_created_from_filter_finds_tasks_created_after_a_clock_jump(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    fixture.emit(new_event("record")).await;
    fixture.advance_clock(8 * 3600);
    fixture.emit(new_event("record")).await;
    let start = Some(fixture.now.minus(secs(60)));
    assert_eq!(
        fixture.list_tasks(&TaskFilter { created_from: start, ..TaskFilter::default() }).await.len(),
        1
    );
}

pub async fn waiting_tasks_are_found_by_an_expired_event(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let expired_event = fixture.emit(new_event("record")).await;
    fixture.set_pause_rule("index").await;
    fixture.advance_clock(3600);
    fixture.emit(new_event("other")).await;
    let keep_one_minute = pointsman_core::journal::Retention { max_age: secs(60), ..KEEP_EVERYTHING };
    fixture.prune_events_and_tasks(keep_one_minute, KEEP_EVERYTHING).await;
    let filter = TaskFilter { event_id: Some(expired_event.id), ..TaskFilter::default() };
    assert_eq!(task_ids(&fixture.list_tasks(&filter).await), expired_event.tasks);
}
