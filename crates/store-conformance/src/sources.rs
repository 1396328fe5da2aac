//! Sources: a collection has at most one unfinished task, even if nodes race, and the task has no event.

use std::sync::Arc;

use pointsman_core::journal::Retention;
use pointsman_core::store::{FinishedAttempt, NewCollectionRun, NoSuchCollection, TaskFilter};
use pointsman_core::task::{AttemptOutcome, CollectionRun, TaskCommandError};
use pointsman_core::{Priority, TaskId, TaskStatus, Tenant};

use crate::Harness;
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::single_handler()
        .collection("shop/orders", 100)
        .collection("shop/orders_x", 500)
        .collection("crm/people", 100)
}

async fn assert_unknown_collection_refused(fixture: &StoreFixture<'_>, name: &str) {
    let run = NewCollectionRun { source_collection: source_collection(name), priority: None };
    assert_eq!(
        expect_ok(fixture.store.run_collection(run, None, fixture.now).await),
        Err(NoSuchCollection(source_collection(name)).into()),
        "{name}"
    );
}

pub async fn a_run_is_a_task_without_an_event(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let head = fixture.read_journal_range().await;
    let id = fixture.request_new_collection_run("shop/orders").await;
    let uuid = id.uuid().expect("the task id ends in a uuid");
    assert_eq!(id.as_str(), format!("shop_orders_{uuid}"));
    let task = fixture.read_task(&id).await;
    assert_eq!((&task.id, &task.handler, &*task.subject_name), (&id, &handler_name("shop"), "orders"));
    assert_eq!((task.event_id, &task.key, task.planned_at, task.priority.get()), (None, &None, None, 100));
    assert_eq!((&task.tenant, task.created_at), (&Tenant::default(), fixture.now));
    assert_eq!(task.lifecycle.state.status(), TaskStatus::New);
    assert_eq!(fixture.read_journal_range().await, head, "nothing is journaled");
    fixture.advance_clock(5);
    let claimed = fixture.claim_one().await;
    assert_eq!((&claimed.id, &claimed.handler, claimed.attempt), (&id, &handler_name("shop"), 1));
    assert_eq!((claimed.planned_at, claimed.prev_sent_event_id, claimed.out_of_order), (None, None, false));
    assert_eq!(
        *claimed.collection_run(),
        CollectionRun { source_collection: source_collection("shop/orders"), tenant: Tenant::default() }
    );
    fixture.succeed(&claimed).await;
    let task = fixture.read_task(&id).await;
    assert_eq!((task.lifecycle.state.status(), task.finished_at), (TaskStatus::Done, Some(fixture.now)));
}

pub async fn a_collection_has_at_most_one_unfinished_run(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let id = fixture.request_new_collection_run("shop/orders").await;
    let same = async |fixture: &StoreFixture<'_>, when: &str| {
        let run = fixture.request_collection_run("shop/orders").await;
        assert_eq!((run.task, run.created), (id.clone(), false), "{when}");
    };
    same(&fixture, "new").await;
    assert_eq!(fixture.schedule_tasks(5).await, 1);
    same(&fixture, "scheduled").await;
    let task = fixture.claim_one().await;
    same(&fixture, "locked").await;
    fixture.fail(&task).await;
    same(&fixture, "waiting to be retried").await;
    let mut fixture = fixture.reopen().await;
    same(&fixture, "after a restart").await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.succeed(&fixture.claim_one().await).await;
    assert_ne!(
        fixture.request_new_collection_run("shop/orders").await,
        id,
        "the next one, once it has ended"
    );
    fixture.request_new_collection_run("shop/orders_x").await;
    fixture.request_new_collection_run("crm/people").await;
}

