//! An order runs its chain step by step, one task per step, and every move is published in the journal in order.

use std::collections::BTreeSet;

use pointsman_core::store::{AttemptResult, ClaimedTask, FinishedAttempt, OrderError, TaskFilter};
use pointsman_core::{TaskStatus, Tenant};

use crate::Harness;
use crate::fixture::*;

/// A chain a → b → done, in which a failure of b leads to `failed`.
fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/x/y", "a=first>b b=second>done!failed done failed")
}

async fn succeed_with_result(fixture: &StoreFixture<'_>, task: &ClaimedTask, value: &str) {
    fixture.finish_with_result(task, AttemptResult::Succeeded { result: Some(parse_json(value)) }).await;
}

pub async fn an_order_runs_its_chain_step_by_step(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let added = fixture.try_add_order(new_order("/x/y,117")).await.expect("the request is valid");
    assert_eq!(added.order, order_key("/x/y,117"));
    let since = fixture.read_journal_range().await.last_expired_event_id;
    let first = fixture.claim_one().await;
    fixture.succeed(&first).await;
    let second = fixture.claim_one().await;
    assert_eq!(format_steps(&[first.clone(), second.clone()]), ["/x/y,117 a", "/x/y,117 b"]);
    assert_eq!((first.handler.as_str(), second.handler.as_str()), ("first", "second"));
    assert_ne!(first.id, second.id, "a step is a task");
    fixture.succeed(&second).await;
    assert_eq!(
        fixture.read_engine_event_json_after(since).await,
        [
            r#"{"key":"Order:/x/y,117","TYPE":"FileBasedAdded","nodeId":"a"}"#,
            r#"{"key":"/x/y,117","TYPE":"OrderStarted","nodeId":"a","taskId":"first_a"}"#,
            r#"{"key":"/x/y,117","TYPE":"OrderStepStarted","nodeId":"a","taskId":"first_a"}"#,
            r#"{"key":"/x/y,117","TYPE":"OrderStepEnded","nodeTransition":{"TYPE":"Success"}}"#,
            r#"{"key":"/x/y,117","TYPE":"OrderNodeChanged","fromNodeId":"a","nodeId":"b"}"#,
            r#"{"key":"/x/y,117","TYPE":"OrderStepStarted","nodeId":"b","taskId":"second_b"}"#,
            r#"{"key":"/x/y,117","TYPE":"OrderStepEnded","nodeTransition":{"TYPE":"Success"}}"#,
            r#"{"key":"/x/y,117","TYPE":"OrderNodeChanged","fromNodeId":"b","nodeId":"done"}"#,
            r#"{"key":"/x/y,117","TYPE":"OrderFinished","nodeId":"done"}"#,
            r#"{"key":"Order:/x/y,117","TYPE":"FileBasedRemoved"}"#,
        ]
    );
    let events = fixture.read_engine_events_after(since).await;
    assert_eq!(events[0].id, added.event, "the first event is that of the addition");
    for (number, task) in [(1, &first), (2, &first), (5, &second)] {
        assert!(events[number].value.as_str().contains(task.id.as_str()), "the task is named whole");
    }
    assert!(fixture.find_order("/x/y,117").await.is_none());
    assert!(fixture.claim(10).await.is_empty());
}

/// Each move is published in its own transaction: adding an order does not start it, finishing a step does not start
/// the next.
pub async fn every_order_move_is_published_in_its_transaction(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let mut since = fixture.read_journal_head().await;
    let mut published = async |fixture: &StoreFixture<'_>| {
        let published = fixture.summarize_engine_events_after(since).await;
        since = fixture.read_journal_head().await;
        published
    };
    fixture.add_order(new_order("/x/y,1")).await;
    assert_eq!(published(&fixture).await, ["FileBasedAdded nodeId:a"]);
    let task = fixture.claim_one().await;
    let started = ["OrderStarted nodeId:a,taskId:first_a", "OrderStepStarted nodeId:a,taskId:first_a"];
    assert_eq!(published(&fixture).await, started);
    fixture.succeed(&task).await;
    assert_eq!(
        published(&fixture).await,
        ["OrderStepEnded Success", "OrderNodeChanged fromNodeId:a,nodeId:b"]
    );
}

