//! Pull workers: they lease tasks, renew, log and end them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::*;
use pointsman_core::store::{AttemptResult, ClaimedTask};
use pointsman_core::task::{AttemptOutcome, LogLevel, LogLine, TaskCommandError};
use pointsman_core::{NewEvent, Rule, RuleKind, RuleScope, TaskStatus, Tenant};
use pointsman_engine::{Engine, HandlerOutcome, PullRequest};

const HOUR: Duration = Duration::from_secs(3600);

fn builder_with_pulled_handler() -> TestEngineBuilder {
    TestEngineBuilder::default().pulled_handler("audit").route("a", "audit")
}

fn pull_request(max_tasks: usize, max_wait: Duration) -> PullRequest {
    PullRequest {
        handlers: [handler_name("audit")].into(),
        max_tasks,
        max_wait,
        lease_duration: HOUR,
        tenant: None,
    }
}

async fn pull_tasks(engine: &Engine, max_tasks: usize) -> Vec<ClaimedTask> {
    within_timeout("tasks", engine.pull_tasks(pull_request(max_tasks, TEST_TIMEOUT))).await.unwrap()
}

async fn assert_nothing_to_pull(engine: &Engine) {
    assert!(engine.pull_tasks(pull_request(1, Duration::from_millis(20))).await.unwrap().is_empty());
}

fn log_line(message: &str) -> LogLine {
    LogLine { time: now(), level: LogLevel::Info, message: message.into() }
}

