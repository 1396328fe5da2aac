//! Chains and chain nodes set by an operator: stopped ones block their steps, skipped ones create none.

use pointsman_core::RuleKind;
use pointsman_core::chain::{ChainNodeAction, ChainState};
use pointsman_core::store::{NodeCapabilities, OrderError};
use pointsman_core::task::gates::GateKind;

use crate::Harness;
use crate::fixture::*;

/// Two chains a → b → done with the same handlers.
fn base_registration() -> RegistrationBuilder {
    let nodes = "a=first>b b=second>done!failed done failed";
    RegistrationBuilder::default().chain("/x/y", nodes).chain("/x/z", nodes)
}

/// A fixture with two orders at the first node of each chain; its cluster node can run all handlers.
async fn fixture_with_two_orders_per_chain(harness: &dyn Harness) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    expect_ok(
        fixture
            .store
            .store_node_capabilities(
                fixture.node_id,
                NodeCapabilities {
                    handlers: fixture.registration.handler_names(),
                    slots: 16,
                    ..NodeCapabilities::default()
                },
            )
            .await,
    );
    for key in ["/x/y,1", "/x/y,2", "/x/z,1", "/x/z,2"] {
        fixture.add_order(new_order(key)).await;
    }
    fixture
}

/// Claims and succeeds all steps that can start. Returns them as `/chain,id node`.
async fn run_startable_steps(fixture: &StoreFixture<'_>) -> Vec<String> {
    let mut tasks = fixture.claim(10).await;
    tasks.sort_by_key(|task| task.step_run().order_key.clone());
    for task in &tasks {
        fixture.succeed(task).await;
    }
    format_steps(&tasks)
}

pub async fn a_stopped_chain_starts_no_step(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    let since = fixture.read_journal_head().await;
    fixture.set_chain_stopped("/x/y", true).await;
    let stopped = r#"{"key":"/x/y","TYPE":"JobChainStateChanged","state":"stopped"}"#;
    assert_eq!(fixture.read_engine_event_json_after(since).await, [stopped]);
    fixture.add_order(new_order("/x/y,3")).await;
    assert_eq!(run_startable_steps(&fixture).await, ["/x/z,1 a", "/x/z,2 a"], "the other chain continues");
    assert_eq!(fixture.claim(10).await.len(), 2);
    fixture.assert_nothing_claimable("the chain is stopped").await;
    assert!(
        fixture.read_queue_of_subject("first", step_queue_subject("/x/y", "a")).await.is_paused_or_blocked
    );
    assert!(
        !fixture.read_queue_of_subject("second", step_queue_subject("/x/z", "b")).await.is_paused_or_blocked
    );
    let id = fixture.read_order_task_id("/x/y,1").await;
    assert_eq!(fixture.list_closed_gate_kinds(&id).await, [GateKind::OrderNotBlocked]);
    let since = fixture.read_journal_head().await;
    fixture.set_chain_stopped("/x/y", false).await;
    let running = r#"{"key":"/x/y","TYPE":"JobChainStateChanged","state":"running"}"#;
    assert_eq!(fixture.read_engine_event_json_after(since).await, [running]);
    assert_eq!(fixture.list_closed_gate_kinds(&id).await, [GateKind::SelectedToRunNext]);
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,1 a", "/x/y,2 a", "/x/y,3 a"]);
}

pub async fn running_steps_of_a_stopped_chain_can_finish(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    let running = fixture.claim(10).await;
    fixture.set_chain_stopped("/x/y", true).await;
    for task in &running {
        fixture.succeed(task).await;
    }
    assert_eq!(fixture.read_order("/x/y,1").await.order.node, chain_node_id("b"));
    assert_eq!(run_startable_steps(&fixture).await, ["/x/z,1 b", "/x/z,2 b"]);
    fixture.set_chain_stopped("/x/y", false).await;
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,1 b", "/x/y,2 b"]);
}