pub async fn an_order_view_follows_the_order_through_its_chain(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    let added = fixture.now;
    fixture.add_order(new_order("/x/y,1").with_value("[1]").with_priority(300)).await;
    let view = fixture.read_order("/x/y,1").await;
    assert_eq!((view.order.key.to_string().as_str(), view.order.node.as_str()), ("/x/y,1", "a"));
    assert_eq!((view.order.value.as_str(), view.order.priority.get()), ("[1]", 300));
    assert_eq!((view.order.created_at, view.order.planned_at, view.order.started_at), (added, None, None));
    assert!(!view.order.suspended && !view.order.step_running && !view.is_at_removed_node);
    assert_eq!((view.retry_at, &view.order.tenant), (None, &Tenant::default()));
    let (id, status, _) = view.task.expect("it waits for its step");
    assert_eq!(status, TaskStatus::New);
    fixture.advance_clock(5);
    let task = fixture.claim_one().await;
    assert_eq!(task.id, id);
    let view = fixture.read_order("/x/y,1").await;
    assert_eq!((view.order.started_at, view.order.step_running), (Some(fixture.now), true));
    assert_eq!(view.task.map(|(id, status, _)| (id, status)), Some((id, TaskStatus::Locked)));
    let began = fixture.now;
    fixture.advance_clock(5);
    fixture.succeed(&task).await;
    let view = fixture.read_order("/x/y,1").await;
    assert_eq!((view.order.node.as_str(), view.order.step_running), ("b", false));
    assert_eq!(view.order.started_at, Some(began), "it has started once");
    assert!(fixture.find_order("/x/y,2").await.is_none() && fixture.find_order("/x/z,1").await.is_none());
}

pub async fn a_claimed_step_carries_its_orders_data(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1").with_value(r#"{"n":1}"#).for_tenant("shop").with_priority(7)).await;
    let task = fixture.claim_one().await;
    let uuid = task.id.uuid().expect("the task id ends in a uuid");
    assert_eq!(task.id.as_str(), format!("first_a_{uuid}"));
    let step = task.step_run();
    assert_eq!((&step.order_key, step.node.as_str()), (&order_key("/x/y,1"), "a"));
    assert_eq!((step.object_key.as_str(), step.tenant.as_str()), ("/x/y,1", "shop"));
    assert_eq!((step.value.as_str(), task.attempt), (r#"{"n":1}"#, 1));
    assert_eq!((task.planned_at, task.prev_sent_event_id), (None, None));
    let stored = fixture.read_task(&task.id).await;
    assert_eq!((stored.event_id, &*stored.subject_name, stored.priority.get()), (None, "a", 7));
    assert_eq!(stored.key.as_ref().map(|key| key.as_str()), Some("/x/y,1"));
    assert_eq!(stored.tenant, tenant("shop"));
}

pub async fn a_steps_result_becomes_the_order_value(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1").with_value("1")).await;
    let first = fixture.claim_one().await;
    assert_eq!(first.step_run().value.as_str(), "1");
    succeed_with_result(&fixture, &first, "[2]").await;
    assert_eq!(fixture.read_order("/x/y,1").await.order.value.as_str(), "[2]");
    assert_eq!(fixture.read_task(&first.id).await.result, Some(parse_json("[2]")));
    let second = fixture.claim_one().await;
    assert_eq!(second.step_run().value.as_str(), "[2]");
    fixture.fail(&second).await;
    assert_eq!(
        fixture.read_order("/x/y,1").await.order.value.as_str(),
        "[2]",
        "a failed step changes nothing"
    );
}

/// A step without a result keeps the value; a result of null replaces it.
pub async fn a_step_without_a_result_keeps_the_order_value(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for (id, result, value) in [("1", None, "5"), ("2", Some("null"), "null")] {
        let key = format!("/x/y,{id}");
        fixture.add_order(new_order(&key).with_value("5")).await;
        let attempt_result = AttemptResult::Succeeded { result: result.map(parse_json) };
        fixture.finish_with_result(&fixture.claim_one_for_handler("first").await, attempt_result).await;
        assert_eq!(fixture.read_order(&key).await.order.value.as_str(), value);
    }
}

pub async fn an_order_can_start_at_any_chain_node(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1").starting_at_chain_node("b")).await;
    let task = fixture.claim_one().await;
    assert_eq!((task.handler.as_str(), task.step_run().node.as_str()), ("second", "b"));
    let since = fixture.read_journal_head().await;
    fixture.add_order(new_order("/x/y,2").starting_at_chain_node("failed")).await;
    let want = ["FileBasedAdded nodeId:failed", "OrderFinished nodeId:failed", "FileBasedRemoved"];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want, "an end is reached at once");
    assert!(fixture.find_order("/x/y,2").await.is_none());
}

pub async fn a_planned_order_starts_at_its_time(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let at = fixture.seconds_from_now(60);
    fixture.add_order(new_order("/x/y,1").planned_at(at)).await;
    let view = fixture.read_order("/x/y,1").await;
    assert_eq!(view.order.planned_at, Some(at));
    assert_eq!(view.task.map(|(_, status, due)| (status, due)), Some((TaskStatus::New, Some(at))));
    let claims = fixture.claim_with_remaining_work(10).await;
    assert!(claims.tasks.is_empty());
    assert_eq!(claims.next_task_due_at, Some(at));
    let mut fixture = fixture.reopen().await;
    fixture.advance_clock(59);
    fixture.assert_nothing_claimable("a second too early").await;
    fixture.advance_clock(1);
    let first = fixture.claim_one().await;
    fixture.succeed(&first).await;
    assert_eq!(
        format_steps(&fixture.claim(10).await),
        ["/x/y,1 b"],
        "the planned time applies to the first step only"
    );
}

pub async fn an_order_planned_for_the_past_starts_immediately(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1").planned_at(fixture.now.minus(secs(60)))).await;
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,1 a"]);
}

pub async fn orders_run_by_priority(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for (id, priority) in [("low", 1), ("high", 9000), ("middle", 500), ("also-high", 9000)] {
        fixture.add_order(new_order(&format!("/x/y,{id}")).with_priority(priority)).await;
    }
    let mut ran = Vec::new();
    for _ in 0..4 {
        ran.extend(fixture.claim_for_handlers(&["first"], 1).await);
    }
    let want = ["/x/y,high a", "/x/y,also-high a", "/x/y,middle a", "/x/y,low a"];
    assert_eq!(format_steps(&ran), want);
    for task in &ran {
        fixture.succeed(task).await;
    }
    assert_eq!(format_steps(&fixture.claim(1).await), ["/x/y,high b"], "at every node");
}

pub async fn the_id_of_an_unfinished_order_is_refused(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().chain("/x/z", "a=first>done done")).await;
    fixture.add_order(new_order("/x/y,1").with_value("1")).await;
    let since = fixture.read_journal_head().await;
    let refused = Err(OrderError::AlreadyExists(chain_path("/x/y"), order_key("/x/y,1").id));
    assert_eq!(fixture.try_add_order(new_order("/x/y,1").with_value("2")).await, refused);
    assert!(fixture.summarize_engine_events_after(since).await.is_empty(), "nothing has happened");
    assert_eq!(fixture.read_order("/x/y,1").await.order.value.as_str(), "1");
    fixture.add_order(new_order("/x/z,1")).await;
}