pub async fn a_collection_can_run_again_after_any_end(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    for end in ["success", "failure", "cancelled while it waits", "cancelled while it runs", "crash"] {
        let id = fixture.request_new_collection_run("shop/orders").await;
        match end {
            "success" => drop(fixture.succeed(&fixture.claim_one().await).await),
            "failure" => drop(fixture.fail_permanently(&fixture.claim_one().await).await),
            "crash" => {
                for _ in 0..3 {
                    assert_eq!(fixture.claim_one().await.id, id);
                    fixture.advance_clock(LEASE_SECS + 1);
                    fixture.node_id = expect_ok(fixture.store.join_node("replacement", fixture.now).await);
                    fixture.rescue_tasks().await;
                }
                assert_eq!(fixture.read_task_status(&id).await, TaskStatus::Error);
            }
            _ => {
                if end == "cancelled while it runs" {
                    fixture.claim_one().await;
                }
                assert_eq!(fixture.cancel_task(&id).await, Ok(()));
            }
        }
        assert!(fixture.claim(10).await.is_empty(), "{end}");
    }
    fixture.request_new_collection_run("shop/orders").await;
}

pub async fn racing_run_requests_create_one_run(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let racers: Vec<_> = (0..20)
        .map(|_| {
            let (store, now) = (Arc::clone(&fixture.store), fixture.now);
            let run =
                NewCollectionRun { source_collection: source_collection("shop/orders"), priority: None };
            tokio::spawn(async move {
                expect_ok(store.run_collection(run, None, now).await).expect("the collection is registered")
            })
        })
        .collect();
    let mut answers = Vec::new();
    for racer in racers {
        answers.push(racer.await.expect("the racing call succeeded"));
    }
    assert_eq!(answers.iter().filter(|run| run.created).count(), 1);
    assert!(answers.iter().all(|run| run.task == answers[0].task));
    assert_eq!(fixture.list_tasks(&TaskFilter::default()).await.len(), 1);
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 1);
}

pub async fn an_unknown_collection_is_refused(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for name in ["shop/order", "shop/people", "nobody/orders", "index/record", "index/orders"] {
        assert_unknown_collection_refused(&fixture, name).await;
    }
    assert!(fixture.list_tasks(&TaskFilter::default()).await.is_empty());
    assert!(fixture.claim(10).await.is_empty());
}

pub async fn a_run_uses_its_own_priority_or_the_collections(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let own = Priority::try_from(7).expect("a priority");
    let run = NewCollectionRun { source_collection: source_collection("shop/orders"), priority: Some(own) };
    let answer = expect_ok(fixture.store.run_collection(run, None, fixture.now).await)
        .expect("the collection is registered");
    assert_eq!(fixture.read_task(&answer.task).await.priority, own);
    let other = fixture.request_new_collection_run("shop/orders_x").await;
    assert_eq!(fixture.read_task(&other).await.priority.get(), 500);
    assert_eq!(
        source_collection_names_of_tasks(&fixture.run_all_ready_tasks().await),
        ["shop/orders_x", "shop/orders"]
    );
}

pub async fn a_run_cannot_be_retried_while_another_is_unfinished(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let mut failed = Vec::new();
    for _ in 0..2 {
        failed.push(fixture.request_new_collection_run("shop/orders").await);
        fixture.fail_permanently(&fixture.claim_one().await).await;
    }
    let active = fixture.request_new_collection_run("shop/orders").await;
    let before = fixture.read_task(&failed[0]).await;
    assert_eq!(fixture.retry_task(&failed[0]).await, Err(TaskCommandError::CollectionBusy));
    assert_eq!(fixture.read_task(&failed[0]).await, before);
    fixture.claim_one().await;
    assert_eq!(
        fixture.retry_task(&failed[0]).await,
        Err(TaskCommandError::CollectionBusy),
        "nor while it runs"
    );
    assert_eq!(fixture.cancel_task(&active).await, Ok(()));
    let mut seqs = Vec::new();
    for id in &failed {
        seqs.push(fixture.read_task(id).await.seq);
    }
    assert_eq!(fixture.retry_tasks(&seqs).await, [Ok(()), Err(TaskCommandError::CollectionBusy)]);
    assert_eq!(
        fixture.request_collection_run("shop/orders").await.task,
        failed[0],
        "it is the collection's task again"
    );
    let again = fixture.claim_one().await;
    assert_eq!((again.id, again.attempt, again.out_of_order), (failed[0].clone(), 2, true));
}

