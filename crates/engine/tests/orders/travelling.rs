//! Orders through handlers of every kind, from end to end.

use std::time::Duration;

use pointsman_core::HandlerName;
use pointsman_core::store::Ended;
use pointsman_engine::PullRequest;

use super::server::{answer, handler, server};
use super::*;

/// Tells what it was told, and returns a value.
const SCRIPT: &str = r#"
cat; echo
echo "$POINTSMAN_ORDER $POINTSMAN_NODE $POINTSMAN_KEY $POINTSMAN_SOURCE $POINTSMAN_COLLECTION $POINTSMAN_TENANT"
echo "$POINTSMAN_TASK_ID $POINTSMAN_ATTEMPT ${POINTSMAN_EVENT_ID-none}"
echo '{"result":{"n":2.50}}' >> "$POINTSMAN_EFFECTS"
"#;

#[tokio::test]
async fn an_order_takes_its_value_through_a_command_a_target_and_a_function() {
    let store = store();
    let reply = || answer(200, &[("content-type", "application/json")], r#"{"result":{"n":3}}"#);
    let (url, inbox) = server(reply).await;
    let diary = CallLog::default();
    let noted = diary.clone();
    let engine = TestEngineBuilder::default()
        .runner("one", Some(shell(SCRIPT)), |_| {})
        .runner("two", Some(Arc::new(handler(url))), |_| {})
        .handler("three", move |delivery| {
            let step = step_of(&delivery);
            noted.note(format!("{} {} {}", step.order, step.node, step.value.as_str()));
            let mut outcome = returns(r#"{"n":4}"#);
            outcome.emits.push(event("done", "x"));
            async { outcome }
        })
        .chain(chain(
            "/a/b",
            vec![step("one", "two"), step("two", "three"), step("three", "end"), end("end")],
        ))
        .start(&store)
        .await;
    let mut watcher = TaskWatcher::of(&engine);
    let order = add(&engine, "/a/b,7", r#"{ "n": 1.0 }"#).await;
    let told = told(&engine, &order, "OrderFinished").await;
    let want = [
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
    assert_eq!(told, want);
    assert_eq!(
        engine.find_order(&Tenant::default(), &order).await.unwrap().map(|(view, _)| view),
        None,
        "it has arrived, and is gone"
    );

    let ended = watcher.ended(3).await;
    let changes: Vec<_> = ended.iter().map(|change| (&*change.collection, change.event)).collect();
    assert_eq!(changes, [("one", None), ("two", None), ("three", None)]);
    assert!(ended.iter().all(|change| change.key.as_ref().unwrap().as_str() == "/a/b,7"));
    let lines = logged(&store, &ended[0].id).await;
    let fields = format!(
        r#"{{"task_id":"{}","order":"/a/b,7","node":"one","tenant":"default","value":{{ "n": 1.0 }},"planned_at":""}}"#,
        ended[0].id
    );
    let about = "/a/b,7 one /a/b,7 one one default".to_owned();
    assert_eq!(lines, [fields, about, format!("{} 1 none", ended[0].id)]);

    let (headers, body) = inbox.take().remove(0);
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["order"], &body["value"]), (&"/a/b,7".into(), &serde_json::json!({"n": 2.5})));
    let header = |name: &str| headers[name].to_str().unwrap();
    assert_eq!((header("ce-source"), header("ce-type")), ("/chains/a/b", "pointsman.step"));
    assert_eq!((header("ce-subject"), header("ce-id")), ("/a/b,7", ended[1].id.as_str()));
    assert_eq!(header("pointsman-task"), ended[1].id.as_str());

    assert_eq!(diary.read(), [r#"/a/b,7 three {"n":3}"#]);
    let cause = emitted(&engine).await[0].cause.unwrap();
    assert_eq!((cause.event, cause.depth), (None, 1), "a step is caused by no event");
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_worker_elsewhere_does_a_step_and_returns_the_value() {
    let store = store();
    let pulled = |code: i64| AttemptOutcome::failed_with_code(code, "no");
    let engine = TestEngineBuilder::default()
        .pulled("far")
        .chain(chain("/far", vec![step("far", "end"), end("end")]))
        .start(&store)
        .await;
    let order = add(&engine, "/far,1", "[1]").await;
    let request = PullRequest {
        handlers: [HandlerName::new("far").unwrap()].into(),
        max: 1,
        wait: TEST_TIMEOUT,
        lease: Duration::from_secs(60),
        tenant: None,
    };
    let task = engine.pull_tasks(request.clone()).await.unwrap().remove(0);
    let Subject::Step(run) = &task.subject else { panic!("{task:?}") };
    assert_eq!((run.order.clone(), run.value.as_str()), (order.clone(), "[1]"));
    let ended = engine.end_leased_task(&task.id, task.fence, pulled(7)).await.unwrap().unwrap();
    assert!(ended.due.is_some());
    let task = engine.pull_tasks(request).await.unwrap().remove(0);
    let done =
        AttemptOutcome { ended: Ended::Succeeded { result: Some(json("[2]")) }, ..AttemptOutcome::done() };
    engine.end_leased_task(&task.id, task.fence, done).await.unwrap().unwrap();
    let told = told(&engine, &order, "OrderFinished").await;
    assert_eq!(told[2..4], ["OrderStepEnded Keep", "OrderSetBack nodeId:far"]);
    engine.stop(TEST_TIMEOUT).await;
}

/// Orders of one chain go side by side; the steps of one order never do.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_orders_go_side_by_side() {
    const ORDERS: usize = 200;
    let store = store();
    let diary = CallLog::default();
    let noting = |name: &'static str| {
        let diary = diary.clone();
        move |delivery: Delivery| {
            diary.note(format!("{} {name}", step_of(&delivery).order.id));
            async { AttemptOutcome::done() }
        }
    };
    let engine = TestEngineBuilder::default()
        .handler("a", noting("a"))
        .handler("b", noting("b"))
        .handler("c", noting("c"))
        .chain(chain("/x", vec![step("a", "b"), step("b", "c"), step("c", "end"), end("end")]))
        .start(&store)
        .await;
    let new = (0..ORDERS).map(|_| NewOrder::of(key("/x,1").chain)).collect::<Vec<_>>();
    let added: Vec<_> =
        engine.add_orders(new).await.unwrap().unwrap().orders.into_iter().map(|one| one.order).collect();
    for order in &added {
        told(&engine, order, "OrderFinished").await;
    }
    let notes = diary.read();
    for order in &added {
        let of_it: Vec<_> =
            notes.iter().filter_map(|note| note.strip_prefix(&format!("{} ", order.id))).collect();
        assert_eq!(of_it, ["a", "b", "c"]);
    }
    let nothing = engine.list_orders(&Default::default(), None, None, 10).await.unwrap();
    assert!(nothing.orders.is_empty());
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn an_order_goes_on_after_a_restart_in_the_middle() {
    let store = store();
    let (door, diary) = (StepGate::new(), CallLog::default());
    let house = || {
        TestEngineBuilder::default()
            .handler("a", noting(&diary))
            .handler("b", door.step())
            .handler("c", noting(&diary))
            .chain(chain("/x", vec![step("a", "b"), step("b", "c"), step("c", "end"), end("end")]))
    };
    let engine = house().start(&store).await;
    let order = add(&engine, "/x,1", "1").await;
    door.somebody().await;
    engine.stop(Duration::ZERO).await;
    let engine = house().start(&store).await;
    door.somebody().await;
    door.let_in();
    let told = told(&engine, &order, "OrderFinished").await;
    assert!(told.contains(&"OrderStepEnded Keep".into()), "the step was given back: {told:?}");
    assert_eq!(told.iter().filter(|line| *line == "OrderStepEnded Success").count(), 3);
    assert_eq!(diary.read(), ["a", "c"]);
    engine.stop(TEST_TIMEOUT).await;
}