pub async fn orders_for_unknown_chains_and_chain_nodes_are_refused(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let (y, z) = (chain_path("/x/y"), chain_path("/x/z"));
    assert_eq!(fixture.try_add_order(new_order("/x/z,1")).await, Err(OrderError::NoSuchChain(z)));
    let nowhere = fixture.try_add_order(new_order("/x/y,1").starting_at_chain_node("nowhere")).await;
    assert_eq!(nowhere, Err(OrderError::NoSuchNode(y, chain_node_id("nowhere"))));
    assert!(fixture.try_add_order(new_order("/x,1")).await.is_err());
    assert!(fixture.list_orders("/").await.is_empty());
    assert!(
        fixture
            .read_engine_events_after(fixture.read_journal_range().await.last_expired_event_id)
            .await
            .is_empty()
    );
}

/// The error names the index of the first refused order, and none is added.
pub async fn an_order_batch_is_added_completely_or_not_at_all(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration().chain("/x/z", "a=first>done done")).await;
    fixture.add_order(new_order("/x/y,taken")).await;
    let since = fixture.read_journal_head().await;
    let exists = |key: &str| OrderError::AlreadyExists(order_key(key).chain, order_key(key).id);
    let nowhere = OrderError::NoSuchNode(chain_path("/x/y"), chain_node_id("nowhere"));
    for (bad, refused) in [
        (new_order("/x/y,taken"), exists("/x/y,taken")),
        (new_order("/x/y,1"), exists("/x/y,1")),
        // The id is taken, although the order would have finished at once.
        (new_order("/x/y,at-end"), exists("/x/y,at-end")),
        (new_order("/x,1"), OrderError::NoSuchChain(chain_path("/x"))),
        (new_order("/x/y,2").starting_at_chain_node("nowhere"), nowhere),
    ] {
        let good = [
            new_order("/x/y"),
            new_order("/x/y,1"),
            new_order("/x/z,1"),
            new_order("/x/y,at-end").starting_at_chain_node("done"),
        ];
        let answer = fixture.try_add_orders([&good[..], &[bad, new_order("/gone,1")]].concat()).await;
        assert_eq!(answer, Err((4, refused)));
    }
    assert!(fixture.summarize_engine_events_after(since).await.is_empty(), "nothing has happened");
    assert_eq!(fixture.list_orders("/").await.len(), 1);
    assert_eq!(format_steps(&fixture.claim(10).await), ["/x/y,taken a"]);
    let added = fixture.add_orders(vec![new_order("/x/y,1"), new_order("/x/z,1"), new_order("/x/y")]).await;
    assert_eq!(added[..2].iter().map(|one| one.order.to_string()).collect::<Vec<_>>(), ["/x/y,1", "/x/z,1"]);
    assert_eq!(fixture.claim(10).await.len(), 3);
    assert_eq!(fixture.try_add_orders(vec![]).await, Ok(vec![]));
}

