//! Why a task is not running: the state of each gate, and what closes it.

use pointsman_core::limit::{BREAKER_FAILURE_THRESHOLD, TargetHealth};
use pointsman_core::store::{AttemptResult, NodeCapabilities};
use pointsman_core::task::gates::{Gate, GateKind};
use pointsman_core::{Limits, RuleKind, TaskId};

use crate::Harness;
use crate::fixture::*;

/// A fixture whose node has announced that it can run all handlers.
async fn fixture_with_capable_node(
    harness: &dyn Harness,
    registration: RegistrationBuilder,
) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, registration).await;
    announce_all_handlers(&fixture).await;
    fixture
}

async fn announce_all_handlers(fixture: &StoreFixture<'_>) {
    let capabilities = NodeCapabilities {
        handlers: fixture.registration.handler_names(),
        slots: 16,
        ..NodeCapabilities::default()
    };
    expect_ok(fixture.store.store_node_capabilities(fixture.node_id, capabilities).await);
}

/// Returns the only gate of this kind.
async fn read_gate(fixture: &StoreFixture<'_>, id: &TaskId, kind: GateKind) -> Gate {
    let mut gates = fixture.list_gates(id).await;
    gates.retain(|gate| gate.kind == kind);
    assert_eq!(gates.len(), 1, "{kind:?}: {gates:?}");
    gates.remove(0)
}

