//! Chains that change under their orders.

use super::*;

#[tokio::test]
async fn an_order_waits_at_a_node_that_is_gone_until_it_is_back() {
    let store = store();
    let (door, diary) = (StepGate::new(), CallLog::default());
    let with = |nodes| {
        TestEngineBuilder::default()
            .handler("a", door.step())
            .handler("b", noting(&diary))
            .handler("c", noting(&diary))
            .chain(chain("/x", nodes))
    };
    let whole = || vec![step("a", "b"), step("b", "end"), end("end")];
    let engine = with(whole()).start(&store).await;
    let order = add(&engine, "/x,1", "1").await;
    door.somebody().await;

    // The step that runs belongs to a node that leads to another one now.
    engine.reconfigure(with(vec![step("a", "c"), step("c", "end"), end("end")]).setup).await.unwrap();
    door.let_in();
    told(&engine, &order, "OrderFinished").await;
    assert_eq!(diary.read(), ["c"], "it goes on by the chain as it is then");

    let order = add(&engine, "/x,2", "1").await;
    door.somebody().await;
    engine.reconfigure(with(vec![step("b", "end"), end("end")]).setup).await.unwrap();
    door.let_in();
    told(&engine, &order, "OrderStepEnded").await;
    until("the order to be stranded", || async {
        let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
        view.stranded && view.task.is_none() && view.order.node == node("a")
    })
    .await;
    engine.reconfigure(with(whole()).setup).await.unwrap();
    told(&engine, &order, "OrderFinished").await;
    assert_eq!(diary.read(), ["c", "b"], "what was done is not done again");
    engine.stop(TEST_TIMEOUT).await;
}
