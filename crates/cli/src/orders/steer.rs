//! `pointsman orders suspend`, `resume`, `remove`, `move` and `set`.

use clap::Args;
use pointsman_api::ChangeOrderBody;
use pointsman_api::client::Client;
use pointsman_core::Timestamp;
use pointsman_core::chain::{NodeId, OrderKey};

use super::{ORDER, about, list};
use crate::args::moment;
use crate::emit::value;
use crate::failure::{Failure, Result};
use crate::output::Output;

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
pub(super) async fn steer(client: &Client, output: Output, orders: &[OrderKey], how: Steer) -> Result {
    let mut failed = 0;
    for order in orders {
        match one(client, output, order, how).await {
            Ok(()) => {}
            // Alone, it is told with what to do next; and where nobody answers, the others fare no better.
            Err(failure) if orders.len() == 1 || failure.is_temporary() => return Err(failure),
            Err(failure) => {
                eprintln!("error: {order}: {failure}");
                failed += 1;
            }
        }
    }
    match failed {
        0 => Ok(()),
        n => Err(Failure::runtime(format!("{n} of {} orders are not {}", orders.len(), how.done()))),
    }
}

async fn one(client: &Client, output: Output, order: &OrderKey, how: Steer) -> Result {
    let steered = match how {
        Steer::Suspend => client.suspend_order(order).await,
        Steer::Resume => client.resume_order(order).await,
        Steer::Remove => client.remove_order(order).await,
    };
    let now = steered.map_err(|error| about(order, error))?;
    if output.is_json() {
        return Ok(output.json(&now)?);
    }
    let stands = match how {
        Steer::Suspend | Steer::Resume => list::stands(&now),
        Steer::Remove => "removed".into(),
    };
    Ok(output.line(format!("{order}  {}  {stands}", now.node))?)
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
    /// What its next step is given: JSON, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|@FILE|-", required_unless_present = "at")]
    value: Option<String>,
    /// Let it wait until then: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,
}

impl Move {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let change = ChangeOrderBody { node: Some(self.node.to_string()), at: self.at, value: None };
        changed(client, output, &self.order, &change).await
    }
}

impl Set {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let value = self.value.as_deref().map(value).transpose()?;
        let change = ChangeOrderBody { value, node: None, at: self.at };
        changed(client, output, &self.order, &change).await
    }
}

async fn changed(client: &Client, output: Output, order: &OrderKey, change: &ChangeOrderBody) -> Result {
    let now = client.change_order(order, change).await.map_err(|e| about(order, e))?;
    if output.is_json() {
        return Ok(output.json(&now)?);
    }
    Ok(output.line(format!("{order}  {}  {}", now.node, list::stands(&now)))?)
}