pub async fn a_runnable_task_reports_its_queue_position(harness: &dyn Harness) {
    let fixture = fixture_with_capable_node(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(4, new_event("record")).await;
    assert_eq!(fixture.list_closed_gate_kinds(&events[0].tasks[0]).await, [GateKind::SelectedToRunNext]);
    let details = [
        read_gate(&fixture, &events[0].tasks[0], GateKind::SelectedToRunNext).await.detail,
        read_gate(&fixture, &events[3].tasks[0], GateKind::SelectedToRunNext).await.detail,
    ];
    assert!(details[0].contains("next of its queue"), "{details:?}");
    assert!(details[1].contains("3 tasks of its queue come before it"), "{details:?}");
    assert!(
        read_gate(&fixture, &events[0].tasks[0], GateKind::CapableNodeOrWorker)
            .await
            .detail
            .contains("first")
    );
    fixture.schedule_tasks(1).await;
    assert_eq!(
        fixture.list_closed_gate_kinds(&events[0].tasks[0]).await,
        [],
        "a scheduled task has been selected"
    );
}

/// Tasks of higher priority come first, whenever they were created.
pub async fn the_queue_position_counts_tasks_by_priority(harness: &dyn Harness) {
    let fixture = fixture_with_capable_node(harness, RegistrationBuilder::single_handler()).await;
    let low = fixture.emit(new_event("record").with_priority(1)).await;
    fixture.emit_copies(2, new_event("record").with_priority(9000)).await;
    fixture.emit_copies(5, new_event("record").for_tenant("elsewhere")).await;
    let detail = read_gate(&fixture, &low.tasks[0], GateKind::SelectedToRunNext).await.detail;
    assert!(detail.contains("2 tasks of its queue come before it"), "{detail}");
}

pub async fn running_and_finished_tasks_have_no_gates(harness: &dyn Harness) {
    let fixture = fixture_with_capable_node(harness, RegistrationBuilder::single_handler()).await;
    let ids: Vec<_> = fixture
        .emit_copies(3, new_event("record"))
        .await
        .into_iter()
        .map(|event| event.tasks[0].clone())
        .collect();
    let claimed = fixture.claim(3).await;
    fixture.succeed(&claimed[1]).await;
    fixture.fail_permanently(&claimed[2]).await;
    for id in &ids {
        assert!(fixture.list_gates(id).await.is_empty());
    }
    let never = TaskId::from_text("index_record_00000000-0000-8000-8000-000000000000");
    assert!(expect_ok(fixture.store.explain_waiting(&never, fixture.now).await).is_none());
}

pub async fn a_delayed_task_reports_its_due_time(harness: &dyn Harness) {
    let mut fixture = fixture_with_capable_node(harness, RegistrationBuilder::single_handler()).await;
    let due = fixture.seconds_from_now(60);
    let id = fixture.emit(new_event("record").due_at(due)).await.tasks.remove(0);
    assert_eq!(fixture.list_closed_gate_kinds(&id).await, [GateKind::DueTimePassed]);
    assert_eq!(read_gate(&fixture, &id, GateKind::DueTimePassed).await.opens_at, Some(due));
    fixture.advance_clock(60);
    assert!(read_gate(&fixture, &id, GateKind::DueTimePassed).await.open);
}

pub async fn a_task_in_a_lane_reports_the_task_it_waits_for(harness: &dyn Harness) {
    let fixture =
        fixture_with_capable_node(harness, RegistrationBuilder::single_handler().halt_on_error("index"))
            .await;
    let ids: Vec<_> = fixture
        .emit_copies(3, new_event("record").with_key("a"))
        .await
        .into_iter()
        .map(|event| event.tasks[0].clone())
        .collect();
    assert_eq!(
        fixture.list_closed_gate_kinds(&ids[0]).await,
        [GateKind::SelectedToRunNext],
        "the head waits for no other task"
    );
    assert_eq!(read_gate(&fixture, &ids[1], GateKind::FirstInLane).await.blocking_tasks, [ids[0].clone()]);
    let holder = read_gate(&fixture, &ids[2], GateKind::FirstInLane).await.blocking_tasks;
    assert!(holder.len() == 1 && ids[..2].contains(&holder[0]), "one of those before it");
    fixture.fail_permanently(&fixture.claim_one().await).await;
    assert_eq!(
        read_gate(&fixture, &ids[1], GateKind::FirstInLane).await.blocking_tasks,
        [ids[0].clone()],
        "it is halted"
    );
    assert_eq!(
        fixture.list_closed_gate_kinds(&ids[0]).await.first(),
        Some(&GateKind::HandlerDefined),
        "an operator has to retry or cancel it"
    );
    fixture.cancel_task(&ids[0]).await.expect("it is halted");
    assert!(read_gate(&fixture, &ids[1], GateKind::FirstInLane).await.open);
}

/// A task that runs out of order is in its lane as well.
pub async fn an_out_of_order_task_reports_the_task_it_waits_for(harness: &dyn Harness) {
    let fixture = fixture_with_capable_node(harness, RegistrationBuilder::single_handler()).await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    fixture.fail_permanently(&fixture.claim_one().await).await;
    fixture.retry_task(&events[0].tasks[0]).await.expect("the task has failed permanently");
    assert_eq!(
        read_gate(&fixture, &events[0].tasks[0], GateKind::FirstInLane).await.blocking_tasks,
        events[1].tasks
    );
    assert!(read_gate(&fixture, &events[1].tasks[0], GateKind::FirstInLane).await.open);
}

pub async fn a_queued_task_reports_the_synchronous_task_it_waits_for(harness: &dyn Harness) {
    let fixture = fixture_with_capable_node(
        harness,
        RegistrationBuilder::default().route("record", &["check!", "index"]),
    )
    .await;
    let tasks = fixture.emit(new_event("record")).await.tasks;
    assert_eq!(
        read_gate(&fixture, &tasks[1], GateKind::EarlierSyncTasksAttempted).await.blocking_tasks,
        [tasks[0].clone()]
    );
    assert_eq!(fixture.list_closed_gate_kinds(&tasks[1]).await, [GateKind::EarlierSyncTasksAttempted]);
    fixture.succeed(&fixture.claim_one().await).await;
    assert_eq!(fixture.list_closed_gate_kinds(&tasks[1]).await, [GateKind::SelectedToRunNext]);
}

pub async fn every_rule_blocking_a_task_is_reported(harness: &dyn Harness) {
    let registration = RegistrationBuilder::single_handler().collection("shop/orders", 100);
    let fixture = fixture_with_capable_node(harness, registration).await;
    let id = fixture.emit(new_event("record").for_tenant("shop")).await.tasks.remove(0);
    let run = fixture.request_new_collection_run("shop/orders").await;
    let mut rules = vec![
        fixture.new_rule(RuleKind::Pause, "index", None),
        fixture.new_rule(RuleKind::Block, "index", Some("shop")),
        fixture.new_rule(RuleKind::Block, "index", Some("elsewhere")),
        fixture.new_rule(RuleKind::Pause, "shop/orders", None),
        fixture.new_rule(RuleKind::Block, "shop", None),
    ];
    for rule in &rules {
        expect_ok(fixture.store.set_rule(rule.clone()).await);
    }
    rules.remove(2);
    for (id, rules) in [(&id, &rules[..2]), (&run, &rules[2..])] {
        let gates = fixture.list_gates(id).await;
        let closed_gates: Vec<_> =
            gates.iter().filter(|gate| gate.kind == GateKind::NoBlockingRule && !gate.open).collect();
        assert_eq!(closed_gates.len(), 2, "{gates:?}");
        for rule in rules {
            assert!(closed_gates.iter().any(|gate| gate.rule.as_ref() == Some(rule)), "{rule:?}");
        }
        assert_eq!(fixture.list_closed_gate_kinds(id).await, [GateKind::NoBlockingRule; 2]);
    }
}

pub async fn a_task_reports_the_concurrency_limit_as_its_closed_gate(harness: &dyn Harness) {
    let fixture = fixture_with_capable_node(
        harness,
        RegistrationBuilder::single_handler().concurrency_limit("index", 2),
    )
    .await;
    let events = fixture.emit_copies(3, new_event("record")).await;
    let mut running: Vec<_> = fixture.claim(10).await.into_iter().map(|task| task.id).collect();
    let gate = read_gate(&fixture, &events[2].tasks[0], GateKind::Concurrency).await;
    let mut holders = gate.blocking_tasks;
    holders.sort();
    running.sort();
    assert_eq!((gate.open, holders), (false, running));
    assert_eq!(fixture.list_closed_gate_kinds(&events[2].tasks[0]).await, [GateKind::Concurrency]);
}

pub async fn a_task_reports_the_per_key_limit_as_its_closed_gate(harness: &dyn Harness) {
    let limits = Limits { concurrency_per_key: Some(1), ..Limits::default() };
    let fixture = fixture_with_capable_node(
        harness,
        RegistrationBuilder::single_handler().unordered("index").limits("index", limits),
    )
    .await;
    let events = fixture.emit_copies(2, new_event("record").with_key("a")).await;
    let other = fixture.emit(new_event("record").with_key("b")).await;
    let running = fixture.claim_one().await;
    let waiting = events.iter().find(|event| event.tasks[0] != running.id).expect("the other one");
    let gate = read_gate(&fixture, &waiting.tasks[0], GateKind::ConcurrencyPerKey).await;
    assert_eq!((gate.open, gate.blocking_tasks), (false, vec![running.id]));
    assert!(read_gate(&fixture, &other.tasks[0], GateKind::ConcurrencyPerKey).await.open);
}

pub async fn a_task_reports_the_rate_limit_as_its_closed_gate(harness: &dyn Harness) {
    let mut fixture =
        fixture_with_capable_node(harness, RegistrationBuilder::single_handler().rate_limit("index", "1/m"))
            .await;
    let events = fixture.emit_copies(2, new_event("record")).await;
    fixture.succeed(&fixture.claim_one().await).await;
    let gate = read_gate(&fixture, &events[1].tasks[0], GateKind::Rate).await;
    assert_eq!((gate.open, gate.opens_at), (false, Some(fixture.seconds_from_now(60))));
    fixture.advance_clock(60);
    assert!(read_gate(&fixture, &events[1].tasks[0], GateKind::Rate).await.open);
}

pub async fn a_task_reports_a_busy_or_failing_target_as_its_closed_gate(harness: &dyn Harness) {
    let mut fixture = fixture_with_capable_node(
        harness,
        RegistrationBuilder::single_handler().use_default_retry_policy("index"),
    )
    .await;
    let last = fixture.emit_copies(20, new_event("record")).await.remove(19).tasks.remove(0);
    let until = fixture.seconds_from_now(60);
    let task = fixture.claim_one().await;
    fixture
        .finish_with_target_health(&task, AttemptResult::Snoozed { until }, TargetHealth::Busy { until })
        .await;
    let gate = read_gate(&fixture, &last, GateKind::BreakerNotOpen).await;
    assert_eq!((gate.open, gate.opens_at), (false, Some(until)));
    fixture.advance_clock(60);
    for _ in 0..BREAKER_FAILURE_THRESHOLD {
        let task = fixture.claim_one().await;
        fixture
            .finish_with_target_health(
                &task,
                AttemptResult::Snoozed { until: fixture.seconds_from_now(3600) },
                TargetHealth::Failing,
            )
            .await;
    }
    let gate = read_gate(&fixture, &last, GateKind::BreakerNotOpen).await;
    assert!(!gate.open && gate.detail.contains("failed 5 times"), "{gate:?}");
    fixture.now = gate.opens_at.expect("a retry time is set");
    let trial = fixture.claim_one().await;
    let gate = read_gate(&fixture, &last, GateKind::Concurrency).await;
    assert_eq!((gate.open, gate.blocking_tasks), (false, vec![trial.id]), "tried by one at a time");
}

pub async fn a_task_reports_that_no_live_node_can_run_it(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, RegistrationBuilder::single_handler()).await;
    let id = fixture.emit(new_event("record")).await.tasks.remove(0);
    assert_eq!(
        fixture.list_closed_gate_kinds(&id).await,
        [GateKind::CapableNodeOrWorker],
        "no node has announced the handler"
    );
    let other = NodeCapabilities {
        handlers: [handler_name("notify")].into(),
        slots: 16,
        ..NodeCapabilities::default()
    };
    expect_ok(fixture.store.store_node_capabilities(fixture.node_id, other).await);
    assert_eq!(fixture.list_closed_gate_kinds(&id).await, [GateKind::CapableNodeOrWorker]);
    announce_all_handlers(&fixture).await;
    assert_eq!(fixture.list_closed_gate_kinds(&id).await, [GateKind::SelectedToRunNext]);
    expect_ok(fixture.store.remove_node(fixture.node_id, fixture.now).await);
    assert_eq!(fixture.list_closed_gate_kinds(&id).await, [GateKind::CapableNodeOrWorker], "it has left");
    fixture.node_id = expect_ok(fixture.store.join_node("second", fixture.now).await);
    announce_all_handlers(&fixture).await;
    assert_eq!(fixture.list_closed_gate_kinds(&id).await, [GateKind::SelectedToRunNext]);
    fixture.advance_clock(LEASE_SECS + 1);
    fixture.rescue_tasks().await;
    assert_eq!(fixture.list_closed_gate_kinds(&id).await, [GateKind::CapableNodeOrWorker], "it has expired");
}

