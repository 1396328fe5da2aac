//! A step is a task like any other: logs, limits, rules, workers, queue counters, history.

use pointsman_core::journal::Retention;
use pointsman_core::store::{AttemptResult, FinishedAttempt, StoreSignal, TaskFilter};
use pointsman_core::task::{AttemptOutcome, TaskCommandError};
use pointsman_core::{Limits, RuleKind, TaskStatus};

use crate::Harness;
use crate::fixture::*;
use crate::notifications::{subscribe_to_signals, wait_for_signal};

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>b b=second>done!failed done failed")
}

async fn fixture_with_orders(
    harness: &dyn Harness,
    registration: RegistrationBuilder,
    count: usize,
) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, registration).await;
    for number in 1..=count {
        fixture.add_order(new_order(&format!("/x/y,{number}"))).await;
    }
    fixture
}

pub async fn a_step_logs_and_emits_like_any_other_task(harness: &dyn Harness) {
    let fixture = fixture_with_orders(harness, base_registration().route("record", &["index"]), 1).await;
    let task = fixture.claim_one().await;
    let (emits, logs) =
        (vec![new_event("record").caused_by(&task)], vec![info_log_line(fixture.now, "one line")]);
    let finished = fixture
        .finish_attempt(FinishedAttempt {
            emitted_events: emits,
            log_lines: logs,
            ..finished_attempt(&task, success())
        })
        .await
        .expect("the fence is current");
    assert_eq!(fixture.read_log_messages(&task.id).await, ["one line"]);
    let emitted = expect_ok(fixture.store.read_event(finished.emitted_events[0].id).await)
        .expect("the event has not expired")
        .event;
    assert_eq!(emitted.cause.map(|cause| (cause.event, cause.task, cause.depth)), Some((None, task.seq, 1)));
    assert_eq!(fixture.claim_for_handlers(&["index"], 10).await.len(), 1);
}

pub async fn steps_are_listed_among_tasks(harness: &dyn Harness) {
    let fixture = fixture_with_orders(harness, base_registration(), 2).await;
    fixture.run_all_ready_tasks().await;
    let find = async |filter: TaskFilter| fixture.list_tasks(&filter).await.len();
    assert_eq!(find(TaskFilter::default()).await, 4);
    assert_eq!(find(TaskFilter { handler: Some(handler_name("first")), ..TaskFilter::default() }).await, 2);
    assert_eq!(find(TaskFilter { subject_name: Some("b".into()), ..TaskFilter::default() }).await, 2);
    assert_eq!(find(TaskFilter { key: Some(object_key("/x/y,2")), ..TaskFilter::default() }).await, 2);
    assert_eq!(find(TaskFilter { statuses: vec![TaskStatus::Done], ..TaskFilter::default() }).await, 4);
}

pub async fn the_attempts_of_a_step_are_recorded(harness: &dyn Harness) {
    let mut fixture = fixture_with_orders(harness, base_registration(), 1).await;
    let task = fixture.claim_one().await;
    fixture.fail(&task).await;
    fixture.advance_clock(RETRY_DELAY_SECS);
    fixture.release_task(&fixture.claim_one().await).await;
    fixture
        .finish_with_result(
            &fixture.claim_one().await,
            AttemptResult::Succeeded { result: Some(parse_json("7")) },
        )
        .await;
    let stored = fixture.read_task(&task.id).await;
    let ends: Vec<_> = stored.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(ends, [AttemptOutcome::Failed, AttemptOutcome::Released, AttemptOutcome::Succeeded]);
    assert_eq!((stored.lifecycle.state.status(), stored.result), (TaskStatus::Done, Some(parse_json("7"))));
}

