//! Results of steps, which become the order's value and may be as large as one.

use std::time::Duration;

use pointsman_core::TaskStatus;
use pointsman_core::chain::ChainNodeAction;
use pointsman_core::event_json_parser::{MAX_RESULT_BYTES, MAX_VALUE_BYTES};
use pointsman_core::store::ClaimedTask;
use pointsman_engine::{PullRequest, Runner};

use super::test_server::{build_response, http_handler, start_server};
use super::*;

/// A JSON string of this size.
fn json_text_of_size(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

/// A command that returns a JSON string of this size.
fn command_with_result_size(bytes: usize) -> Arc<CommandHandler> {
    let letters = bytes - 2;
    shell_handler(&format!(
        r#"{{ printf '{{"result":"'; head -c {letters} /dev/zero | tr '\0' x; printf '"}}\n'; }} >>"$POINTSMAN_EFFECTS""#
    ))
}

/// An HTTP target that returns a JSON string of this size.
async fn target_with_result_size(bytes: usize) -> Arc<dyn Runner> {
    let body = format!(r#"{{"result":{}}}"#, json_text_of_size(bytes));
    let (url, _) =
        start_server(move || build_response(200, &[("content-type", "application/json")], &body)).await;
    Arc::new(http_handler(url))
}

/// Leases the next step to a pull worker.
async fn pull_step(engine: &Engine) -> ClaimedTask {
    let request = PullRequest {
        handlers: [handler_name("far")].into(),
        max_tasks: 1,
        max_wait: TEST_TIMEOUT,
        lease_duration: Duration::from_secs(60),
        tenant: None,
    };
    engine.pull_tasks(request).await.unwrap().remove(0)
}

/// Ends the next step as a pull worker, with a JSON string of this size.
async fn end_pulled_step(engine: &Engine, bytes: usize) {
    let task = pull_step(engine).await;
    engine
        .end_leased_task(&task.id, task.fence, outcome_with_result(&json_text_of_size(bytes)))
        .await
        .unwrap()
        .unwrap();
}

/// Handlers of every kind that return a result of this size, each in its own chain.
async fn builder_with_result_size(bytes: usize) -> TestEngineBuilder {
    let two_step_chain = |name: &str| {
        chain(&format!("/{name}"), vec![step_node(name, "last"), step_node("last", "end"), end_node("end")])
    };
    TestEngineBuilder::default()
        .handler_with_runner("command", Some(command_with_result_size(bytes)), |_| {})
        .handler_with_runner("http", Some(target_with_result_size(bytes).await), |_| {})
        .handler("function", move |_| async move { outcome_with_result(&json_text_of_size(bytes)) })
        .pulled_handler("far")
        .handler("last", |_| async { HandlerOutcome::succeeded() })
        .chain(two_step_chain("command"))
        .chain(two_step_chain("http"))
        .chain(two_step_chain("function"))
        .chain(two_step_chain("far"))
}

const HANDLER_OF_EACH_KIND: [&str; 4] = ["command", "http", "function", "far"];

#[tokio::test]
async fn a_step_result_may_be_as_large_as_a_value() {
    for bytes in [200_000, MAX_VALUE_BYTES] {
        let store = in_memory_store();
        let engine = builder_with_result_size(bytes).await.start(&store).await;
        // The orders stop before their last step, so that their values can be read.
        for handler in HANDLER_OF_EACH_KIND {
            let path = parse_order_key(&format!("/{handler},1")).chain;
            engine
                .set_chain_node_action(&path, &chain_node_id("last"), ChainNodeAction::Stop)
                .await
                .unwrap()
                .unwrap();
            let order = add_order(&engine, &format!("/{handler},1"), "1").await;
            if handler == "far" {
                end_pulled_step(&engine, bytes).await;
            }
            list_order_events_until(&engine, &order, "OrderNodeChanged").await;
            let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
            assert_eq!(view.order.value.as_str().len(), bytes, "{handler}");
        }
        engine.stop(TEST_TIMEOUT).await;
    }
}

#[tokio::test]
async fn a_step_result_over_the_limit_fails_for_good() {
    let bytes = MAX_VALUE_BYTES + 1;
    let store = in_memory_store();
    let engine = builder_with_result_size(bytes).await.start(&store).await;
    let mut watcher = TaskWatcher::new(&engine);
    for handler in HANDLER_OF_EACH_KIND {
        let order = add_order(&engine, &format!("/{handler},1"), "1").await;
        if handler == "far" {
            end_pulled_step(&engine, bytes).await;
        }
        let ended = watcher.wait_for_ended_tasks(1).await.remove(0);
        let error = format!("a result has at most {MAX_VALUE_BYTES} bytes, this one has {bytes}");
        assert_eq!((ended.error, ended.attempt), (Some(error), 1), "{handler}");
        list_order_events_until(&engine, &order, "OrderSuspended").await;
        let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
        assert_eq!((view.order.value.as_str(), view.order.node.as_str()), ("1", handler));
    }
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn results_of_event_tasks_have_a_lower_limit_than_those_of_steps() {
    for (bytes, status) in [(MAX_RESULT_BYTES, TaskStatus::Done), (MAX_RESULT_BYTES + 1, TaskStatus::Error)] {
        let store = in_memory_store();
        let engine = builder_with_result_size(bytes)
            .await
            .route("a", "command")
            .route("a", "http")
            .route("a", "function")
            .start(&store)
            .await;
        let mut watcher = TaskWatcher::new(&engine);
        emit(&engine, vec![keyed_event("a", "x")]).await;
        assert!(
            watcher.wait_for_ended_tasks(3).await.iter().all(|change| change.status == status),
            "{bytes}"
        );
        engine.stop(TEST_TIMEOUT).await;
    }
}

/// A node that reads the lease from the store accepts the same result from the worker.
#[tokio::test]
async fn a_leased_step_can_be_ended_at_another_node() {
    let store = in_memory_store();
    let mut builder = TestEngineBuilder::default()
        .pulled_handler("far")
        .chain(chain("/far", vec![step_node("far", "end"), end_node("end")]));
    builder.setup.chain_routes.bind(event_type("made"), parse_order_key("/far,1").chain);
    let setup = builder.setup.clone();
    let engine = builder.start(&store).await;
    let event_id = emit(&engine, vec![keyed_event("made", "x")]).await.events[0].id;
    let task = pull_step(&engine).await;
    let other_node = TestEngineBuilder { setup, ..TestEngineBuilder::default() }.start(&store).await;
    let lease = other_node.find_leased_task(&task.id, task.fence).await.unwrap().unwrap();
    assert_eq!(lease.max_result_bytes, MAX_VALUE_BYTES);
    let outcome = HandlerOutcome {
        emitted_events: vec![keyed_event("b", "x")],
        ..outcome_with_result(&json_text_of_size(200_000))
    };
    other_node.end_leased_task(&task.id, task.fence, outcome).await.unwrap().unwrap();
    list_order_events_until(&engine, &parse_order_key(&format!("/far,{event_id}")), "OrderFinished").await;
    let cause = list_emitted_events(&engine).await.last().unwrap().cause.unwrap();
    assert_eq!((cause.event, cause.depth), (Some(event_id), 1), "the event that created the order");
    other_node.stop(TEST_TIMEOUT).await;
    engine.stop(TEST_TIMEOUT).await;
}