async fn assert_task_is_missing_until_adopted(fixture: &mut StoreFixture<'_>, id: &TaskId) {
    assert_eq!(fixture.read_task_status(id).await, TaskStatus::Missing);
    assert!(fixture.read_task(id).await.error.is_some(), "its error says why it does not run");
    assert!(fixture.claim(10).await.is_empty());
    fixture.register(base_registration()).await;
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 0);
    assert!(fixture.claim(10).await.is_empty(), "registering the handler again is not enough");
    assert_eq!(fixture.adopt_missing_tasks("shop").await, 1);
    let again = fixture.claim_one().await;
    assert_eq!((&again.id, again.out_of_order), (id, true));
    assert_eq!(fixture.succeed(&again).await.status, TaskStatus::Done);
}

pub async fn runs_of_an_undefined_source_are_missing_until_adopted(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let id = fixture.request_new_collection_run("shop/orders").await;
    fixture.request_new_collection_run("crm/people").await;
    assert_eq!(fixture.undefine_handler_and_rescue("shop").await, 1);
    assert_unknown_collection_refused(&fixture, "shop/orders").await;
    assert_eq!(source_collection_names_of_tasks(&fixture.run_all_ready_tasks().await), ["crm/people"]);
    assert_task_is_missing_until_adopted(&mut fixture, &id).await;
}

pub async fn runs_of_an_undefined_collection_are_missing_until_adopted(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let id = fixture.request_new_collection_run("shop/orders").await;
    fixture.request_new_collection_run("shop/orders_x").await;
    fixture.register(base_registration().without_collection("shop/orders")).await;
    assert_eq!(fixture.rescue_tasks().await.marked_missing_count, 1);
    assert_unknown_collection_refused(&fixture, "shop/orders").await;
    assert_eq!(source_collection_names_of_tasks(&fixture.run_all_ready_tasks().await), ["shop/orders_x"]);
    let mut fixture = fixture.reopen().await;
    assert_task_is_missing_until_adopted(&mut fixture, &id).await;
}

/// A task that is running when its source is undefined can still finish.
pub async fn a_running_run_can_finish_after_its_source_is_undefined(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.request_new_collection_run("shop/orders").await;
    let running = fixture.claim_one().await;
    assert_eq!(fixture.undefine_handler_and_rescue("shop").await, 0);
    assert_eq!(fixture.succeed(&running).await.status, TaskStatus::Done);
}

/// Neither requests nor adoptions make a collection run twice at a time.
pub async fn adoption_creates_no_second_run_of_a_collection(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.request_new_collection_run("shop/orders").await;
    assert_eq!(fixture.undefine_handler_and_rescue("shop").await, 1);
    fixture.register(base_registration()).await;
    fixture.request_collection_run("shop/orders").await;
    fixture.adopt_missing_tasks("shop").await;
    for _ in 0..3 {
        let claimed = fixture.claim(10).await;
        assert!(claimed.len() <= 1, "{:?}", source_collection_names_of_tasks(&claimed));
        for task in claimed {
            fixture.succeed(&task).await;
        }
        fixture.adopt_missing_tasks("shop").await;
    }
    fixture.request_new_collection_run("shop/orders").await;
}

/// A source that moves to another tenant keeps its task.
pub async fn a_collection_keeps_its_run_when_its_tenant_changes(harness: &dyn Harness) {
    let mut fixture =
        StoreFixture::new(harness, RegistrationBuilder::default().collection("shop/orders", 100)).await;
    let id = fixture.request_new_collection_run("shop/orders").await;
    fixture.register(RegistrationBuilder::default().tenant_collection("elsewhere", "shop/orders", 100)).await;
    let run = fixture.request_collection_run("shop/orders").await;
    assert_eq!((run.task, run.created), (id, false));
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn runs_survive_a_restart(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let (queued, running) = (
        fixture.request_new_collection_run("shop/orders").await,
        fixture.request_new_collection_run("shop/orders_x").await,
    );
    let claimed = fixture.claim_one().await;
    let before = fixture.list_tasks(&TaskFilter::default()).await;
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.list_tasks(&TaskFilter::default()).await, before);
    assert_eq!(fixture.request_collection_run("shop/orders").await.task, queued);
    assert_eq!(fixture.request_collection_run("shop/orders_x").await.task, running);
    assert_eq!(fixture.succeed(&claimed).await.status, TaskStatus::Done);
    let next = fixture.claim_one().await;
    assert_eq!(
        (next.id.clone(), next.collection_run().source_collection.clone()),
        (queued, source_collection("shop/orders"))
    );
}