pub async fn a_failed_step_is_retried_only_by_resuming_its_order(harness: &dyn Harness) {
    let fixture = fixture_with_orders(harness, base_registration(), 1).await;
    let task = fixture.claim_one().await;
    fixture.fail_permanently(&task).await;
    let (before, since) = (fixture.read_task(&task.id).await, fixture.read_journal_head().await);
    assert_eq!(fixture.retry_task(&task.id).await, Err(TaskCommandError::IsOrderStep));
    assert_eq!((fixture.read_task(&task.id).await, fixture.read_journal_head().await), (before, since));
    fixture.resume_order("/x/y,1").await;
    assert_eq!(
        fixture.retry_task(&task.id).await,
        Err(TaskCommandError::IsOrderStep),
        "nor while the next step waits"
    );
    assert_eq!(fixture.claim(10).await.len(), 1);
}

pub async fn concurrency_limit_applies_to_steps(harness: &dyn Harness) {
    let registration = base_registration()
        .chain("/z", "a=first>done done")
        .route("record", &["first"])
        .concurrency_limit("first", 2);
    let fixture = fixture_with_orders(harness, registration, 3).await;
    fixture.add_order(new_order("/z,1")).await;
    fixture.emit(new_event("record")).await;
    let mut ran = 0;
    for _ in 0..10 {
        let running = fixture.claim_for_handlers(&["first"], 10).await;
        assert!(running.len() <= 2, "the limit counts all tasks of the handler");
        ran += running.len();
        for task in running {
            fixture.succeed(&task).await;
        }
    }
    assert_eq!(ran, 5);
}

pub async fn rate_limit_applies_to_steps(harness: &dyn Harness) {
    let mut fixture = fixture_with_orders(harness, base_registration().rate_limit("first", "1/m"), 2).await;
    assert_eq!(fixture.claim(10).await.len(), 1);
    fixture.assert_nothing_claimable("the rate is used up").await;
    fixture.advance_clock(60);
    assert_eq!(fixture.claim(10).await.len(), 1);
}

/// Each order is an object of its own: none waits for another, whatever its handler's ordering.
pub async fn the_per_key_limit_counts_each_order_separately(harness: &dyn Harness) {
    let limits = Limits { concurrency_per_key: Some(1), ..Limits::default() };
    let fixture =
        fixture_with_orders(harness, base_registration().unordered("first").limits("first", limits), 3).await;
    assert_eq!(fixture.claim(10).await.len(), 3);
}

pub async fn rules_of_a_handler_block_its_steps(harness: &dyn Harness) {
    for kind in RuleKind::ALL {
        let fixture = fixture_with_orders(harness, base_registration(), 2).await;
        fixture.schedule_tasks(2).await;
        expect_ok(fixture.store.set_rule(fixture.new_rule(kind, "first", None)).await);
        fixture.assert_nothing_claimable("its handler is paused or blocked").await;
        assert!(
            fixture
                .read_queue_of_subject("first", step_queue_subject("/x/y", "a"))
                .await
                .is_paused_or_blocked
        );
        expect_ok(fixture.store.lift_rule(kind, &rule_scope("first"), None).await);
        assert_eq!(fixture.claim(10).await.len(), 2);
    }
}

pub async fn each_chain_node_has_its_own_step_counters(harness: &dyn Harness) {
    let mut fixture = fixture_with_orders(harness, base_registration().route("record", &["first"]), 3).await;
    fixture.emit(new_event("record")).await;
    fixture.add_order(new_order("/x/y,later").planned_at(fixture.seconds_from_now(60))).await;
    let at = |node| step_queue_subject("/x/y", node);
    let queue = fixture.read_queue_of_subject("first", at("a")).await;
    assert_eq!((queue.ready_count, queue.waiting_count, queue.running_count), (3, 1, 0));
    assert_eq!(fixture.read_queue("first").await.ready_count, 1, "events are counted apart");
    for task in fixture.claim_for_handlers(&["first"], 10).await {
        if task.subject.event().is_none() && task.step_run().order_key != order_key("/x/y,1") {
            fixture.succeed(&task).await;
        }
    }
    assert_eq!(fixture.read_queue_of_subject("first", at("a")).await.running_count, 1);
    assert_eq!(fixture.read_queue_of_subject("second", at("b")).await.ready_count, 2);
    fixture.advance_clock(60);
    assert_eq!(fixture.claim_for_handlers(&["first"], 10).await.len(), 1);
    assert_eq!(fixture.read_queue_of_subject("first", at("a")).await.running_count, 2);
}

