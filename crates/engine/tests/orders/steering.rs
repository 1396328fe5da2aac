//! What people do to orders, nodes and chains while steps run.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pointsman_core::chain::Action;
use pointsman_core::store::{OrderCommand, OrderRefused};
use pointsman_core::{Place, Rule, RuleKind};

use super::*;

#[tokio::test]
async fn a_step_that_runs_is_let_end_and_then_the_order_stays() {
    let store = store();
    let (door, diary) = (StepGate::new(), CallLog::default());
    let engine = TestEngineBuilder::default()
        .handler("a", door.step())
        .handler("b", noting(&diary))
        .chain(chain("/x", vec![step("a", "b"), step("b", "end"), end("end")]))
        .start(&store)
        .await;
    let order = add(&engine, "/x,1", "1").await;
    door.somebody().await;
    engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Suspend).await.unwrap().unwrap();
    let refused = engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Remove).await.unwrap();
    assert_eq!(refused, Err(OrderRefused::Running(order.clone())));
    door.let_in();
    let seen = told(&engine, &order, "OrderNodeChanged").await;
    assert_eq!(
        seen[2..],
        ["OrderSuspended", "OrderStepEnded Success", "OrderNodeChanged fromNodeId:a,nodeId:b"]
    );
    let (view, _) = engine.find_order(&Tenant::default(), &order).await.unwrap().unwrap();
    assert!(view.order.suspended && view.task.is_none() && diary.read().is_empty());
    engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Resume).await.unwrap().unwrap();
    told(&engine, &order, "OrderFinished").await;
    assert_eq!(diary.read(), ["b"]);
    assert_eq!(
        engine.apply_order_command(&Tenant::default(), &order, OrderCommand::Suspend).await.unwrap(),
        Err(OrderRefused::NoSuchOrder(order))
    );
    engine.stop(TEST_TIMEOUT).await;
}

#[tokio::test]
async fn nodes_are_stopped_passed_and_processed_again() {
    let store = store();
    let diary = CallLog::default();
    let engine = TestEngineBuilder::default()
        .handler("a", noting(&diary))
        .handler("b", noting(&diary))
        .chain(chain("/x", vec![step("a", "b"), step("b", "end"), end("end")]))
        .start(&store)
        .await;
    let path = key("/x,1").chain;
    engine.set_chain_node_action(&path, &node("b"), Action::Stop).await.unwrap().unwrap();
    let order = add(&engine, "/x,1", "1").await;
    told(&engine, &order, "OrderNodeChanged").await;
    let (statistics, _) = engine.read_order_statistics(&Default::default(), None).await.unwrap();
    assert_eq!((statistics.total, statistics.started, statistics.in_process), (1, 1, 0));
    let (chains, _) = engine.list_chains().await.unwrap();
    assert_eq!(chains[0].orders, [(node("b"), 1)]);
    engine.set_chain_node_action(&path, &node("b"), Action::NextState).await.unwrap().unwrap();
    told(&engine, &order, "OrderFinished").await;
    assert_eq!(diary.read(), ["a"]);
    engine.set_chain_node_action(&path, &node("b"), Action::Process).await.unwrap().unwrap();
    let order = add(&engine, "/x,2", "1").await;
    told(&engine, &order, "OrderFinished").await;
    assert_eq!(diary.read(), ["a", "a", "b"]);
    let refused = engine.set_chain_node_action(&path, &node("c"), Action::Stop).await.unwrap();
    assert_eq!(refused, Err(OrderRefused::NoSuchNode(path, node("c"))));
    engine.stop(TEST_TIMEOUT).await;
}

/// A chain is stopped against a flood of orders, in each of the three ways, over and over: nothing begins between the
/// answer and the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_a_chain_was_stopped_nothing_begins() {
    let store = store();
    let (stopped, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (stopped, begun) = (stopped.clone(), begun.clone());
        move |_: Delivery| {
            begun.fetch_add(usize::from(stopped.load(Ordering::SeqCst)), Ordering::SeqCst);
            async { AttemptOutcome::done() }
        }
    };
    let engine = TestEngineBuilder::default()
        .handler("a", handler)
        .chain(chain("/x", vec![step("a", "end"), end("end")]))
        .start(&store)
        .await;
    let path = key("/x,1").chain;
    let pause = || Rule {
        kind: RuleKind::Pause,
        place: Place::Chain(path.clone()),
        tenant: None,
        by: "ops".into(),
        reason: String::new(),
        since: now(),
    };
    for round in 0..60 {
        let flood: Vec<_> = (0..8)
            .map(|_| {
                let (engine, path) = (engine.clone(), path.clone());
                tokio::spawn(async move {
                    for _ in 0..3 {
                        engine.add_orders(vec![NewOrder::of(path.clone()); 3]).await.unwrap().unwrap();
                    }
                })
            })
            .collect();
        match round % 3 {
            0 => engine.set_chain_stopped(&path, true).await.unwrap().unwrap(),
            1 => engine.set_chain_node_action(&path, &node("a"), Action::Stop).await.unwrap().unwrap(),
            _ => engine.set_rule(pause()).await.unwrap(),
        }
        stopped.store(true, Ordering::SeqCst);
        for producer in flood {
            producer.await.unwrap();
        }
        stopped.store(false, Ordering::SeqCst);
        match round % 3 {
            0 => engine.set_chain_stopped(&path, false).await.unwrap().unwrap(),
            1 => engine.set_chain_node_action(&path, &node("a"), Action::Process).await.unwrap().unwrap(),
            _ => assert!(engine.lift_rule(RuleKind::Pause, &Place::Chain(path.clone()), None).await.unwrap()),
        }
    }
    assert_eq!(begun.load(Ordering::SeqCst), 0);
    until("all orders to arrive", || async {
        engine.read_order_statistics(&Default::default(), None).await.unwrap().0.total == 0
    })
    .await;
    engine.stop(Duration::from_secs(20)).await;
}