/// A generated id is never one that a client has used or that was generated before, even if its order has ended.
pub async fn generated_order_ids_are_unique(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let mut ids = BTreeSet::new();
    for number in 0..40 {
        assert!(ids.insert(fixture.add_order(new_order(&format!("/x/y,{number}"))).await));
    }
    for added in fixture.add_orders(vec![new_order("/x/y"); 30]).await {
        assert!(ids.insert(added.order), "within one call");
    }
    fixture.run_all_ready_tasks().await;
    assert!(fixture.list_orders("/").await.is_empty());
    let fixture = fixture.reopen().await;
    for _ in 0..30 {
        assert!(ids.insert(fixture.add_order(new_order("/x/y")).await), "after a restart");
    }
}

pub async fn adding_an_order_returns_the_id_of_its_event(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    let added = fixture.add_orders(vec![new_order("/x/y"), new_order("/x/y,1"), new_order("/x/y")]).await;
    let events =
        fixture.read_engine_events_after(fixture.read_journal_range().await.last_expired_event_id).await;
    for (added, event) in added.iter().zip(&events) {
        assert_eq!((added.event, event.event_type.as_str()), (event.id, "FileBasedAdded"));
        let key = event.key.as_ref().map(|key| key.to_string());
        assert_eq!(key, Some(format!("Order:{}", added.order)));
    }
    assert_eq!(events.len(), 3);
}

pub async fn orders_of_a_chain_run_concurrently(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    for id in 1..=5 {
        fixture.add_order(new_order(&format!("/x/y,{id}"))).await;
    }
    let running = fixture.claim(10).await;
    let orders: BTreeSet<_> = format_steps(&running).into_iter().collect();
    assert_eq!(orders.len(), 5);
    fixture.succeed(&running[2]).await;
    assert_eq!(fixture.claim(10).await.len(), 1, "one order is ahead of the others");
}

/// They do not run concurrently even if all chain nodes have the same handler and it is unordered.
pub async fn the_steps_of_an_order_never_run_concurrently(harness: &dyn Harness) {
    let registration =
        RegistrationBuilder::default().unordered("both").chain("/x/y", "a=both>b b=both>c c=both>done done");
    let fixture = StoreFixture::new(harness, registration).await;
    fixture.add_order(new_order("/x/y,1")).await;
    for node in ["a", "b", "c"] {
        let running = fixture.claim(10).await;
        assert_eq!(format_steps(&running), [format!("/x/y,1 {node}")]);
        fixture.assert_nothing_claimable("while a step runs").await;
        fixture.succeed(&running[0]).await;
    }
    assert!(fixture.find_order("/x/y,1").await.is_none());
}

pub async fn finishing_a_step_can_claim_the_next_one(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1").with_value("1")).await;
    let first = fixture.claim_one().await;
    let since = fixture.read_journal_head().await;
    let attempt = FinishedAttempt {
        result: AttemptResult::Succeeded { result: Some(parse_json("2")) },
        ..finished_attempt(&first, success())
    };
    let (answers, claims) = expect_ok(
        fixture.store.finish_attempts(vec![attempt], Some(fixture.claim_request(5)), fixture.now).await,
    );
    assert_eq!(answers[0].as_ref().map(|finished| finished.status), Ok(TaskStatus::Done));
    assert_eq!(format_steps(&claims.tasks), ["/x/y,1 b"]);
    assert_eq!(claims.tasks[0].step_run().value.as_str(), "2");
    let want = [
        "OrderStepEnded Success",
        "OrderNodeChanged fromNodeId:a,nodeId:b",
        "OrderStepStarted nodeId:b,taskId:second_b",
    ];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want);
}

/// The order repeats the cycle until a step fails.
pub async fn a_chain_can_contain_a_cycle(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default().chain("/x/y", "a=first>a!done done");
    let fixture = StoreFixture::new(harness, registration).await;
    fixture.add_order(new_order("/x/y,1").with_value("0")).await;
    for round in 1..=3 {
        succeed_with_result(&fixture, &fixture.claim_one().await, &round.to_string()).await;
    }
    let task = fixture.claim_one().await;
    assert_eq!((task.step_run().value.as_str(), task.attempt), ("3", 1));
    let since = fixture.read_journal_head().await;
    fixture.fail_permanently(&task).await;
    assert_eq!(fixture.summarize_engine_events_after(since).await[2], "OrderFinished nodeId:done");
    assert_eq!(fixture.list_tasks(&TaskFilter::default()).await.len(), 4, "a task each time");
}
