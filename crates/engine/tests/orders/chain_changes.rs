//! Chains that are changed while orders run through them.

use super::*;

#[tokio::test]
async fn an_order_waits_at_a_removed_chain_node_until_it_is_restored() {
    let store = in_memory_store();
    let (gate, calls) = (StepGate::new(), CallLog::default());
    let builder_with_nodes = |nodes| {
        TestEngineBuilder::default()
            .handler("a", gate.gated_step_handler())
            .handler("b", recording_handler(&calls))
            .handler("c", recording_handler(&calls))
            .chain(chain("/x", nodes))
    };
    let original_nodes = || vec![step_node("a", "b"), step_node("b", "end"), end_node("end")];
    let engine = builder_with_nodes(original_nodes()).start(&store).await;
    let order = add_order(&engine, "/x,1", "1").await;
    gate.wait_for_arrival().await;

    // While the step runs, its chain node is changed to lead to another chain node.
    engine
        .reconfigure(
            builder_with_nodes(vec![step_node("a", "c"), step_node("c", "end"), end_node("end")]).setup,
        )
        .await
        .unwrap();
    gate.release_one_step();
    list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(calls.entries(), ["c"], "the order continues on the current chain");

    let order = add_order(&engine, "/x,2", "1").await;
    gate.wait_for_arrival().await;
    engine.reconfigure(builder_with_nodes(vec![step_node("b", "end"), end_node("end")]).setup).await.unwrap();
    gate.release_one_step();
    list_order_events_until(&engine, &order, "OrderStepEnded").await;
    wait_until("the order to wait at the removed chain node", || async {
        let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
        view.is_at_removed_node && view.task.is_none() && view.order.node == chain_node_id("a")
    })
    .await;
    engine.reconfigure(builder_with_nodes(original_nodes()).setup).await.unwrap();
    list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(calls.entries(), ["c", "b"], "steps that have run do not run again");
    engine.stop(TEST_TIMEOUT).await;
}
