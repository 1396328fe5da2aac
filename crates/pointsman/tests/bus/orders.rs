use pointsman::chain::{ChainNodeAction, ChainPath, OrderKey};
use pointsman::{NewOrder, OrderCommand, OrderError, OrderOperationError, PathFilter, TaskGateKind, Tenant};

use super::steps::{chain_node_id, chain_with_end, step_node, wait_for_event_of_type};
use super::*;

fn publish_chain_path() -> ChainPath {
    ChainPath::new("/publish").unwrap()
}

/// Starts a bus with the chain `/publish` of one step.
async fn start_bus_with_chain() -> Bus {
    Bus::builder("sqlite::memory:")
        .handler("h", |_: Step<Option<u8>>| async {})
        .chain(chain_with_end(vec![step_node("a", "h", "end")]))
        .start()
        .await
        .unwrap()
}

fn expect_refused(result: Result<impl std::fmt::Debug, OrderOperationError>) -> OrderError {
    match result.unwrap_err() {
        OrderOperationError::Refused(refused) => refused,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn orders_of_a_stopped_chain_wait_until_it_is_started() {
    let bus = start_bus_with_chain().await;
    bus.stop_chain(&publish_chain_path()).await.unwrap();
    assert!(bus.list_chains().await.unwrap()[0].state.stopped);
    let added = bus.add_order(NewOrder::new(publish_chain_path())).await.unwrap();
    let order = bus.find_order(&added.tenant, &added.order).await.unwrap().unwrap();
    assert!(order.step_blocked_because.is_some(), "{order:?}");
    let (task, _, _) = order.task.unwrap();
    let gates = bus.explain_waiting(&task).await.unwrap().unwrap();
    assert!(gates.iter().any(|gate| gate.kind == TaskGateKind::OrderNotBlocked && !gate.open), "{gates:?}");
    bus.start_chain(&publish_chain_path()).await.unwrap();
    wait_for_event_of_type(&bus, "OrderFinished").await;
    assert!(bus.find_order(&added.tenant, &added.order).await.unwrap().is_none());
    bus.stop().await;
}

#[tokio::test]
async fn suspended_order_moves_and_finishes_after_it_is_resumed() {
    let bus = start_bus_with_chain().await;
    bus.set_chain_node_action(&publish_chain_path(), &chain_node_id("a"), ChainNodeAction::Stop)
        .await
        .unwrap();
    let receipt = bus
        .add_orders(vec![NewOrder::new(publish_chain_path()), NewOrder::new(publish_chain_path())])
        .await
        .unwrap();
    let (tenant, kept) = (&receipt.orders[0].tenant, &receipt.orders[0].order);
    bus.remove_order(tenant, &receipt.orders[1].order).await.unwrap();
    bus.suspend_order(tenant, kept).await.unwrap();
    let statistics = bus.read_order_statistics(&PathFilter::Everything, Some(tenant)).await.unwrap();
    assert_eq!((statistics.total, statistics.suspended), (1, 1));
    let to_end = OrderCommand::Change { value: None, node: Some(chain_node_id("end")), planned_at: None };
    bus.apply_order_command(tenant, kept, to_end).await.unwrap();
    bus.resume_order(tenant, kept).await.unwrap();
    wait_for_event_of_type(&bus, "OrderFinished").await;
    let page = bus.list_orders(&PathFilter::Everything, None, None, 10).await.unwrap();
    assert!(page.orders.is_empty(), "{page:?}");
    bus.stop().await;
}

#[tokio::test]
async fn refused_operations_on_orders_name_the_order_or_the_chain() {
    let bus = start_bus_with_chain().await;
    let nowhere = ChainPath::new("/nowhere").unwrap();
    let refused = expect_refused(bus.add_order(NewOrder::new(nowhere.clone())).await);
    assert_eq!(refused.to_string(), "there is no chain /nowhere");
    assert_eq!(expect_refused(bus.stop_chain(&nowhere).await), OrderError::NoSuchChain(nowhere));
    let key: OrderKey = "/publish,7".parse().unwrap();
    let refused = expect_refused(bus.suspend_order(&Tenant::default(), &key).await);
    assert_eq!(refused, OrderError::NoSuchOrder(key));
    bus.stop().await;
}
