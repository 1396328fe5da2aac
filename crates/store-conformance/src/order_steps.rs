//! A step is a task like any other: logs, limits, rules, workers, why, history.

use pointsman_core::journal::Retention;
use pointsman_core::store::{Ended, Ending, Signal, TaskFilter};
use pointsman_core::task::{AttemptEnd, Rejected};
use pointsman_core::{Limits, RuleKind, Status};

use crate::Harness;
use crate::fixture::*;
use crate::notifications::{hears, listen};

fn plan() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>b b=second>done!failed done failed")
}

async fn with_orders(harness: &dyn Harness, plan: RegistrationBuilder, count: usize) -> StoreFixture<'_> {
    let world = StoreFixture::new(harness, plan).await;
    for number in 1..=count {
        world.add_order(new_order(&format!("/x/y,{number}"))).await;
    }
    world
}

pub async fn a_step_logs_and_emits_like_any_other_task(harness: &dyn Harness) {
    let world = with_orders(harness, plan().route("record", &["index"]), 1).await;
    let task = world.claim_one().await;
    let (emits, logs) = (vec![new_event("record").caused_by(&task)], vec![info_line(world.now, "one line")]);
    let finished =
        world.finish_attempt(Ending { emits, logs, ..attempt_ending(&task, success()) }).await.expect("ours");
    assert_eq!(world.log_messages(&task.id).await, ["one line"]);
    let emitted = expect_ok(world.store.event(finished.emitted[0].id).await).expect("it is remembered").event;
    assert_eq!(emitted.cause.map(|cause| (cause.event, cause.task, cause.depth)), Some((None, task.seq, 1)));
    assert_eq!(world.claim_for_handlers(&["index"], 10).await.len(), 1);
}

pub async fn steps_are_listed_among_tasks(harness: &dyn Harness) {
    let world = with_orders(harness, plan(), 2).await;
    world.run_all_ready().await;
    let find = async |filter: TaskFilter| world.list_tasks(&filter).await.len();
    assert_eq!(find(TaskFilter::default()).await, 4);
    assert_eq!(find(TaskFilter { handler: Some(handler_name("first")), ..TaskFilter::default() }).await, 2);
    assert_eq!(find(TaskFilter { collection: Some("b".into()), ..TaskFilter::default() }).await, 2);
    assert_eq!(find(TaskFilter { key: Some(object_key("/x/y,2")), ..TaskFilter::default() }).await, 2);
    assert_eq!(find(TaskFilter { statuses: vec![Status::Done], ..TaskFilter::default() }).await, 4);
}

pub async fn the_attempts_of_a_step_are_recorded(harness: &dyn Harness) {
    let mut world = with_orders(harness, plan(), 1).await;
    let task = world.claim_one().await;
    world.fail(&task).await;
    world.advance_clock(RETRY_DELAY_SECS);
    world.release_task(&world.claim_one().await).await;
    world.finish_as(&world.claim_one().await, Ended::Succeeded { result: Some(parse_json("7")) }).await;
    let seen = world.read_task(&task.id).await;
    let ends: Vec<_> = seen.attempts.iter().map(|attempt| attempt.end).collect();
    assert_eq!(ends, [AttemptEnd::Failed, AttemptEnd::Released, AttemptEnd::Succeeded]);
    assert_eq!((seen.life.state.status(), seen.result), (Status::Done, Some(parse_json("7"))));
}

pub async fn a_failed_step_cannot_be_retried_without_its_order(harness: &dyn Harness) {
    let world = with_orders(harness, plan(), 1).await;
    let task = world.claim_one().await;
    world.fail_permanently(&task).await;
    let (before, since) = (world.read_task(&task.id).await, world.journal_head().await);
    assert_eq!(world.retry_task(&task.id).await, Err(Rejected::ResumeItsOrder));
    assert_eq!((world.read_task(&task.id).await, world.journal_head().await), (before, since));
    world.resume_order("/x/y,1").await;
    assert_eq!(world.retry_task(&task.id).await, Err(Rejected::ResumeItsOrder), "nor beside the next one");
    assert_eq!(world.claim(10).await.len(), 1);
}

pub async fn concurrency_limit_applies_to_steps(harness: &dyn Harness) {
    let plan =
        plan().chain("/z", "a=first>done done").route("record", &["first"]).concurrency_limit("first", 2);
    let world = with_orders(harness, plan, 3).await;
    world.add_order(new_order("/z,1")).await;
    world.emit(new_event("record")).await;
    let mut ran = 0;
    for _ in 0..10 {
        let running = world.claim_for_handlers(&["first"], 10).await;
        assert!(running.len() <= 2, "over all that it does");
        ran += running.len();
        for task in running {
            world.succeed(&task).await;
        }
    }
    assert_eq!(ran, 5);
}

pub async fn rate_limit_applies_to_steps(harness: &dyn Harness) {
    let mut world = with_orders(harness, plan().rate_limit("first", "1/m"), 2).await;
    assert_eq!(world.claim(10).await.len(), 1);
    world.assert_nothing_claimable("the rate is used up").await;
    world.advance_clock(60);
    assert_eq!(world.claim(10).await.len(), 1);
}

/// Orders are objects of their own: none waits for another, whatever order its handler keeps.
pub async fn the_per_key_limit_counts_each_order_separately(harness: &dyn Harness) {
    let limits = Limits { concurrency_per_key: Some(1), ..Limits::default() };
    let world = with_orders(harness, plan().unordered("first").limits("first", limits), 3).await;
    assert_eq!(world.claim(10).await.len(), 3);
}