/// Once the chain or the chain node is stopped, steps that were prefetched before do not start.
pub async fn prefetched_steps_of_a_stopped_chain_wait(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    assert_eq!(fixture.schedule_tasks(4).await, 4);
    fixture.set_chain_stopped("/x/y", true).await;
    assert_eq!(run_startable_steps(&fixture).await, ["/x/z,1 a", "/x/z,2 a"]);
    fixture.set_chain_stopped("/x/y", false).await;
    assert_eq!(fixture.schedule_tasks(4).await, 4);
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::Stop).await;
    assert_eq!(run_startable_steps(&fixture).await, ["/x/z,1 b", "/x/z,2 b"]);
}

pub async fn a_stopped_chain_node_blocks_its_orders(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    let since = fixture.read_journal_head().await;
    fixture.set_chain_node_action("/x/y b", ChainNodeAction::Stop).await;
    let published = r#"{"key":"/x/y","TYPE":"JobChainNodeActionChanged","action":"stop","nodeId":"b"}"#;
    assert_eq!(fixture.read_engine_event_json_after(since).await, [published]);
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,1 a", "/x/y,2 a", "/x/z,1 a", "/x/z,2 a"]);
    assert_eq!(run_startable_steps(&fixture).await, ["/x/z,1 b", "/x/z,2 b"]);
    fixture.assert_nothing_claimable("the node is stopped").await;
    assert!(
        fixture.read_queue_of_subject("second", step_queue_subject("/x/y", "b")).await.is_paused_or_blocked
    );
    assert_eq!(
        fixture.list_closed_gate_kinds(&fixture.read_order_task_id("/x/y,1").await).await,
        [GateKind::OrderNotBlocked]
    );
    let since = fixture.read_journal_head().await;
    fixture.set_chain_node_action("/x/y b", ChainNodeAction::Process).await;
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["JobChainNodeActionChanged action:process,nodeId:b"]
    );
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,1 b", "/x/y,2 b"]);
}

pub async fn chain_stops_and_chain_node_stops_are_independent(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    fixture.set_chain_stopped("/x/z", true).await;
    fixture.set_chain_stopped("/x/y", true).await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::Stop).await;
    fixture.set_chain_stopped("/x/y", false).await;
    fixture.assert_nothing_claimable("the chain node is still stopped").await;
    fixture.set_chain_stopped("/x/y", true).await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::Process).await;
    fixture.assert_nothing_claimable("the chain is still stopped").await;
    fixture.set_chain_stopped("/x/y", false).await;
    assert_eq!(run_startable_steps(&fixture).await.len(), 2);
}

pub async fn setting_the_same_chain_state_publishes_no_event(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    let since = fixture.read_journal_head().await;
    fixture.set_chain_stopped("/x/y", false).await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::Process).await;
    assert_eq!(fixture.read_journal_head().await, since, "the state was already set");
    for _ in 0..2 {
        fixture.set_chain_stopped("/x/y", true).await;
        fixture.set_chain_node_action("/x/y a", ChainNodeAction::Stop).await;
    }
    let want = ["JobChainStateChanged state:stopped", "JobChainNodeActionChanged action:stop,nodeId:a"];
    assert_eq!(fixture.summarize_engine_events_after(since).await, want);
}

pub async fn waiting_and_new_orders_move_past_a_skipped_chain_node(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    let since = fixture.read_journal_head().await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::NextState).await;
    let moved = "OrderNodeChanged fromNodeId:a,nodeId:b";
    let published = fixture.summarize_engine_events_after(since).await;
    assert_eq!(published[0], "JobChainNodeActionChanged action:next_state,nodeId:a");
    assert_eq!(published[1..], [moved, moved], "waiting orders skip the node");
    let since = fixture.read_journal_head().await;
    fixture.add_order(new_order("/x/y,3")).await;
    assert_eq!(
        fixture.summarize_engine_events_after(since).await,
        ["FileBasedAdded nodeId:a", moved],
        "new orders skip the node too"
    );
    let want = ["/x/y,1 b", "/x/y,2 b", "/x/y,3 b", "/x/z,1 a", "/x/z,2 a"];
    assert_eq!(run_startable_steps(&fixture).await, want);
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::Process).await;
    fixture.add_order(new_order("/x/y,4")).await;
    assert_eq!(fixture.read_order("/x/y,4").await.order.node, chain_node_id("a"));
}

