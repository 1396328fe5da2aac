//! Chains with an in-process handler, whose steps the test lets finish.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pointsman_core::chain::{Chain, ChainNode, ChainNodeId, ChainNodeRole, ChainPath, ChainStep, OrderKey};
use pointsman_core::store::{NewOrder, OrderCommand};
use pointsman_core::task::TaskSubject;
use pointsman_core::task::retry::{Backoff, RetryPolicy};
use pointsman_core::{HandlerDef, HandlerName, Json, Tenant};
use pointsman_engine::{Delivery, HandlerOutcome, HandlerSpec, Runner, Setup};
use tokio::sync::Semaphore;

use crate::test_server::TestServer;

/// A gate at which steps wait. Each permit lets one step finish.
#[derive(Clone)]
pub(crate) struct StepGate(Arc<Semaphore>);

impl StepGate {
    pub(crate) fn new_closed() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    pub(crate) fn new_open() -> Self {
        Self(Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)))
    }

    pub(crate) fn let_steps_finish(&self, steps: usize) {
        self.0.add_permits(steps);
    }
}

/// Runs steps that wait at the gate and then succeed, but fail for orders whose value is `"fail"`.
struct GatedStepRunner(StepGate);

#[async_trait]
impl Runner for GatedStepRunner {
    fn handler_kind(&self) -> &'static str {
        "in-process"
    }

    async fn run(&self, delivery: Delivery) -> HandlerOutcome {
        self.0.0.acquire().await.expect("never closed").forget();
        match &delivery.task.subject {
            TaskSubject::Step(step) if step.value.as_str() == "\"fail\"" => {
                HandlerOutcome::failed_with_return_code(7, "the value of the order is `fail`")
            }
            _ => HandlerOutcome::succeeded(),
        }
    }
}

/// A chain: `a`, then `b`, then `done`; failures go to `failed`.
pub(crate) fn two_step_chain(path: &str) -> Chain {
    let nodes = vec![
        new_step_node("a", "b", None),
        new_step_node("b", "done", None),
        new_end_node("done"),
        new_end_node("failed"),
    ];
    Chain { path: ChainPath::new(path).expect("a path"), nodes }
}

/// A chain of one step that is retried after an hour.
pub(crate) fn retrying_chain(path: &str) -> Chain {
    let hour = Duration::from_secs(3600);
    let setback = RetryPolicy { max_retries: 3, backoff: Backoff::Fixed, delay: hour, max_delay: hour };
    let nodes = vec![new_step_node("a", "done", Some(setback)), new_end_node("done"), new_end_node("failed")];
    Chain { path: ChainPath::new(path).expect("a path"), nodes }
}

fn new_chain_node_id(id: &str) -> ChainNodeId {
    ChainNodeId::new(id).expect("a name")
}

fn new_step_node(id: &str, next: &str, setback: Option<RetryPolicy>) -> ChainNode {
    let handler = HandlerName::new("work").expect("a name");
    let step = ChainStep {
        handler,
        next: new_chain_node_id(next),
        on_error: Some(new_chain_node_id("failed")),
        retry: setback,
    };
    ChainNode { id: new_chain_node_id(id), role: ChainNodeRole::Step(step) }
}

fn new_end_node(id: &str) -> ChainNode {
    ChainNode { id: new_chain_node_id(id), role: ChainNodeRole::End }
}

/// A setup with these chains, whose steps wait at the gate.
pub(crate) fn chain_setup(gate: &StepGate, chains: Vec<Chain>) -> Setup {
    let mut def = HandlerDef::new(HandlerName::new("work").expect("a name"));
    def.retry.max_retries = 0;
    let runner: Arc<dyn Runner> = Arc::new(GatedStepRunner(gate.clone()));
    let spec = HandlerSpec { def, attempt_timeout: Duration::from_secs(600), runner: Some(runner) };
    Setup { handlers: vec![spec], chains, ..Setup::default() }
}

/// A new order with this key.
pub(crate) fn new_order(key: &str) -> NewOrder {
    let key: OrderKey = key.parse().expect("an order");
    NewOrder { id: Some(key.id), ..NewOrder::new(key.chain) }
}

impl TestServer {
    pub(crate) async fn add_order_to_engine(&self, order: NewOrder) {
        self.inner.engine().add_orders(vec![order]).await.expect("a store").expect("an order");
    }

    /// Adds an order whose steps fail.
    pub(crate) async fn add_failing_order_to_engine(&self, key: &str) {
        self.add_order_to_engine(NewOrder { value: Json::from_trusted("\"fail\""), ..new_order(key) }).await;
    }

    pub(crate) async fn apply_order_command(&self, key: &str, command: OrderCommand) {
        self.apply_tenant_order_command("default", key, command).await;
    }

    /// Applies a command to an order of a tenant.
    pub(crate) async fn apply_tenant_order_command(&self, tenant: &str, key: &str, command: OrderCommand) {
        let (tenant, key) = (Tenant::new(tenant).expect("a tenant"), key.parse().expect("an order"));
        let changed = self.inner.engine().apply_order_command(&tenant, &key, command).await;
        changed.expect("a store").expect("a change");
    }

    pub(crate) async fn set_chain_stopped(&self, path: &str, stopped: bool) {
        let path = ChainPath::new(path).expect("a path");
        self.inner.engine().set_chain_stopped(&path, stopped).await.expect("a store").expect("a chain");
    }
}
