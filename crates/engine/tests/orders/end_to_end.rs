//! Orders through handlers of every kind, from end to end.

use std::time::Duration;

use pointsman_core::HandlerName;
use pointsman_core::store::AttemptResult;
use pointsman_engine::PullRequest;

use super::test_server::{build_response, http_handler, start_server};
use super::*;

/// The script of a step: prints its stdin and its variables, and returns a value as its result.
const STEP_SCRIPT: &str = r#"
cat; echo
echo "$POINTSMAN_ORDER $POINTSMAN_NODE $POINTSMAN_KEY $POINTSMAN_SOURCE $POINTSMAN_COLLECTION $POINTSMAN_TENANT"
echo "$POINTSMAN_TASK_ID $POINTSMAN_ATTEMPT ${POINTSMAN_EVENT_ID-none}"
echo '{"result":{"n":2.50}}' >> "$POINTSMAN_EFFECTS"
"#;

#[tokio::test]
async fn an_order_passes_its_value_through_a_command_a_target_and_a_function() {
    let store = in_memory_store();
    let reply = || build_response(200, &[("content-type", "application/json")], r#"{"result":{"n":3}}"#);
    let (url, received_requests) = start_server(reply).await;
    let calls = CallLog::default();
    let recorded_calls = calls.clone();
    let engine = TestEngineBuilder::default()
        .handler_with_runner("one", Some(shell_handler(STEP_SCRIPT)), |_| {})
        .handler_with_runner("two", Some(Arc::new(http_handler(url))), |_| {})
        .handler("three", move |delivery| {
            let step = step_of_delivery(&delivery);
            recorded_calls.record(format!("{} {} {}", step.order_key, step.node, step.value.as_str()));
            let mut outcome = outcome_with_result(r#"{"n":4}"#);
            outcome.emitted_events.push(keyed_event("done", "x"));
            async { outcome }
        })
        .chain(chain(
            "/a/b",
            vec![
                step_node("one", "two"),
                step_node("two", "three"),
                step_node("three", "end"),
                end_node("end"),
            ],
        ))
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::new(&engine);
    let order = add_order(&engine, "/a/b,7", r#"{ "n": 1.0 }"#).await;
    let published = list_order_events_until(&engine, &order, "OrderFinished").await;
    let expected = [
        "OrderStarted nodeId:one",
        "OrderStepStarted nodeId:one",
        "OrderStepEnded Success",
        "OrderNodeChanged fromNodeId:one,nodeId:two",
        "OrderStepStarted nodeId:two",
        "OrderStepEnded Success",
        "OrderNodeChanged fromNodeId:two,nodeId:three",
        "OrderStepStarted nodeId:three",
        "OrderStepEnded Success",
        "OrderNodeChanged fromNodeId:three,nodeId:end",
        "OrderFinished nodeId:end",
    ];
    assert_eq!(published, expected);
    assert_eq!(
        engine.find_order(&Tenant::default(), &order).await.unwrap().map(|(view, _)| view),
        None,
        "a finished order is removed"
    );

    let ended = watcher.wait_for_ended_tasks(3).await;
    let changes: Vec<_> = ended.iter().map(|change| (&*change.subject_name, change.event_id)).collect();
    assert_eq!(changes, [("one", None), ("two", None), ("three", None)]);
    assert!(ended.iter().all(|change| change.key.as_ref().unwrap().as_str() == "/a/b,7"));
    let lines = read_log(&store, &ended[0].id).await;
    let stdin_line = format!(
        r#"{{"task_id":"{}","order":"/a/b,7","node":"one","tenant":"default","value":{{ "n": 1.0 }},"planned_at":""}}"#,
        ended[0].id
    );
    let variables_line = "/a/b,7 one /a/b,7 one one default".to_owned();
    assert_eq!(lines, [stdin_line, variables_line, format!("{} 1 none", ended[0].id)]);

    let (headers, body) = received_requests.take().remove(0);
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["order"], &body["value"]), (&"/a/b,7".into(), &serde_json::json!({"n": 2.5})));
    let header = |name: &str| headers[name].to_str().unwrap();
    assert_eq!((header("ce-source"), header("ce-type")), ("/chains/a/b", "pointsman.step"));
    assert_eq!((header("ce-subject"), header("ce-id")), ("/a/b,7", ended[1].id.as_str()));
    assert_eq!(header("pointsman-task"), ended[1].id.as_str());

    assert_eq!(calls.entries(), [r#"/a/b,7 three {"n":3}"#]);
    let cause = list_emitted_events(&engine).await[0].cause.unwrap();
    assert_eq!((cause.event, cause.depth), (None, 1), "a step is caused by no event");
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_pull_worker_runs_a_step_and_returns_its_value() {
    let store = in_memory_store();
    let failed_with_code = |code: i64| HandlerOutcome::failed_with_return_code(code, "no");
    let engine = TestEngineBuilder::default()
        .pulled_handler("far")
        .chain(chain("/far", vec![step_node("far", "end"), end_node("end")]))
        .start(&store)
        .await;
    let order = add_order(&engine, "/far,1", "[1]").await;
    let request = PullRequest {
        handlers: [HandlerName::new("far").unwrap()].into(),
        max_tasks: 1,
        max_wait: TEST_TIMEOUT,
        lease_duration: Duration::from_secs(60),
        tenant: None,
    };
    let task = engine.pull_tasks(request.clone()).await.unwrap().remove(0);
    let TaskSubject::Step(run) = &task.subject else { panic!("{task:?}") };
    assert_eq!((run.order_key.clone(), run.value.as_str()), (order.clone(), "[1]"));
    let ended = engine.end_leased_task(&task.id, task.fence, failed_with_code(7)).await.unwrap().unwrap();
    assert!(ended.next_attempt_due_at.is_some());
    let task = engine.pull_tasks(request).await.unwrap().remove(0);
    let done = HandlerOutcome {
        result: AttemptResult::Succeeded { result: Some(parse_json("[2]")) },
        ..HandlerOutcome::succeeded()
    };
    engine.end_leased_task(&task.id, task.fence, done).await.unwrap().unwrap();
    let published = list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(published[2..4], ["OrderStepEnded Keep", "OrderSetBack nodeId:far"]);
    engine.stop(TEST_TIMEOUT).await;
}

/// Orders of one chain run concurrently; the steps of one order never do.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn orders_run_concurrently_and_their_steps_in_order() {
    const ORDER_COUNT: usize = 200;
    let store = in_memory_store();
    let calls = CallLog::default();
    let recording_step = |name: &'static str| {
        let calls = calls.clone();
        move |delivery: Delivery| {
            calls.record(format!("{} {name}", step_of_delivery(&delivery).order_key.id));
            async { HandlerOutcome::succeeded() }
        }
    };
    let engine = TestEngineBuilder::default()
        .handler("a", recording_step("a"))
        .handler("b", recording_step("b"))
        .handler("c", recording_step("c"))
        .chain(chain(
            "/x",
            vec![step_node("a", "b"), step_node("b", "c"), step_node("c", "end"), end_node("end")],
        ))
        .start(&store)
        .await;
    let new_orders =
        (0..ORDER_COUNT).map(|_| NewOrder::new(parse_order_key("/x,1").chain)).collect::<Vec<_>>();
    let added: Vec<_> = engine
        .add_orders(new_orders)
        .await
        .unwrap()
        .unwrap()
        .orders
        .into_iter()
        .map(|one| one.order)
        .collect();
    for order in &added {
        list_order_events_until(&engine, order, "OrderFinished").await;
    }
    let notes = calls.entries();
    for order in &added {
        let steps_of_order: Vec<_> =
            notes.iter().filter_map(|note| note.strip_prefix(&format!("{} ", order.id))).collect();
        assert_eq!(steps_of_order, ["a", "b", "c"]);
    }
    let remaining_orders = engine.list_orders(&Default::default(), None, None, 10).await.unwrap();
    assert!(remaining_orders.orders.is_empty());
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn an_order_continues_after_a_restart() {
    let store = in_memory_store();
    let (gate, calls) = (StepGate::new(), CallLog::default());
    let builder = || {
        TestEngineBuilder::default()
            .handler("a", recording_handler(&calls))
            .handler("b", gate.gated_step_handler())
            .handler("c", recording_handler(&calls))
            .chain(chain(
                "/x",
                vec![step_node("a", "b"), step_node("b", "c"), step_node("c", "end"), end_node("end")],
            ))
    };
    let engine = builder().start(&store).await;
    let order = add_order(&engine, "/x,1", "1").await;
    gate.wait_for_arrival().await;
    engine.stop(Duration::ZERO).await;
    let engine = builder().start(&store).await;
    gate.wait_for_arrival().await;
    gate.release_one_step();
    let published = list_order_events_until(&engine, &order, "OrderFinished").await;
    assert!(published.contains(&"OrderStepEnded Keep".into()), "the step was released: {published:?}");
    assert_eq!(published.iter().filter(|line| *line == "OrderStepEnded Success").count(), 3);
    assert_eq!(calls.entries(), ["a", "c"]);
    engine.stop(TEST_TIMEOUT).await;
}
