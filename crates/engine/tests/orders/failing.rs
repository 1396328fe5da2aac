//! Steps that fail.

use std::sync::atomic::{AtomicUsize, Ordering};

use pointsman_core::store::OrderCommand;
use pointsman_core::task::retry::{Backoff, RetryPolicy};

use super::server::{answer, handler, server};
use super::*;

/// A step that fails so often, with code 3, and then succeeds.
fn failing(times: usize) -> impl Fn(Delivery) -> std::future::Ready<AttemptOutcome> + Send + Sync + 'static {
    let tries = AtomicUsize::new(0);
    move |_| {
        let failed = tries.fetch_add(1, Ordering::SeqCst) < times;
        std::future::ready(if failed {
            AttemptOutcome::failed_with_code(3, "no")
        } else {
            AttemptOutcome::done()
        })
    }
}

/// A handler that is never tried again.
fn once(spec: &mut pointsman_engine::HandlerSpec) {
    spec.def.retry.max = 0;
}

#[tokio::test]
async fn a_setback_is_the_nodes_and_not_the_handlers() {
    let store = store();
    let at_once = RetryPolicy {
        max: 2,
        delay: std::time::Duration::ZERO,
        backoff: Backoff::Fixed,
        ..Default::default()
    };
    let engine = TestEngineBuilder::default()
        .handler_with("a", once, failing(2))
        .chain(chain("/x", vec![step_with("a", "end", |step| step.setback = Some(at_once)), end("end")]))
        .start(&store)
        .await;
    let order = add(&engine, "/x,1", "1").await;
    let told = told(&engine, &order, "OrderFinished").await;
    let want = [
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
    assert_eq!(told[..want.len()], want);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn a_step_that_failed_for_good_goes_where_on_error_says() {
    let store = store();
    let diary = CallLog::default();
    let engine = TestEngineBuilder::default()
        .handler_with("a", once, failing(1))
        .handler("mend", noting(&diary))
        .chain(chain(
            "/x",
            vec![
                step_with("a", "end", |step| step.on_error = Some(node("mend"))),
                step("mend", "end"),
                end("end"),
            ],
        ))
        .start(&store)
        .await;
    let order = add(&engine, "/x,1", "1").await;
    let told = told(&engine, &order, "OrderFinished").await;
    assert_eq!(
        told[2..4],
        ["OrderStepEnded Error,returnCode:3", "OrderNodeChanged fromNodeId:a,nodeId:mend"]
    );
    assert_eq!(diary.read(), ["mend"]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn without_a_way_out_the_order_is_suspended_and_can_be_resumed() {
    let store = store();
    let engine = TestEngineBuilder::default()
        .handler_with("a", once, failing(1))
        .chain(chain("/x", vec![step("a", "end"), end("end")]))
        .start(&store)
        .await;
    let order = add(&engine, "/x,1", "1").await;
    told(&engine, &order, "OrderSuspended").await;
    let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
    assert!(view.order.suspended && view.order.node == node("a"));
    engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Resume).await.unwrap().unwrap();
    let told = told(&engine, &order, "OrderFinished").await;
    assert_eq!(told[3..6], ["OrderSuspended", "OrderResumed", "OrderStepStarted nodeId:a"]);
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn what_a_command_or_a_target_returned_is_told() {
    let store = store();
    let (url, _) = server(|| answer(404, &[], "")).await;
    let never = |def: &mut pointsman_core::HandlerDef| def.retry.max = 0;
    let engine = TestEngineBuilder::default()
        .runner("exits", Some(shell("exit 3")), never)
        .runner("dies", Some(shell("kill -9 $$")), never)
        .runner("absent", Some(Arc::new(handler(url))), never)
        .handler_with("breaks", once, |_| async { panic!("no") })
        .chain(chain("/exits", vec![step("exits", "end"), end("end")]))
        .chain(chain("/dies", vec![step("dies", "end"), end("end")]))
        .chain(chain("/absent", vec![step("absent", "end"), end("end")]))
        .chain(chain("/breaks", vec![step("breaks", "end"), end("end")]))
        .start(&store)
        .await;
    for (chain, code) in [("/exits", 3), ("/dies", 137), ("/absent", 404), ("/breaks", 1)] {
        let order = add(&engine, &format!("{chain},1"), "1").await;
        let told = told(&engine, &order, "OrderStepEnded").await;
        assert_eq!(told[2], format!("OrderStepEnded Error,returnCode:{code}"), "{chain}");
    }
    engine.stop(TEST_TIMEOUT).await;
}
