//! Commands to orders, chain nodes and chains while steps run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pointsman_core::chain::ChainNodeAction;
use pointsman_core::store::{OrderCommand, OrderError};
use pointsman_core::{Rule, RuleKind, RuleScope};

use super::*;

#[tokio::test]
async fn suspending_an_order_lets_its_running_step_finish() {
    let store = in_memory_store();
    let (gate, calls) = (StepGate::new(), CallLog::default());
    let engine = TestEngineBuilder::default()
        .handler("a", gate.gated_step_handler())
        .handler("b", recording_handler(&calls))
        .chain(chain("/x", vec![step_node("a", "b"), step_node("b", "end"), end_node("end")]))
        .start(&store)
        .await;
    let order = add_order(&engine, "/x,1", "1").await;
    gate.wait_for_arrival().await;
    engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Suspend).await.unwrap().unwrap();
    let refused = engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Remove).await.unwrap();
    assert_eq!(refused, Err(OrderError::StepRunning(order.clone())));
    gate.release_one_step();
    let published = list_order_events_until(&engine, &order, "OrderNodeChanged").await;
    assert_eq!(
        published[2..],
        ["OrderSuspended", "OrderStepEnded Success", "OrderNodeChanged fromNodeId:a,nodeId:b"]
    );
    let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
    assert!(view.order.suspended && view.task.is_none() && calls.entries().is_empty());
    engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Resume).await.unwrap().unwrap();
    list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(calls.entries(), ["b"]);
    assert_eq!(
        engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Suspend).await.unwrap(),
        Err(OrderError::NoSuchOrder(order))
    );
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn chain_nodes_can_be_stopped_skipped_and_resumed() {
    let store = in_memory_store();
    let calls = CallLog::default();
    let engine = TestEngineBuilder::default()
        .handler("a", recording_handler(&calls))
        .handler("b", recording_handler(&calls))
        .chain(chain("/x", vec![step_node("a", "b"), step_node("b", "end"), end_node("end")]))
        .start(&store)
        .await;
    let path = parse_order_key("/x,1").chain;
    engine.set_chain_node_action(&path, &chain_node_id("b"), ChainNodeAction::Stop).await.unwrap().unwrap();
    let order = add_order(&engine, "/x,1", "1").await;
    list_order_events_until(&engine, &order, "OrderNodeChanged").await;
    let (statistics, _) = engine.read_order_statistics(&Default::default(), None).await.unwrap();
    assert_eq!((statistics.total, statistics.started, statistics.in_process), (1, 1, 0));
    let (chains, _) = engine.list_chains().await.unwrap();
    assert_eq!(chains[0].order_counts_by_node, [(chain_node_id("b"), 1)]);
    engine
        .set_chain_node_action(&path, &chain_node_id("b"), ChainNodeAction::NextState)
        .await
        .unwrap()
        .unwrap();
    list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(calls.entries(), ["a"]);
    engine
        .set_chain_node_action(&path, &chain_node_id("b"), ChainNodeAction::Process)
        .await
        .unwrap()
        .unwrap();
    let order = add_order(&engine, "/x,2", "1").await;
    list_order_events_until(&engine, &order, "OrderFinished").await;
    assert_eq!(calls.entries(), ["a", "a", "b"]);
    let refused =
        engine.set_chain_node_action(&path, &chain_node_id("c"), ChainNodeAction::Stop).await.unwrap();
    assert_eq!(refused, Err(OrderError::NoSuchNode(path, chain_node_id("c"))));
    engine.stop(TEST_TIMEOUT).await;
}

/// Stops a busy chain many times, in each of the three ways: no step starts between the acknowledgement and the restart
/// of the chain.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_step_starts_after_a_chain_was_stopped() {
    let store = in_memory_store();
    let (stopped, starts_while_stopped) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (stopped, starts_while_stopped) = (stopped.clone(), starts_while_stopped.clone());
        move |_: Delivery| {
            starts_while_stopped.fetch_add(usize::from(stopped.load(Ordering::SeqCst)), Ordering::SeqCst);
            async { HandlerOutcome::succeeded() }
        }
    };
    let engine = TestEngineBuilder::default()
        .handler("a", handler)
        .chain(chain("/x", vec![step_node("a", "end"), end_node("end")]))
        .start(&store)
        .await;
    let path = parse_order_key("/x,1").chain;
    let pause = || Rule {
        kind: RuleKind::Pause,
        scope: RuleScope::Chain(path.clone()),
        tenant: None,
        set_by: "ops".into(),
        reason: String::new(),
        since: now(),
    };
    for round in 0..60 {
        let producers: Vec<_> = (0..8)
            .map(|_| {
                let (engine, path) = (engine.clone(), path.clone());
                tokio::spawn(async move {
                    for _ in 0..3 {
                        engine.add_orders(vec![NewOrder::new(path.clone()); 3]).await.unwrap().unwrap();
                    }
                })
            })
            .collect();
        match round % 3 {
            0 => engine.set_chain_stopped(&path, true).await.unwrap().unwrap(),
            1 => engine
                .set_chain_node_action(&path, &chain_node_id("a"), ChainNodeAction::Stop)
                .await
                .unwrap()
                .unwrap(),
            _ => engine.set_rule(pause()).await.unwrap(),
        }
        stopped.store(true, Ordering::SeqCst);
        for producer in producers {
            producer.await.unwrap();
        }
        stopped.store(false, Ordering::SeqCst);
        match round % 3 {
            0 => engine.set_chain_stopped(&path, false).await.unwrap().unwrap(),
            1 => engine
                .set_chain_node_action(&path, &chain_node_id("a"), ChainNodeAction::Process)
                .await
                .unwrap()
                .unwrap(),
            _ => assert!(
                engine.lift_rule(RuleKind::Pause, &RuleScope::Chain(path.clone()), None).await.unwrap()
            ),
        }
    }
    assert_eq!(starts_while_stopped.load(Ordering::SeqCst), 0);
    wait_until("all orders to finish", || async {
        engine.read_order_statistics(&Default::default(), None).await.unwrap().0.total == 0
    })
    .await;
    engine.stop(Duration::from_secs(20)).await;
}