pub async fn a_pulled_task_reports_that_no_pull_worker_polls_for_it(harness: &dyn Harness) {
    let mut fixture =
        fixture_with_capable_node(harness, RegistrationBuilder::single_handler().pulled_by_workers("index"))
            .await;
    fixture.claim_as_pull_worker(&["unheard-of"], 1).await;
    let ids: Vec<_> = fixture
        .emit_copies(2, new_event("record"))
        .await
        .into_iter()
        .map(|event| event.tasks[0].clone())
        .collect();
    assert_eq!(
        fixture.list_closed_gate_kinds(&ids[1]).await,
        [GateKind::CapableNodeOrWorker],
        "a node cannot run a pulled task"
    );
    fixture.claim_as_pull_worker(&["index"], 1).await;
    assert_eq!(fixture.list_closed_gate_kinds(&ids[1]).await, [GateKind::SelectedToRunNext]);
    fixture.advance_clock(3600);
    assert_eq!(
        fixture.list_closed_gate_kinds(&ids[1]).await,
        [GateKind::CapableNodeOrWorker],
        "the worker has not polled for an hour"
    );
}

pub async fn a_missing_task_reports_its_undefined_handler(harness: &dyn Harness) {
    let mut fixture =
        fixture_with_capable_node(harness, RegistrationBuilder::single_handler().route("note", &["notify"]))
            .await;
    let id = fixture.emit(new_event("record")).await.tasks.remove(0);
    fixture.undefine_handler_and_rescue("index").await;
    assert_eq!(fixture.list_closed_gate_kinds(&id).await.first(), Some(&GateKind::HandlerDefined));
    fixture.register(RegistrationBuilder::single_handler()).await;
    let gate = read_gate(&fixture, &id, GateKind::HandlerDefined).await;
    assert!(!gate.open && gate.detail.contains("adopt"), "{gate:?}");
    fixture.adopt_missing_tasks("index").await;
    assert!(read_gate(&fixture, &id, GateKind::HandlerDefined).await.open);
}