pub async fn skipping_chain_nodes_can_finish_an_order(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    fixture.set_chain_node_action("/x/y b", ChainNodeAction::NextState).await;
    let since = fixture.read_journal_head().await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::NextState).await;
    let published = fixture.summarize_order_events_after("/x/y,1", since).await;
    let want = [
        "OrderNodeChanged fromNodeId:a,nodeId:b",
        "OrderNodeChanged fromNodeId:b,nodeId:done",
        "OrderFinished nodeId:done",
    ];
    assert_eq!(published, want);
    assert!(fixture.list_orders("/x/y").await.is_empty());
    assert_eq!(run_startable_steps(&fixture).await, ["/x/z,1 a", "/x/z,2 a"]);
}

/// A running step finishes first, a suspended order stays, and a stopped chain skips nothing.
pub async fn running_suspended_and_stopped_orders_skip_a_node_once_they_continue(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    fixture.set_chain_stopped("/x/z", true).await;
    fixture.suspend_order("/x/y,2").await;
    let running = fixture.claim(10).await;
    assert_eq!(format_steps(&running), ["/x/y,1 a"]);
    let since = fixture.read_journal_head().await;
    for chain_and_node in ["/x/y a", "/x/z a"] {
        fixture.set_chain_node_action(chain_and_node, ChainNodeAction::NextState).await;
    }
    assert_eq!(
        fixture.summarize_engine_events_after(since).await.len(),
        2,
        "only the changed node actions are published"
    );
    fixture.resume_order("/x/y,2").await;
    assert_eq!(
        fixture.read_order("/x/y,2").await.order.node,
        chain_node_id("b"),
        "resumed, the order skips the node"
    );
    fixture.set_chain_stopped("/x/z", false).await;
    for key in ["/x/z,1", "/x/z,2"] {
        assert_eq!(
            fixture.read_order(key).await.order.node,
            chain_node_id("b"),
            "orders of a started chain skip the node"
        );
    }
    fixture.succeed(&running[0]).await;
    assert_eq!(fixture.read_order("/x/y,1").await.order.node, chain_node_id("b"));
}

/// An order that skips a chain node does not start before its time.
pub async fn a_planned_order_skips_the_chain_node_and_keeps_its_time(harness: &dyn Harness) {
    let mut fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::NextState).await;
    fixture.add_order(new_order("/x/y,1").planned_at(fixture.seconds_from_now(60))).await;
    fixture.assert_nothing_claimable("its planned time has not come").await;
    fixture.advance_clock(60);
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,1 b"]);
}

/// Adds more orders than a store processes in one batch.
pub async fn many_orders_skip_a_chain_node_at_once(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_orders(vec![new_order("/x/y"); 2500]).await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::NextState).await;
    assert_eq!(fixture.read_queue_of_subject("first", step_queue_subject("/x/y", "a")).await.ready_count, 0);
    assert_eq!(fixture.list_chains().await[0].order_counts_by_node, [(chain_node_id("b"), 2500)]);
    fixture.set_chain_node_action("/x/y b", ChainNodeAction::NextState).await;
    assert_eq!(fixture.read_order_statistics("/").await.total, 0);
}