pub async fn handler_rules_block_its_steps(harness: &dyn Harness) {
    for kind in RuleKind::ALL {
        let world = with_orders(harness, plan(), 2).await;
        world.schedule_ahead(2).await;
        expect_ok(world.store.hold(world.new_rule(kind, "first", None)).await);
        world.assert_nothing_claimable("its handler is held").await;
        assert!(world.read_queue_of_kind("first", step_queue("/x/y", "a")).await.held);
        expect_ok(world.store.release(kind, &rule_target("first"), None).await);
        assert_eq!(world.claim(10).await.len(), 2);
    }
}

pub async fn each_chain_node_has_its_own_step_counters(harness: &dyn Harness) {
    let mut world = with_orders(harness, plan().route("record", &["first"]), 3).await;
    world.emit(new_event("record")).await;
    world.add_order(new_order("/x/y,later").planned_at(world.seconds_from_now(60))).await;
    let at = |node| step_queue("/x/y", node);
    let queue = world.read_queue_of_kind("first", at("a")).await;
    assert_eq!((queue.ready, queue.waiting, queue.running), (3, 1, 0));
    assert_eq!(world.read_queue("first").await.ready, 1, "events are counted apart");
    for task in world.claim_for_handlers(&["first"], 10).await {
        if task.subject.event().is_none() && task.step().order != order_key("/x/y,1") {
            world.succeed(&task).await;
        }
    }
    assert_eq!(world.read_queue_of_kind("first", at("a")).await.running, 1);
    assert_eq!(world.read_queue_of_kind("second", at("b")).await.ready, 2);
    world.advance_clock(60);
    assert_eq!(world.claim_for_handlers(&["first"], 10).await.len(), 1);
    assert_eq!(world.read_queue_of_kind("first", at("a")).await.running, 2);
}

pub async fn workers_can_pull_steps(harness: &dyn Harness) {
    let mut world = with_orders(harness, plan().pulled_by_workers("first"), 1).await;
    assert!(world.claim(10).await.is_empty());
    let task = world.fetch_one_as_worker("first").await;
    assert_eq!(describe_steps(std::slice::from_ref(&task)), ["/x/y,1 a"]);
    assert!(world.read_order("/x/y,1").await.order.running);
    let since = world.journal_head().await;
    world.advance_clock(LEASE_SECS + 1);
    world.heartbeat().await;
    world.rescue_tasks().await;
    assert_eq!(world.engine_event_summaries_after(since).await, ["OrderStepEnded Keep"], "its lease ran out");
    world.succeed(&world.fetch_one_as_worker("first").await).await;
    assert_eq!(describe_steps(&world.claim(10).await), ["/x/y,1 b"]);
}

pub async fn steps_of_an_undefined_handler_are_missing_until_adopted(harness: &dyn Harness) {
    let mut world = with_orders(harness, plan(), 1).await;
    let whole = world.plan.clone();
    let id = world.order_task_id("/x/y,1").await;
    assert_eq!(world.undefine_handler("first").await, 1);
    assert_eq!(
        world.read_order("/x/y,1").await.task.map(|(id, status, _)| (id, status)),
        Some((id.clone(), Status::Missing))
    );
    world.assert_nothing_claimable("there is no such handler").await;
    world.register(whole).await;
    assert_eq!(world.adopt_missing_tasks("first").await, 1);
    let task = world.claim_one().await;
    assert_eq!(task.id, id);
    world.succeed(&task).await;
    assert_eq!(world.read_order("/x/y,1").await.order.node, chain_node_id("b"));
}

pub async fn finished_steps_expire_with_the_task_history(harness: &dyn Harness) {
    let mut world = with_orders(harness, plan(), 2).await;
    world.succeed(&world.claim_one().await).await;
    world.advance_clock(200_000);
    let nothing = Retention { count: 0, age: secs(1) };
    world.prune(nothing, nothing).await;
    assert_eq!(world.list_tasks(&TaskFilter::default()).await.len(), 2, "those that wait are kept");
    let world = world.reopen().await;
    assert_eq!(world.run_all_ready().await.len(), 3);
    assert!(world.list_orders("/").await.is_empty());
}

/// Whoever sleeps until there is work hears of it, wherever it comes from.
pub async fn listeners_are_notified_of_startable_steps(harness: &dyn Harness) {
    let world = StoreFixture::new(harness, plan()).await;
    let work = |signal| signal == Signal::Work;
    let mut heard = listen(&world);
    world.add_order(new_order("/x/y,1")).await;
    hears(&mut heard, work).await;
    world.suspend_order("/x/y,1").await;
    let mut heard = listen(&world);
    world.resume_order("/x/y,1").await;
    hears(&mut heard, work).await;
    world.set_chain_stopped("/x/y", true).await;
    let mut heard = listen(&world);
    world.set_chain_stopped("/x/y", false).await;
    hears(&mut heard, work).await;
    let task = world.claim_one().await;
    let mut heard = listen(&world);
    world.succeed(&task).await;
    hears(&mut heard, work).await;
    let head = world.journal_head().await;
    let mut heard = listen(&world);
    world.set_chain_stopped("/x/y", true).await;
    hears(&mut heard, |signal| matches!(signal, Signal::Journal(id) if id > head)).await;
}