pub async fn workers_can_pull_steps(harness: &dyn Harness) {
    let mut fixture = fixture_with_orders(harness, base_registration().pulled_by_workers("first"), 1).await;
    assert!(fixture.claim(10).await.is_empty());
    let task = fixture.claim_one_as_pull_worker("first").await;
    assert_eq!(format_steps(std::slice::from_ref(&task)), ["/x/y,1 a"]);
    assert!(fixture.read_order("/x/y,1").await.order.step_running);
    let since = fixture.read_journal_head().await;
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.send_heartbeat().await;
    fixture.rescue_tasks().await;
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["OrderStepEnded Keep"],
        "its lease ran out"
    );
    fixture.succeed(&fixture.claim_one_as_pull_worker("first").await).await;
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 b"]);
}

pub async fn steps_of_an_undefined_handler_are_missing_until_adopted(harness: &dyn Harness) {
    let mut fixture = fixture_with_orders(harness, base_registration(), 1).await;
    let whole = fixture.registration.clone();
    let id = fixture.read_order_task_id("/x/y,1").await;
    assert_eq!(fixture.undefine_handler_and_rescue("first").await, 1);
    assert_eq!(
        fixture.read_order("/x/y,1").await.task.map(|(id, status, _)| (id, status)),
        Some((id.clone(), TaskStatus::Missing))
    );
    fixture.assert_nothing_claimable("there is no such handler").await;
    fixture.register(whole).await;
    assert_eq!(fixture.adopt_missing_tasks("first").await, 1);
    let task = fixture.claim_one().await;
    assert_eq!(task.id, id);
    fixture.succeed(&task).await;
    assert_eq!(fixture.read_order("/x/y,1").await.order.node, chain_node_id("b"));
}

pub async fn finished_steps_expire_with_the_task_history(harness: &dyn Harness) {
    let mut fixture = fixture_with_orders(harness, base_registration(), 2).await;
    fixture.succeed(&fixture.claim_one().await).await;
    fixture.advance_clock(200_000);
    let nothing = Retention { max_count: 0, max_age: secs(1) };
    fixture.prune_events_and_tasks(nothing, nothing).await;
    assert_eq!(fixture.list_tasks(&TaskFilter::default()).await.len(), 2, "waiting tasks are kept");
    let fixture = fixture.reopen().await;
    assert_eq!(fixture.run_all_ready_tasks().await.len(), 3);
    assert!(fixture.list_orders("/").await.is_empty());
}

/// A sleeping node is notified of a step that can start, whatever made it startable.
pub async fn listeners_are_notified_of_startable_steps(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let work = |signal| signal == StoreSignal::TasksReady;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.add_order(new_order("/x/y,1")).await;
    wait_for_signal(&mut signals, work).await;
    fixture.suspend_order("/x/y,1").await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.resume_order("/x/y,1").await;
    wait_for_signal(&mut signals, work).await;
    fixture.set_chain_stopped("/x/y", true).await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.set_chain_stopped("/x/y", false).await;
    wait_for_signal(&mut signals, work).await;
    let task = fixture.claim_one().await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.succeed(&task).await;
    wait_for_signal(&mut signals, work).await;
    let head = fixture.read_journal_head().await;
    let mut signals = subscribe_to_signals(&fixture);
    fixture.set_chain_stopped("/x/y", true).await;
    wait_for_signal(&mut signals, |signal| matches!(signal, StoreSignal::JournalGrew(id) if id > head)).await;
}