pub async fn source_runs_report_their_gates(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .collection("shop/orders", 100)
        .collection("shop/items", 9000)
        .concurrency_limit("shop", 1);
    let fixture = fixture_with_capable_node(harness, registration).await;
    let (orders, items) = (
        fixture.request_new_collection_run("shop/orders").await,
        fixture.request_new_collection_run("shop/items").await,
    );
    assert_eq!(fixture.list_closed_gate_kinds(&orders).await, [GateKind::SelectedToRunNext]);
    let detail = read_gate(&fixture, &orders, GateKind::SelectedToRunNext).await.detail;
    assert!(detail.contains("one task of its queue comes before it"), "{detail}");
    assert_eq!(fixture.claim_one().await.id, items);
    assert_eq!(read_gate(&fixture, &orders, GateKind::Concurrency).await.blocking_tasks, [items]);
}

/// Several gates may be closed at once; they are listed in the order in which they are passed.
pub async fn closed_gates_are_listed_in_the_order_they_are_passed(harness: &dyn Harness) {
    let fixture = fixture_with_capable_node(
        harness,
        RegistrationBuilder::default().route("record", &["check!", "index"]).concurrency_limit("index", 1),
    )
    .await;
    fixture.emit(new_event("record").with_key("a")).await;
    let last = fixture
        .emit(new_event("record").with_key("a").due_at(fixture.seconds_from_now(60)))
        .await
        .tasks
        .remove(1);
    fixture.set_pause_rule("index").await;
    let want = [
        GateKind::EarlierSyncTasksAttempted,
        GateKind::FirstInLane,
        GateKind::DueTimePassed,
        GateKind::NoBlockingRule,
    ];
    assert_eq!(fixture.list_closed_gate_kinds(&last).await, want);
}