#[tokio::test]
async fn a_pull_worker_waits_logs_renews_and_ends_a_task() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    assert_nothing_to_pull(&engine).await;
    let mut watcher = TaskWatcher::new(&engine);
    let worker = tokio::spawn({
        let engine = engine.clone();
        async move { pull_tasks(&engine, 5).await }
    });
    let receipt = emit(&engine, vec![keyed_event("a", "x")]).await;
    let leased = worker.await.unwrap().remove(0);
    assert_eq!((&leased.id, leased.attempt), (&receipt.events[0].tasks[0], 1));
    assert_eq!(leased.subject.event().unwrap().id, receipt.events[0].id);
    watcher.wait_for_change(|change| change.status == TaskStatus::Locked).await;
    assert_nothing_to_pull(&engine).await;

    let mut lines = engine.subscribe_log_writes();
    let (id, fence) = (&leased.id, leased.fence);
    assert_eq!(
        engine.append_task_log(id, fence, vec![log_line("one"), log_line("two")]).await.unwrap(),
        Ok(2)
    );
    within_timeout("the notification of new log lines", lines.changed()).await.unwrap();
    let until = engine.renew_lease(id, fence, Some(HOUR * 2)).await.unwrap().unwrap();
    assert!(until > now().plus(HOUR));
    for wrong in [fence - 1, fence + 1] {
        assert!(engine.renew_lease(id, wrong, Some(HOUR)).await.unwrap().is_err());
        assert!(
            engine
                .append_task_log(id, wrong, vec![log_line("a line with a wrong fence")])
                .await
                .unwrap()
                .is_err()
        );
        assert!(engine.end_leased_task(id, wrong, HandlerOutcome::succeeded()).await.unwrap().is_err());
    }
    let outcome = HandlerOutcome {
        emitted_events: vec![keyed_event("b", "y")],
        log_lines: vec![log_line("three")],
        ..HandlerOutcome::succeeded()
    };
    let finished = engine.end_leased_task(id, fence, outcome.clone()).await.unwrap().unwrap();
    assert_eq!((finished.status, finished.emitted_events.len()), (TaskStatus::Done, 1));
    assert_eq!(watcher.wait_for_ended_tasks(1).await[0].id, *id);
    assert!(engine.end_leased_task(id, fence, outcome).await.unwrap().is_err(), "it has ended");
    assert_eq!(read_log(&store, id).await, ["one", "two", "three"]);
    let events = list_emitted_events(&engine).await;
    let cause = events[1].cause.unwrap();
    assert_eq!((events.len(), cause.event, cause.depth), (2, Some(receipt.events[0].id), 1));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn failures_and_snoozes_of_pull_workers_count_like_those_of_handlers() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let first = pull_tasks(&engine, 1).await.remove(0);
    let finished =
        engine.end_leased_task(&first.id, first.fence, snoozed_outcome(now())).await.unwrap().unwrap();
    assert_eq!(finished.status, TaskStatus::New);
    for attempt in 2..=4 {
        let leased = pull_tasks(&engine, 1).await.remove(0);
        assert_eq!(leased.attempt, attempt);
        let failed = HandlerOutcome::failed(format!("fault {attempt}"));
        engine.end_leased_task(&leased.id, leased.fence, failed).await.unwrap().unwrap();
    }
    let ended = read_task(&store, &first.id).await;
    assert_eq!(
        (ended.lifecycle.state.status(), ended.error.as_deref()),
        (TaskStatus::Error, Some("fault 4"))
    );
    let outcomes: Vec<_> = ended.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(
        outcomes,
        [AttemptOutcome::Snoozed, AttemptOutcome::Failed, AttemptOutcome::Failed, AttemptOutcome::Failed]
    );
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_pull_worker_that_does_not_renew_loses_its_lease_and_the_task_runs_again() {
    let store = in_memory_store();
    let mut builder = builder_with_pulled_handler();
    builder.settings.sweep_interval = Duration::from_millis(20);
    let engine = builder.start(&store).await;
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let short_lease_request =
        PullRequest { lease_duration: Duration::from_millis(50), ..pull_request(1, TEST_TIMEOUT) };
    let lost_task = within_timeout("a task", engine.pull_tasks(short_lease_request)).await.unwrap().remove(0);
    let next_task = pull_tasks(&engine, 1).await.remove(0);
    assert_eq!((&next_task.id, next_task.attempt), (&lost_task.id, 2));
    assert_eq!(
        engine.renew_lease(&lost_task.id, lost_task.fence, None).await.unwrap(),
        Err(TaskCommandError::StaleFence)
    );
    assert!(
        engine
            .append_task_log(
                &lost_task.id,
                lost_task.fence,
                vec![log_line("a line after the lease was lost")]
            )
            .await
            .unwrap()
            .is_err()
    );
    assert!(
        engine
            .end_leased_task(&lost_task.id, lost_task.fence, HandlerOutcome::succeeded())
            .await
            .unwrap()
            .is_err()
    );
    engine
        .end_leased_task(&next_task.id, next_task.fence, HandlerOutcome::succeeded())
        .await
        .unwrap()
        .unwrap();
    let done = read_task(&store, &next_task.id).await;
    assert_eq!((done.lifecycle.crashes, done.lifecycle.retries), (1, 0));
    let outcomes: Vec<_> = done.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, [AttemptOutcome::Crashed, AttemptOutcome::Succeeded]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_pull_worker_that_renews_its_lease_keeps_its_task() {
    let store = in_memory_store();
    let mut builder = builder_with_pulled_handler();
    builder.settings.sweep_interval = Duration::from_millis(10);
    let engine = builder.start(&store).await;
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let lease = Duration::from_secs(2);
    let short_lease_request = PullRequest { lease_duration: lease, ..pull_request(1, TEST_TIMEOUT) };
    let leased = within_timeout("a task", engine.pull_tasks(short_lease_request)).await.unwrap().remove(0);
    let leased_at = now();
    while now().duration_since(leased_at) < lease * 2 {
        engine.renew_lease(&leased.id, leased.fence, None).await.unwrap().unwrap();
        tokio::time::sleep(lease / 20).await;
    }
    engine.end_leased_task(&leased.id, leased.fence, HandlerOutcome::succeeded()).await.unwrap().unwrap();
    assert_eq!(read_task(&store, &leased.id).await.lifecycle.crashes, 0);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn after_a_cancel_the_requests_of_the_pull_worker_are_refused() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let leased = pull_tasks(&engine, 1).await.remove(0);
    engine.cancel_task(&leased.id).await.unwrap().unwrap();
    let (id, fence) = (&leased.id, leased.fence);
    assert!(
        engine
            .append_task_log(id, fence, vec![log_line("a line after the lease was lost")])
            .await
            .unwrap()
            .is_err()
    );
    assert!(engine.renew_lease(id, fence, None).await.unwrap().is_err());
    assert!(engine.end_leased_task(id, fence, HandlerOutcome::succeeded()).await.unwrap().is_err());
    assert!(read_log(&store, id).await.is_empty());
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn disconnected_pull_workers_lose_no_tasks() {
    const TASK_COUNT: usize = 200;
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    let disconnecting_workers: Vec<_> = (0..400)
        .map(|number: u64| {
            let engine = engine.clone();
            tokio::spawn(async move {
                // Some workers disconnect before tasks are emitted, some meanwhile.
                let time_limit = Duration::from_micros(number * 50);
                let pull = engine.pull_tasks(pull_request(3, TEST_TIMEOUT));
                tokio::time::timeout(time_limit, pull).await.ok().map(Result::unwrap).unwrap_or_default()
            })
        })
        .collect();
    let events = (0..TASK_COUNT).map(|number| keyed_event("a", &format!("k{number}"))).collect();
    let receipt = emit(&engine, events).await;
    let mut leased = Vec::new();
    for worker in disconnecting_workers {
        leased.extend(worker.await.unwrap());
    }
    while leased.len() < TASK_COUNT {
        leased.extend(pull_tasks(&engine, 50).await);
    }
    for task in &leased {
        engine.end_leased_task(&task.id, task.fence, HandlerOutcome::succeeded()).await.unwrap().unwrap();
    }
    for sequenced in &receipt.events {
        let done = read_task(&store, &sequenced.tasks[0]).await;
        assert_eq!((done.lifecycle.state.status(), done.lifecycle.crashes), (TaskStatus::Done, 0));
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn each_task_goes_to_exactly_one_of_many_waiting_pull_workers() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    let waiting: Vec<_> = (0..1000)
        .map(|_| {
            let engine = engine.clone();
            tokio::spawn(async move { pull_tasks(&engine, 10).await })
        })
        .collect();
    for round in 0..100 {
        let events = (0..10).map(|number| keyed_event("a", &format!("k{round}-{number}"))).collect();
        emit(&engine, events).await;
    }
    let mut ids = Vec::new();
    for worker in waiting {
        ids.extend(worker.await.unwrap().into_iter().map(|task| task.id));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 1000, "each worker got one task, and no two got the same");
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn pulls_respect_tenants_and_rules() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    let north = Tenant::new("north").unwrap();
    emit(&engine, vec![keyed_event("a", "x"), NewEvent { tenant: north.clone(), ..keyed_event("a", "y") }])
        .await;
    let tenant_request = PullRequest { tenant: Some(north.clone()), ..pull_request(5, TEST_TIMEOUT) };
    let leased = within_timeout("a task", engine.pull_tasks(tenant_request)).await.unwrap();
    assert_eq!(leased.len(), 1);
    assert_eq!(leased[0].subject.tenant(), &north);
    let lease = engine.find_leased_task(&leased[0].id, leased[0].fence).await.unwrap().unwrap();
    assert_eq!(lease.tenant, north);

    let scope = RuleScope::Handler(handler_name("audit"));
    let (set_by, reason) = ("ops".to_owned(), String::new());
    let rule =
        Rule { kind: RuleKind::Block, scope: scope.clone(), tenant: None, set_by, reason, since: now() };
    engine.set_rule(rule).await.unwrap();
    assert_nothing_to_pull(&engine).await;
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { pull_tasks(&engine, 1).await }
    });
    engine.lift_rule(RuleKind::Block, &scope, None).await.unwrap();
    assert_eq!(waiting.await.unwrap().len(), 1);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_pull_worker_may_end_its_task_at_another_node() {
    let store = in_memory_store();
    let (first_node, other_node) = (
        builder_with_pulled_handler().start(&store).await,
        builder_with_pulled_handler().start(&store).await,
    );
    let receipt = emit(&first_node, vec![keyed_event("a", "x")]).await;
    let leased = pull_tasks(&first_node, 1).await.remove(0);
    let (id, fence) = (&leased.id, leased.fence);
    assert_eq!(
        other_node.append_task_log(id, fence, vec![log_line("a line sent to the other node")]).await.unwrap(),
        Ok(1)
    );
    other_node.renew_lease(id, fence, None).await.unwrap().unwrap();
    let outcome =
        HandlerOutcome { emitted_events: vec![keyed_event("b", "y")], ..HandlerOutcome::succeeded() };
    other_node.end_leased_task(id, fence, outcome).await.unwrap().unwrap();
    let events = list_emitted_events(&other_node).await;
    assert_eq!(events[1].cause.unwrap().event, Some(receipt.events[0].id));
    assert!(first_node.renew_lease(id, fence, None).await.unwrap().is_err());
    first_node.stop(TEST_TIMEOUT).await;
    other_node.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn the_log_of_a_pull_worker_is_truncated_at_the_limit() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let leased = pull_tasks(&engine, 1).await.remove(0);
    for _ in 0..11 {
        let lines = (0..1000).map(|_| log_line("one of many lines")).collect();
        engine.append_task_log(&leased.id, leased.fence, lines).await.unwrap().unwrap();
    }
    assert_eq!(
        engine
            .append_task_log(&leased.id, leased.fence, vec![log_line("a line over the limit")])
            .await
            .unwrap(),
        Ok(0)
    );
    let ended = AttemptResult::Succeeded { result: None };
    let outcome =
        HandlerOutcome { result: ended, log_lines: vec![log_line("last")], ..HandlerOutcome::succeeded() };
    engine.end_leased_task(&leased.id, leased.fence, outcome).await.unwrap().unwrap();
    let lines = read_log(&store, &leased.id).await;
    assert_eq!(lines.len(), 10_001);
    assert!(lines[10_000].contains("output is cut here"));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn the_log_limit_holds_across_nodes() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    emit(&engine, vec![keyed_event("a", "x")]).await;
    // Lines of an earlier attempt do not count against the quota of the next.
    let first = pull_tasks(&engine, 1).await.remove(0);
    let lines = |count: usize| (0..count).map(|_| log_line("one of many lines")).collect::<Vec<_>>();
    assert_eq!(engine.append_task_log(&first.id, first.fence, lines(3000)).await.unwrap(), Ok(3000));
    engine.end_leased_task(&first.id, first.fence, HandlerOutcome::failed("again")).await.unwrap().unwrap();
    let leased = pull_tasks(&engine, 1).await.remove(0);
    let (id, fence) = (&leased.id, leased.fence);
    assert_eq!(engine.append_task_log(id, fence, lines(9999)).await.unwrap(), Ok(9999));
    let other_node = builder_with_pulled_handler().start(&store).await;
    assert_eq!(
        other_node.append_task_log(id, fence, lines(5)).await.unwrap(),
        Ok(2),
        "one line, and the mark"
    );
    let third = builder_with_pulled_handler().start(&store).await;
    assert_eq!(third.append_task_log(id, fence, lines(5)).await.unwrap(), Ok(0), "no line follows the mark");
    let lines = read_log(&store, id).await;
    assert_eq!(lines.len(), 3000 + 10_001);
    assert!(lines[13_000].contains("output is cut here"));
    for engine in [engine, other_node, third] {
        engine.stop(TEST_TIMEOUT).await;
    }
}

#[tokio::test]
async fn renewing_without_a_duration_uses_the_duration_of_the_claim() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let leased = pull_tasks(&engine, 1).await.remove(0);
    let until = engine.renew_lease(&leased.id, leased.fence, None).await.unwrap().unwrap();
    assert!(until > now().plus(HOUR / 2));
    let other_node = builder_with_pulled_handler().start(&store).await;
    let until = other_node.renew_lease(&leased.id, leased.fence, None).await.unwrap().unwrap();
    assert!(until > now().plus(HOUR / 2), "also by a node that did not grant the lease");
    engine.stop(TEST_TIMEOUT).await;
    other_node.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_snooze_of_a_pull_worker_has_a_minimum_duration() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    emit(&engine, vec![keyed_event("a", "x")]).await;
    let leased = pull_tasks(&engine, 1).await.remove(0);
    let at = now();
    let finished =
        engine.end_leased_task(&leased.id, leased.fence, snoozed_outcome(at)).await.unwrap().unwrap();
    assert!(finished.next_attempt_due_at.unwrap() >= at.plus(Duration::from_secs(1)));
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_pull_without_waiting_finds_existing_tasks() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    for round in 0..50 {
        // Some workers wait and disconnect; tasks that are emitted meanwhile go to the next worker.
        let disconnecting_pulls: Vec<_> =
            (0..3).map(|_| Box::pin(engine.pull_tasks(pull_request(1, TEST_TIMEOUT)))).collect();
        for mut waiting in disconnecting_pulls {
            let waited = tokio::time::timeout(Duration::from_micros(300), &mut waiting).await;
            assert!(waited.is_err(), "there was nothing yet");
        }
        emit(&engine, vec![keyed_event("a", &format!("k{round}"))]).await;
        let leased = engine.pull_tasks(pull_request(1, Duration::ZERO)).await.unwrap();
        assert_eq!(leased.len(), 1, "in round {round}");
        engine
            .end_leased_task(&leased[0].id, leased[0].fence, HandlerOutcome::succeeded())
            .await
            .unwrap()
            .unwrap();
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_stopping_node_answers_its_waiting_pull_workers() {
    let store = in_memory_store();
    let engine = builder_with_pulled_handler().start(&store).await;
    let waiting = tokio::spawn({
        let engine = engine.clone();
        async move { engine.pull_tasks(pull_request(1, TEST_TIMEOUT * 10)).await }
    });
    // The worker waits once the first claim found nothing; a stop before that must be answered too.
    tokio::task::yield_now().await;
    engine.stop(Duration::ZERO).await;
    assert!(within_timeout("a response", waiting).await.unwrap().unwrap_or_default().is_empty());
    assert!(engine.pull_tasks(pull_request(1, TEST_TIMEOUT)).await.is_err());
}