/// Collection names are compared whole, not by prefix.
pub async fn runs_are_found_by_source_and_collection(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let mut run_ids = Vec::new();
    for name in ["shop/orders", "shop/orders_x", "crm/people"] {
        run_ids.push(fixture.request_new_collection_run(name).await);
        fixture.succeed(&fixture.claim_one().await).await;
    }
    run_ids.push(fixture.request_new_collection_run("shop/orders").await);
    let find = async |source: &str, collection: Option<&str>, statuses: &[TaskStatus]| {
        let (handler, collection) = (Some(handler_name(source)), collection.map(String::from));
        let filter = TaskFilter {
            handler,
            subject_name: collection,
            statuses: statuses.to_vec(),
            ..TaskFilter::default()
        };
        let found = fixture.list_tasks(&filter).await;
        found
            .iter()
            .map(|task| run_ids.iter().position(|id| *id == task.id).expect("a run of this test"))
            .collect::<Vec<_>>()
    };
    assert_eq!(find("shop", None, &[]).await, [3, 1, 0]);
    assert_eq!(find("shop", Some("orders"), &[]).await, [3, 0]);
    assert_eq!(find("shop", Some("orders"), &[TaskStatus::Done]).await, [0]);
    assert_eq!(find("shop", Some("orders_x"), &[]).await, [1]);
    assert_eq!(find("shop", Some("order"), &[]).await, [0; 0]);
    assert_eq!(find("crm", Some("orders"), &[]).await, [0; 0]);
}

pub async fn a_run_emits_and_logs_like_any_other_task(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.request_new_collection_run("shop/orders").await;
    let task = fixture.claim_one().await;
    let (emits, logs) =
        (vec![new_event("record").caused_by(&task)], vec![info_log_line(fixture.now, "one order")]);
    let finished = fixture
        .finish_attempt(FinishedAttempt {
            emitted_events: emits,
            log_lines: logs,
            ..finished_attempt(&task, success())
        })
        .await
        .expect("the fence is current");
    let emitted = &fixture.read_all_events().await[0];
    assert_eq!(emitted.id, finished.emitted_events[0].id);
    assert_eq!(emitted.cause.map(|cause| (cause.event, cause.task, cause.depth)), Some((None, task.seq, 1)));
    assert_eq!(fixture.read_log_messages(&task.id).await, ["one order"]);
    assert_eq!(event_ids_of_tasks(&fixture.run_all_ready_tasks().await), [emitted.id]);
}

pub async fn a_failed_run_is_retried(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let id = fixture.request_new_collection_run("shop/orders").await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(fixture.fail(&fixture.claim_one().await).await.status);
        assert!(fixture.claim(10).await.is_empty());
        fixture.advance_clock(RETRY_DELAY_SECS);
    }
    assert_eq!(statuses, [TaskStatus::New, TaskStatus::New, TaskStatus::Error]);
    let ends: Vec<_> = fixture.read_task(&id).await.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(ends, [AttemptOutcome::Failed; 3]);
}

/// A run has no event that could expire: only the task history's retention deletes it.
pub async fn runs_expire_by_task_history_retention_only(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let old = fixture.request_new_collection_run("shop/orders").await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    let waiting = fixture.request_new_collection_run("crm/people").await;
    fixture.advance_clock(200_000);
    let (keep_nothing, keep_one_day) = (
        Retention { max_count: 0, max_age: secs(1) },
        Retention { max_age: secs(86_400), ..KEEP_EVERYTHING },
    );
    fixture.prune_events_and_tasks(keep_nothing, KEEP_EVERYTHING).await;
    assert_eq!(fixture.retry_task(&old).await, Ok(()));
    fixture.fail_permanently(&fixture.claim_one_for_handler("shop").await).await;
    fixture.advance_clock(200_000);
    fixture.prune_events_and_tasks(keep_nothing, keep_one_day).await;
    assert!(expect_ok(fixture.store.read_task(&old).await).is_none());
    assert_eq!(
        fixture.read_task_status(&waiting).await,
        TaskStatus::New,
        "an unfinished run is never pruned"
    );
    fixture.request_new_collection_run("shop/orders").await;
}