pub async fn a_rule_blocks_a_chain(harness: &dyn Harness) {
    for kind in RuleKind::ALL {
        let fixture = fixture_with_two_orders_per_chain(harness).await;
        fixture.schedule_tasks(4).await;
        let rule = fixture.new_rule(kind, "/x/y", None);
        expect_ok(fixture.store.set_rule(rule.clone()).await);
        assert_eq!(run_startable_steps(&fixture).await, ["/x/z,1 a", "/x/z,2 a"]);
        let gates = fixture.list_gates(&fixture.read_order_task_id("/x/y,1").await).await;
        let closed_gates: Vec<_> = gates.iter().filter(|gate| !gate.open).collect();
        assert_eq!(
            (closed_gates.len(), closed_gates[0].kind, &closed_gates[0].rule),
            (1, GateKind::NoBlockingRule, &Some(rule))
        );
        let fixture = fixture.reopen().await;
        assert_eq!(run_startable_steps(&fixture).await, ["/x/z,1 b", "/x/z,2 b"]);
        fixture.assert_nothing_claimable("the rule is set").await;
        assert!(
            fixture
                .read_queue_of_subject("first", step_queue_subject("/x/y", "a"))
                .await
                .is_paused_or_blocked
        );
        assert!(expect_ok(fixture.store.lift_rule(kind, &rule_scope("/x/y"), None).await));
        assert_eq!(run_startable_steps(&fixture).await, ["/x/y,1 a", "/x/y,2 a"]);
    }
}

/// A chain rule, an operator's stop and a handler rule are independent.
pub async fn chain_rules_handler_rules_and_stops_are_independent(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    fixture.set_chain_stopped("/x/z", true).await;
    fixture.set_pause_rule("/x/y").await;
    fixture.set_chain_stopped("/x/y", true).await;
    assert!(fixture.lift_pause_rule("/x/y").await);
    fixture.assert_nothing_claimable("it is stopped").await;
    fixture.set_pause_rule("/x/y").await;
    fixture.set_chain_stopped("/x/y", false).await;
    fixture.assert_nothing_claimable("it is paused").await;
    fixture.set_pause_rule("first").await;
    assert!(fixture.lift_pause_rule("/x/y").await);
    fixture.assert_nothing_claimable("its handler is paused").await;
    assert!(fixture.lift_pause_rule("first").await);
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,1 a", "/x/y,2 a"]);
}

pub async fn a_rule_can_block_one_tenant_of_a_chain(harness: &dyn Harness) {
    let fixture = StoreFixture::new(harness, base_registration()).await;
    fixture.add_order(new_order("/x/y,1").for_tenant("shop")).await;
    fixture.add_order(new_order("/x/y,2").for_tenant("crm")).await;
    expect_ok(fixture.store.set_rule(fixture.new_rule(RuleKind::Pause, "/x/y", Some("shop"))).await);
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,2 a"]);
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,2 b"]);
    fixture.assert_nothing_claimable("the tenant is blocked").await;
}

/// Chain names are compared whole, not by prefix.
pub async fn a_stop_does_not_affect_chains_with_a_similar_name(harness: &dyn Harness) {
    let registration = RegistrationBuilder::default()
        .chain("/x", "a=first>done done")
        .chain("/x/y", "a=first>done done")
        .chain("/x/yz", "a=first>done aa=first>done done");
    let fixture = StoreFixture::new(harness, registration).await;
    for key in ["/x,1", "/x/y,1", "/x/yz,1"] {
        fixture.add_order(new_order(key)).await;
    }
    fixture.add_order(new_order("/x/yz,2").starting_at_chain_node("aa")).await;
    fixture.set_chain_stopped("/x/y", true).await;
    fixture.set_chain_node_action("/x/yz a", ChainNodeAction::Stop).await;
    assert_eq!(run_startable_steps(&fixture).await, ["/x,1 a", "/x/yz,2 aa"]);
}

