//! Orders on their way along chains, on a real store.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "handler_support/server.rs"]
mod server;

#[path = "orders/changing.rs"]
mod changing;
#[path = "orders/failing.rs"]
mod failing;
#[path = "orders/making.rs"]
mod making;
#[path = "orders/returning.rs"]
mod returning;
#[path = "orders/steering.rs"]
mod steering;
#[path = "orders/travelling.rs"]
mod travelling;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::*;
use pointsman_core::chain::OrderKey;
use pointsman_core::journal::Filter;
use pointsman_core::store::{Ended, NewOrder};
use pointsman_core::task::{StepRun, Subject};
use pointsman_core::{EventId, Json, ObjectKey, Tenant};
use pointsman_engine::handlers::command::{CommandHandler, CommandSpec};
use pointsman_engine::{AttemptOutcome, Delivery, Engine};
use tokio::sync::Semaphore;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn key(text: &str) -> OrderKey {
    text.parse().unwrap()
}

/// Adds an order with this value and answers its name.
async fn add(engine: &Engine, order: &str, value: &str) -> OrderKey {
    let OrderKey { chain, id } = key(order);
    let new = NewOrder { id: Some(id), value: json(value), ..NewOrder::of(chain) };
    engine.add_orders(vec![new]).await.unwrap().unwrap().orders.remove(0).order
}

/// The step that a delivery is about.
fn step_of(delivery: &Delivery) -> &StepRun {
    match &delivery.task.subject {
        Subject::Step(step) => step,
        other => panic!("{other:?}"),
    }
}

/// A step that is a shell script.
fn shell(script: &str) -> Arc<CommandHandler> {
    let argv = ["sh", "-c", script].map(ToOwned::to_owned).to_vec();
    Arc::new(
        CommandHandler::new(CommandSpec { argv, env: BTreeMap::new(), dir: None, run_as: None }).unwrap(),
    )
}

/// Done, with a new value for the order.
fn returns(value: &str) -> AttemptOutcome {
    AttemptOutcome { ended: Ended::Succeeded { result: Some(json(value)) }, ..AttemptOutcome::done() }
}

/// What the journal tells of an order, up to the first event of this type. The order's name and the tasks' are left out,
/// and so are quotation marks.
async fn told(engine: &Engine, order: &OrderKey, last: &str) -> Vec<String> {
    told_times(engine, order, last, 1).await
}

/// The same, up to the event of this type that is the `times`th.
async fn told_times(engine: &Engine, order: &OrderKey, last: &str, times: usize) -> Vec<String> {
    let filter = Filter { key: Some(ObjectKey::new(order.to_string()).unwrap()), ..Filter::default() };
    let (mut after, mut told) = (EventId::ZERO, Vec::new());
    soon(last, async {
        let mut left = times;
        loop {
            let page = engine.observer().read_page(&filter, after, None, 1000).await.unwrap();
            after = page.scanned;
            for event in &page.events {
                let fields: serde_json::Value = event.value.to().unwrap();
                let mut fields = fields.as_object().unwrap().clone();
                fields.remove("taskId");
                let fields = serde_json::Value::from(fields).to_string().replace(['"', '{', '}'], "");
                told.push(format!("{} {}", event.kind, fields.replace("nodeTransition:TYPE:", "")));
                left -= usize::from(event.kind.as_str() == last);
                if left == 0 {
                    return;
                }
            }
            engine.observer().wait_for_match(&filter, &mut after).await;
        }
    })
    .await;
    told.into_iter().map(|line| line.trim().to_owned()).collect()
}

/// A door that steps wait at.
#[derive(Clone)]
struct StepGate {
    came: Arc<Semaphore>,
    open: Arc<Semaphore>,
}

impl StepGate {
    fn new() -> Self {
        Self { came: Arc::new(Semaphore::new(0)), open: Arc::new(Semaphore::new(0)) }
    }

    /// A step that stands at the door until it is let in.
    fn step(
        &self,
    ) -> impl Fn(Delivery) -> futures::future::BoxFuture<'static, AttemptOutcome> + Send + Sync + 'static
    {
        let door = self.clone();
        move |_| {
            let door = door.clone();
            Box::pin(async move {
                door.came.add_permits(1);
                door.open.acquire().await.unwrap().forget();
                AttemptOutcome::done()
            })
        }
    }

    async fn somebody(&self) {
        soon("a step at the door", self.came.acquire()).await.unwrap().forget();
    }

    fn let_in(&self) {
        self.open.add_permits(1);
    }
}
