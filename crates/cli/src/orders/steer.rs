//! `pointsman orders suspend`, `resume`, `remove`, `move` and `set`.

use clap::Args;
use pointsman_api::client::{Client, ClientError, OrderName};
use pointsman_api::{ChangeOrderBody, OrderBody};
use pointsman_core::chain::{NodeId, OrderKey};
use pointsman_core::{Tenant, Timestamp};
use pointsman_server::config::nearest::hint;

use super::stands::stands_now;
use super::{ORDER, TENANT, about};
use crate::args::moment;
use crate::emit::value;
use crate::failure::{Failure, Result};
use crate::output::{Output, say};

#[derive(Clone, Copy)]
pub(super) enum Steer {
    Suspend,
    Resume,
    Remove,
}

impl Steer {
    fn done(self) -> &'static str {
        match self {
            Self::Suspend => "suspended",
            Self::Resume => "resumed",
            Self::Remove => "removed",
        }
    }
}

/// Steers orders, one after the other. One that cannot be is told, and the others follow.
pub(super) async fn steer(client: &Client, output: Output, orders: &[OrderName], how: Steer) -> Result {
    let mut failed = 0;
    for order in orders {
        match one(client, output, order, how).await {
            Ok(()) => {}
            // Alone, it is told with what to do next; and where nobody answers, the others fare no better.
            Err(failure) if orders.len() == 1 || failure.is_temporary() => return Err(failure),
            Err(failure) => {
                say(format!("error: {}: {failure}", order.key));
                failed += 1;
            }
        }
    }
    match failed {
        0 => Ok(()),
        n => Err(Failure::runtime(format!("{n} of {} orders are not {}", orders.len(), how.done()))),
    }
}

async fn one(client: &Client, output: Output, order: &OrderName, how: Steer) -> Result {
    let steered = match how {
        Steer::Suspend => client.suspend_order(order).await,
        Steer::Resume => client.resume_order(order).await,
        Steer::Remove => client.remove_order(order).await,
    };
    let now = match steered {
        Ok(now) => now,
        Err(error) => return Err(about(client, order, error).await),
    };
    if output.is_json() {
        return Ok(output.json(&now)?);
    }
    match how {
        Steer::Suspend | Steer::Resume => tell(client, output, order, &now).await,
        Steer::Remove => Ok(output.line(format!("{}  {}  removed", order.key, now.node))?),
    }
}

/// Put an order at another node
///
/// Not while a step of it runs: suspend it first, and wait for the step to end. A suspended order stays so.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders move /publish/article,117 --node render
  pointsman orders move /publish/article,117 --node deploy --at '2026-01-31 12:00:00'")]
pub(super) struct Move {
    #[arg(value_name = "PATH,ID", help = ORDER)]
    order: OrderKey,
    #[arg(long, help = TENANT)]
    tenant: Option<Tenant>,
    /// Where it is to stand
    #[arg(long)]
    node: NodeId,
    /// Let it wait there until then: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,
}

/// Give an order another value, or another time
///
/// Not while a step of it runs: suspend it first, and wait for the step to end.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders set /publish/article,117 --value '{\"title\":\"Hello, again\"}'
  pointsman orders set /publish/article,117 --value @article.json
  pointsman orders set /publish/article,117 --at '2026-01-31 12:00:00'")]
pub(super) struct Set {
    #[arg(value_name = "PATH,ID", help = ORDER)]
    order: OrderKey,
    #[arg(long, help = TENANT)]
    tenant: Option<Tenant>,
    /// What its next step is given: JSON, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    value: Option<String>,
    /// Let it wait until then: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,
}

impl Move {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let change = ChangeOrderBody { node: Some(self.node.to_string()), at: self.at, value: None };
        changed(client, output, &OrderName { key: self.order, tenant: self.tenant }, &change).await
    }
}

impl Set {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        if self.value.is_none() && self.at.is_none() {
            return Err(Failure::usage("there is nothing to set")
                .hint("Say what the order is to have: another value with --value, another time with --at."));
        }
        let value = self.value.as_deref().map(value).transpose()?;
        let change = ChangeOrderBody { value, node: None, at: self.at };
        changed(client, output, &OrderName { key: self.order, tenant: self.tenant }, &change).await
    }
}

async fn changed(client: &Client, output: Output, order: &OrderName, change: &ChangeOrderBody) -> Result {
    let now = match client.change_order(order, change).await {
        Ok(now) => now,
        Err(error) => return Err(not_changed(client, order, change, error).await),
    };
    if output.is_json() {
        return Ok(output.json(&now)?);
    }
    tell(client, output, order, &now).await
}

/// A node that is not there was perhaps mistyped.
async fn not_changed(
    client: &Client,
    order: &OrderName,
    change: &ChangeOrderBody,
    error: ClientError,
) -> Failure {
    let (Some(422), Some(node)) = (error.status(), &change.node) else {
        return about(client, order, error).await;
    };
    let text = error.to_string();
    let Ok(detail) = client.chain(&order.key.chain).await else { return about(client, order, error).await };
    let near = hint(node, detail.chain.nodes.iter().map(|node| node.id.as_str()));
    // The server may have said so itself.
    let near = if text.contains(&near) { "." } else { &near };
    Failure::from(error).hint(format!("`pointsman chains show {}` lists its nodes{near}", order.key.chain))
}

/// Says where an order is now.
async fn tell(client: &Client, output: Output, order: &OrderName, now: &OrderBody) -> Result {
    let key = &order.key;
    let line = match arrived(client, order, now).await {
        Some(end) => format!("{key}  has arrived at {end}"),
        None => format!("{key}  {}  {}", now.node, stands_now(client, now).await),
    };
    Ok(output.line(line)?)
}

/// The end that an order has come to. The answer to a command shows the order as it was before it vanished.
async fn arrived(client: &Client, order: &OrderName, now: &OrderBody) -> Option<String> {
    // One that is on its way has a task, unless something keeps it.
    if now.suspended || now.stranded || now.task.is_some() {
        return None;
    }
    let is_gone = client.order(order).await.is_err_and(|error| error.status() == Some(404));
    if !is_gone {
        return None;
    }
    let detail = client.chain(&order.key.chain).await.ok();
    let mut nodes = detail.iter().flat_map(|detail| &detail.chain.nodes);
    let is_end = nodes.any(|node| node.id == now.node && node.end);
    Some(if is_end { now.node.clone() } else { "an end".into() })
}