pub async fn chain_state_survives_registration_and_restart(harness: &dyn Harness) {
    let mut fixture = fixture_with_two_orders_per_chain(harness).await;
    fixture.set_chain_stopped("/x/y", true).await;
    fixture.set_chain_node_action("/x/y b", ChainNodeAction::NextState).await;
    fixture.set_chain_node_action("/x/z a", ChainNodeAction::Stop).await;
    let actions = |node: &str, action| [(chain_node_id(node), action)].into();
    let want = [
        ChainState { stopped: true, node_actions: actions("b", ChainNodeAction::NextState) },
        ChainState { stopped: false, node_actions: actions("a", ChainNodeAction::Stop) },
    ];
    let states = |fixture: &StoreFixture<'_>| {
        let store = fixture.store.clone();
        async move {
            expect_ok(store.list_chains().await).0.into_iter().map(|view| view.state).collect::<Vec<_>>()
        }
    };
    assert_eq!(states(&fixture).await, want);
    fixture.register(base_registration()).await;
    assert_eq!(states(&fixture).await, want, "after another registration");
    let fixture = fixture.reopen().await;
    assert_eq!(states(&fixture).await, want, "after a restart");
    fixture.assert_nothing_claimable("all orders are blocked").await;
    assert_eq!(fixture.read_order("/x/y,1").await.order.node, chain_node_id("a"));
}

pub async fn unknown_chains_and_chain_nodes_cannot_be_stopped(harness: &dyn Harness) {
    let fixture = fixture_with_two_orders_per_chain(harness).await;
    let since = fixture.read_journal_head().await;
    let (gone, y) = (chain_path("/x/gone"), chain_path("/x/y"));
    let refused = Err(OrderError::NoSuchChain(gone.clone()));
    assert_eq!(expect_ok(fixture.store.set_chain_stopped(&gone, true, fixture.now).await), refused);
    let a = chain_node_id("a");
    assert_eq!(
        expect_ok(fixture.store.set_chain_node_action(&gone, &a, ChainNodeAction::Stop, fixture.now).await),
        refused
    );
    let nowhere = chain_node_id("nowhere");
    let answer = expect_ok(
        fixture.store.set_chain_node_action(&y, &nowhere, ChainNodeAction::Stop, fixture.now).await,
    );
    assert_eq!(answer, Err(OrderError::NoSuchNode(y, nowhere)));
    assert_eq!(fixture.read_journal_head().await, since);
    assert!(fixture.list_chains().await.iter().all(|view| view.state == ChainState::default()));
}

/// A step that was running when its chain node was set to skip moves on as soon as it waits.
pub async fn a_failed_or_released_step_at_a_skipped_chain_node_is_not_repeated(harness: &dyn Harness) {
    let mut fixture = fixture_with_two_orders_per_chain(harness).await;
    fixture.set_chain_stopped("/x/z", true).await;
    let running = fixture.claim(10).await;
    fixture.set_chain_node_action("/x/y a", ChainNodeAction::NextState).await;
    fixture.fail(&running[0]).await;
    fixture.release_task(&running[1]).await;
    for key in ["/x/y,1", "/x/y,2"] {
        let view = fixture.read_order(key).await;
        assert_eq!((view.order.node.as_str(), view.retry_at), ("b", None));
    }
    fixture.advance_clock(RETRY_DELAY_SECS);
    assert_eq!(run_startable_steps(&fixture).await, ["/x/y,1 b", "/x/y,2 b"]);
}

/// Skipping around a cycle ends, and the order continues at whichever chain node is processed again.
pub async fn an_order_in_a_cycle_of_skipped_chain_nodes_waits_until_one_is_processed(harness: &dyn Harness) {
    for node in ["a", "b"] {
        let fixture = StoreFixture::new(
            harness,
            RegistrationBuilder::default().chain("/x/y", "a=first>b b=second>a!done done"),
        )
        .await;
        fixture.set_chain_node_action("/x/y a", ChainNodeAction::NextState).await;
        fixture.set_chain_node_action("/x/y b", ChainNodeAction::NextState).await;
        fixture.add_order(new_order("/x/y,1")).await;
        fixture.assert_nothing_claimable("all nodes are skipped").await;
        fixture.set_chain_node_action(&format!("/x/y {node}"), ChainNodeAction::Process).await;
        assert_eq!(format_steps(&fixture.claim(10).await), [format!("/x/y,1 {node}")]);
    }
}
