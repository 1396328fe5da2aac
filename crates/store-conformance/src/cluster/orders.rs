//! Orders whose steps run on one node while another node sends the commands.

use pointsman_core::chain::ChainNodeAction;
use pointsman_core::store::{AttemptResult, OrderCommand};

use super::{TestCluster, join_nodes};
use crate::fixture::*;

fn base_registration() -> RegistrationBuilder {
    RegistrationBuilder::default().chain("/c", "a=first>b b=second>done done")
}

pub async fn an_order_suspended_on_another_node_stops_after_its_step(cluster: &dyn TestCluster) {
    let [one, other] = join_nodes(cluster, base_registration()).await;
    one.try_add_order(new_order("/c,1").with_value("1")).await.expect("the command is accepted");
    let step = one.claim_one().await;
    other.send_order_command("/c,1", OrderCommand::Suspend).await.expect("the command is accepted");
    one.finish_with_result(&step, AttemptResult::Succeeded { result: Some(parse_json("2")) }).await;
    let view = other.read_order("/c,1").await.order;
    assert_eq!(
        (view.suspended, view.step_running, view.node.as_str(), view.value.as_str()),
        (true, false, "b", "2")
    );
    assert!(one.claim(1).await.is_empty() && other.claim(1).await.is_empty());
    cluster.assert_consistent().await;
    one.send_order_command("/c,1", OrderCommand::Resume).await.expect("the command is accepted");
    other.succeed(&other.claim_one().await).await;
    assert!(one.find_order("/c,1").await.is_none(), "the order has finished");
    cluster.assert_consistent().await;
}

pub async fn stopping_a_chain_or_a_chain_node_applies_to_the_whole_cluster(cluster: &dyn TestCluster) {
    let [one, other] = join_nodes(cluster, base_registration()).await;
    for n in 0..6 {
        one.try_add_order(new_order(&format!("/c,{n}"))).await.expect("the command is accepted");
    }
    let (chain, node) = (chain_path("/c"), chain_node_id("b"));
    expect_ok(one.store.set_chain_node_action(&chain, &node, ChainNodeAction::Stop, one.now).await)
        .expect("the command is accepted");
    assert_eq!(
        other.run_all_ready_tasks().await.len(),
        6,
        "each has run its first step, and none its second"
    );
    expect_ok(other.store.set_chain_node_action(&chain, &node, ChainNodeAction::Process, one.now).await)
        .expect("the command is accepted");
    expect_ok(other.store.set_chain_stopped(&chain, true, one.now).await).expect("the command is accepted");
    assert!(one.claim(1).await.is_empty());
    expect_ok(one.store.set_chain_stopped(&chain, false, one.now).await).expect("the command is accepted");
    assert_eq!(other.run_all_ready_tasks().await.len(), 6);
    assert!(one.list_orders("/").await.is_empty());
    cluster.assert_consistent().await;
}

pub async fn a_changed_chain_definition_applies_to_the_whole_cluster(cluster: &dyn TestCluster) {
    let [mut one, mut other] = join_nodes(cluster, base_registration()).await;
    for n in 0..4 {
        other.try_add_order(new_order(&format!("/c,{n}"))).await.expect("the command is accepted");
    }
    let step = other.claim_one().await;
    let changed = RegistrationBuilder::default().chain("/c", "a=third>done done");
    one.register(changed.clone()).await;
    other.registration = changed;
    other.succeed(&step).await;
    let ran = other.run_all_ready_tasks().await;
    assert!(ran.iter().all(|task| task.handler == handler_name("third")));
    cluster.assert_consistent().await;
    let stranded = one.list_orders("/").await;
    assert!(stranded.iter().all(|view| view.is_at_removed_node), "{stranded:?}");
}
