//! Orders that run through chains, on a real store.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "handler_support/test_server.rs"]
mod test_server;

#[path = "orders/chain_changes.rs"]
mod chain_changes;
#[path = "orders/control.rs"]
mod control;
#[path = "orders/creation.rs"]
mod creation;
#[path = "orders/end_to_end.rs"]
mod end_to_end;
#[path = "orders/step_failures.rs"]
mod step_failures;
#[path = "orders/step_results.rs"]
mod step_results;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::*;
use pointsman_core::chain::OrderKey;
use pointsman_core::journal::EventFilter;
use pointsman_core::store::{AttemptResult, NewOrder};
use pointsman_core::task::{StepRun, TaskSubject};
use pointsman_core::{EventId, Json, ObjectKey, Tenant};
use pointsman_engine::handlers::command::{CommandHandler, CommandSpec};
use pointsman_engine::{Delivery, Engine, HandlerOutcome};
use tokio::sync::Semaphore;

fn parse_json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn parse_order_key(text: &str) -> OrderKey {
    text.parse().unwrap()
}

/// Adds an order with this value, and returns its key.
async fn add_order(engine: &Engine, order: &str, value: &str) -> OrderKey {
    let OrderKey { chain, id } = parse_order_key(order);
    let new = NewOrder { id: Some(id), value: parse_json(value), ..NewOrder::new(chain) };
    engine.add_orders(vec![new]).await.unwrap().unwrap().orders.remove(0).order
}

/// The step that a delivery is about.
fn step_of_delivery(delivery: &Delivery) -> &StepRun {
    match &delivery.task.subject {
        TaskSubject::Step(step) => step,
        other => panic!("{other:?}"),
    }
}

/// A handler that runs a shell script.
fn shell_handler(script: &str) -> Arc<CommandHandler> {
    let argv = ["sh", "-c", script].map(ToOwned::to_owned).to_vec();
    Arc::new(
        CommandHandler::new(CommandSpec { argv, env: BTreeMap::new(), working_dir: None, run_as: None })
            .unwrap(),
    )
}

/// A successful outcome with a new value for the order.
fn outcome_with_result(value: &str) -> HandlerOutcome {
    HandlerOutcome {
        result: AttemptResult::Succeeded { result: Some(parse_json(value)) },
        ..HandlerOutcome::succeeded()
    }
}

/// Lists the engine events of an order as text, up to the first event of this type. The text omits task ids and
/// quotation marks.
async fn list_order_events_until(engine: &Engine, order: &OrderKey, event_type: &str) -> Vec<String> {
    list_order_events_until_nth(engine, order, event_type, 1).await
}

/// Lists the engine events of an order as text, up to the `occurrence`th event of this type.
async fn list_order_events_until_nth(
    engine: &Engine,
    order: &OrderKey,
    event_type: &str,
    occurrence: usize,
) -> Vec<String> {
    let filter =
        EventFilter { key: Some(ObjectKey::new(order.to_string()).unwrap()), ..EventFilter::default() };
    let (mut after, mut order_events) = (EventId::ZERO, Vec::new());
    within_timeout(event_type, async {
        let mut remaining = occurrence;
        loop {
            let page = engine.observer().read_page(&filter, after, None, 1000).await.unwrap();
            after = page.last_scanned_event_id;
            for event in &page.events {
                let fields: serde_json::Value = event.value.decode().unwrap();
                let mut fields = fields.as_object().unwrap().clone();
                fields.remove("taskId");
                let fields = serde_json::Value::from(fields).to_string().replace(['"', '{', '}'], "");
                order_events.push(format!(
                    "{} {}",
                    event.event_type,
                    fields.replace("nodeTransition:TYPE:", "")
                ));
                remaining -= usize::from(event.event_type.as_str() == event_type);
                if remaining == 0 {
                    return;
                }
            }
            engine.observer().wait_for_matching_event(&filter, &mut after).await;
        }
    })
    .await;
    order_events.into_iter().map(|line| line.trim().to_owned()).collect()
}

/// Blocks steps until they are released.
#[derive(Clone)]
struct StepGate {
    arrived_steps: Arc<Semaphore>,
    release_permits: Arc<Semaphore>,
}

impl StepGate {
    fn new() -> Self {
        Self { arrived_steps: Arc::new(Semaphore::new(0)), release_permits: Arc::new(Semaphore::new(0)) }
    }

    /// A handler whose steps block until they are released.
    fn gated_step_handler(
        &self,
    ) -> impl Fn(Delivery) -> futures::future::BoxFuture<'static, HandlerOutcome> + Send + Sync + 'static
    {
        let gate = self.clone();
        move |_| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.arrived_steps.add_permits(1);
                gate.release_permits.acquire().await.unwrap().forget();
                HandlerOutcome::succeeded()
            })
        }
    }

    async fn wait_for_arrival(&self) {
        within_timeout("a step at the gate", self.arrived_steps.acquire()).await.unwrap().forget();
    }

    fn release_one_step(&self) {
        self.release_permits.add_permits(1);
    }
}
