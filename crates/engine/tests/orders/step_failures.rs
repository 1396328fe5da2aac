//! Steps that fail.

use std::sync::atomic::{AtomicUsize, Ordering};

use pointsman_core::store::OrderCommand;
use pointsman_core::task::retry::{Backoff, RetryPolicy};

use super::test_server::{build_response, http_handler, start_server};
use super::*;

/// A step that fails the given number of times, with return code 3, and then succeeds.
fn step_failing_first_attempts(
    failures: usize,
) -> impl Fn(Delivery) -> std::future::Ready<HandlerOutcome> + Send + Sync + 'static {
    let attempt_count = AtomicUsize::new(0);
    move |_| {
        let failed = attempt_count.fetch_add(1, Ordering::SeqCst) < failures;
        std::future::ready(if failed {
            HandlerOutcome::failed_with_return_code(3, "a simulated failure")
        } else {
            HandlerOutcome::succeeded()
        })
    }
}

/// Sets that a handler is never retried.
fn disable_retries(spec: &mut pointsman_engine::HandlerSpec) {
    spec.def.retry.max_retries = 0;
}

#[tokio::test]
async fn the_retry_policy_of_a_chain_node_overrides_that_of_the_handler() {
    let store = in_memory_store();
    let immediate_retries = RetryPolicy {
        max_retries: 2,
        delay: std::time::Duration::ZERO,
        backoff: Backoff::Fixed,
        ..Default::default()
    };
    let engine = TestEngineBuilder::default()
        .handler_with_changed_spec("a", disable_retries, step_failing_first_attempts(2))
        .chain(chain(
            "/x",
            vec![
                step_node_with_change("a", "end", |step| step.retry = Some(immediate_retries)),
                end_node("end"),
            ],
        ))
        .start(&store)
        .await;
    let order = add_order(&engine, "/x,1", "1").await;
    let published = list_order_events_until(&engine, &order, "OrderFinished").await;
    let expected = [
        "OrderStarted nodeId:a",
        "OrderStepStarted nodeId:a",
        "OrderStepEnded Keep",
        "OrderSetBack nodeId:a",
        "OrderStepStarted nodeId:a",
        "OrderStepEnded Keep",
        "OrderSetBack nodeId:a",
        "OrderStepStarted nodeId:a",
        "OrderStepEnded Success",
    ];
    assert_eq!(published[..expected.len()], expected);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_finally_failed_step_leads_to_its_on_error_node() {
    let store = in_memory_store();
    let calls = CallLog::default();
    let engine = TestEngineBuilder::default()
        .handler_with_changed_spec("a", disable_retries, step_failing_first_attempts(1))
        .handler("repair", recording_handler(&calls))
        .chain(chain(
            "/x",
            vec![
                step_node_with_change("a", "end", |step| step.on_error = Some(chain_node_id("repair"))),
                step_node("repair", "end"),
                end_node("end"),
            ],
        ))
        .start(&store)
        .await;
    let order = add_order(&engine, "/x,1", "1").await;
    let published = list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(
        published[2..4],
        ["OrderStepEnded Error,returnCode:3", "OrderNodeChanged fromNodeId:a,nodeId:repair"]
    );
    assert_eq!(calls.entries(), ["repair"]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn without_on_error_a_failed_order_is_suspended_and_can_be_resumed() {
    let store = in_memory_store();
    let engine = TestEngineBuilder::default()
        .handler_with_changed_spec("a", disable_retries, step_failing_first_attempts(1))
        .chain(chain("/x", vec![step_node("a", "end"), end_node("end")]))
        .start(&store)
        .await;
    let order = add_order(&engine, "/x,1", "1").await;
    list_order_events_until(&engine, &order, "OrderSuspended").await;
    let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
    assert!(view.order.suspended && view.order.node == chain_node_id("a"));
    engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Resume).await.unwrap().unwrap();
    let published = list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(published[3..6], ["OrderSuspended", "OrderResumed", "OrderStepStarted nodeId:a"]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn return_codes_of_commands_and_targets_are_published() {
    let store = in_memory_store();
    let (url, _) = start_server(|| build_response(404, &[], "")).await;
    let without_command_retries = |def: &mut pointsman_core::HandlerDef| def.retry.max_retries = 0;
    let engine = TestEngineBuilder::default()
        .handler_with_runner("exits", Some(shell_handler("exit 3")), without_command_retries)
        .handler_with_runner("dies", Some(shell_handler("kill -9 $$")), without_command_retries)
        .handler_with_runner("absent", Some(Arc::new(http_handler(url))), without_command_retries)
        .handler_with_changed_spec("breaks", disable_retries, |_| async { panic!("a simulated failure") })
        .chain(chain("/exits", vec![step_node("exits", "end"), end_node("end")]))
        .chain(chain("/dies", vec![step_node("dies", "end"), end_node("end")]))
        .chain(chain("/absent", vec![step_node("absent", "end"), end_node("end")]))
        .chain(chain("/breaks", vec![step_node("breaks", "end"), end_node("end")]))
        .start(&store)
        .await;
    for (chain, code) in [("/exits", 3), ("/dies", 137), ("/absent", 404), ("/breaks", 1)] {
        let order = add_order(&engine, &format!("{chain},1"), "1").await;
        let published = list_order_events_until(&engine, &order, "OrderStepEnded").await;
        assert_eq!(published[2], format!("OrderStepEnded Error,returnCode:{code}"), "{chain}");
    }
    engine.stop(TEST_TIMEOUT).await;
}
