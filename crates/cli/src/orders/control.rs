//! `pointsman orders suspend`, `resume`, `remove`, `move` and `set`.

use clap::Args;
use pointsman_api::client::{Client, ClientError, TenantOrderKey};
use pointsman_api::{ChangeOrderBody, OrderBody};
use pointsman_core::chain::{ChainNodeId, OrderKey};
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::{Tenant, Timestamp};

use super::state_description::fetch_state_description;
use super::{ORDER_KEY_HELP, ORDER_TENANT_HELP, order_request_failure};
use crate::args::parse_time;
use crate::emit::read_value;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, print_to_stderr};

#[derive(Clone, Copy)]
pub(super) enum OrderControl {
    Suspend,
    Resume,
    Remove,
}

impl OrderControl {
    fn past_participle(self) -> &'static str {
        match self {
            Self::Suspend => "suspended",
            Self::Resume => "resumed",
            Self::Remove => "removed",
        }
    }
}

/// Suspends, resumes or removes orders one after the other and prints their new state. Errors of single orders are
/// printed, and the rest is still tried.
pub(super) async fn suspend_resume_or_remove_orders(
    client: &Client,
    output: Output,
    orders: &[TenantOrderKey],
    control: OrderControl,
) -> CommandResult {
    let mut failed = 0;
    for order in orders {
        match suspend_resume_or_remove_order(client, output, order, control).await {
            Ok(()) => {}
            // A single order's error is returned with its hint; if the server is unavailable, the others would fail too.
            Err(failure) if orders.len() == 1 || failure.is_temporary() => return Err(failure),
            Err(failure) => {
                print_to_stderr(format!("error: {}: {failure}", order.key));
                failed += 1;
            }
        }
    }
    match failed {
        0 => Ok(()),
        n => {
            let verb = control.past_participle();
            Err(Failure::runtime(format!("{n} of {} orders could not be {verb}", orders.len())))
        }
    }
}

async fn suspend_resume_or_remove_order(
    client: &Client,
    output: Output,
    order: &TenantOrderKey,
    control: OrderControl,
) -> CommandResult {
    let response = match control {
        OrderControl::Suspend => client.suspend_order(order).await,
        OrderControl::Resume => client.resume_order(order).await,
        OrderControl::Remove => client.remove_order(order).await,
    };
    let changed = match response {
        Ok(changed) => changed,
        Err(error) => return Err(order_request_failure(client, order, error).await),
    };
    if output.is_json() {
        return Ok(output.print_json(&changed)?);
    }
    match control {
        OrderControl::Suspend | OrderControl::Resume => {
            print_order_state(client, output, order, &changed).await
        }
        OrderControl::Remove => Ok(output.print_line(format!("{}  {}  removed", order.key, changed.node))?),
    }
}

/// Move an order to another node
///
/// This fails while a step is running: suspend the order and wait for the step to end. A suspended order stays
/// suspended.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders move /publish/article,117 --node render
  pointsman orders move /publish/article,117 --node deploy --at '2026-01-31 12:00:00'")]
pub(super) struct MoveOrderCommand {
    #[arg(value_name = "PATH,ID", help = ORDER_KEY_HELP)]
    order: OrderKey,
    #[arg(long, help = ORDER_TENANT_HELP)]
    tenant: Option<Tenant>,
    /// Id of the node
    #[arg(long)]
    node: ChainNodeId,
    /// Wait there until this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
}

/// Change the value or the time of an order
///
/// This fails while a step is running: suspend the order and wait for the step to end.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders set /publish/article,117 --value '{\"title\":\"Hello, again\"}'
  pointsman orders set /publish/article,117 --value @article.json
  pointsman orders set /publish/article,117 --at '2026-01-31 12:00:00'")]
pub(super) struct SetOrderCommand {
    #[arg(value_name = "PATH,ID", help = ORDER_KEY_HELP)]
    order: OrderKey,
    #[arg(long, help = ORDER_TENANT_HELP)]
    tenant: Option<Tenant>,
    /// Value for the next step: JSON, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    value: Option<String>,
    /// Wait until this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
}

impl MoveOrderCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        let change = ChangeOrderBody { node: Some(self.node.to_string()), planned_at: self.at, value: None };
        change_order(client, output, &TenantOrderKey { key: self.order, tenant: self.tenant }, &change).await
    }
}

impl SetOrderCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        if self.value.is_none() && self.at.is_none() {
            return Err(Failure::usage("nothing to set")
                .with_hint("Give a new value with --value or a new time with --at."));
        }
        let value = self.value.as_deref().map(read_value).transpose()?;
        let change = ChangeOrderBody { value, node: None, planned_at: self.at };
        change_order(client, output, &TenantOrderKey { key: self.order, tenant: self.tenant }, &change).await
    }
}

async fn change_order(
    client: &Client,
    output: Output,
    order: &TenantOrderKey,
    change: &ChangeOrderBody,
) -> CommandResult {
    let changed = match client.change_order(order, change).await {
        Ok(changed) => changed,
        Err(error) => return Err(change_order_request_failure(client, order, change, error).await),
    };
    if output.is_json() {
        return Ok(output.print_json(&changed)?);
    }
    print_order_state(client, output, order, &changed).await
}

/// Converts the error, with a suggestion for a mistyped node.
async fn change_order_request_failure(
    client: &Client,
    order: &TenantOrderKey,
    change: &ChangeOrderBody,
    error: ClientError,
) -> Failure {
    let (Some(422), Some(node)) = (error.http_status(), &change.node) else {
        return order_request_failure(client, order, error).await;
    };
    let text = error.to_string();
    let Ok(detail) = client.read_chain(&order.key.chain).await else {
        return order_request_failure(client, order, error).await;
    };
    let near = did_you_mean_suffix(node, detail.chain.nodes.iter().map(|node| node.id.as_str()));
    // The server's message may contain the suggestion.
    let near = if text.contains(&near) { "." } else { &near };
    Failure::from(error)
        .with_hint(format!("`pointsman chains show {}` lists its nodes{near}", order.key.chain))
}

/// Prints the order's node and state.
async fn print_order_state(
    client: &Client,
    output: Output,
    order: &TenantOrderKey,
    changed: &OrderBody,
) -> CommandResult {
    let key = &order.key;
    let line = match find_end_node_if_finished(client, order, changed).await {
        Some(end) => format!("{key}  {end}  finished"),
        None => format!("{key}  {}  {}", changed.node, fetch_state_description(client, changed).await),
    };
    Ok(output.print_line(line)?)
}

/// The end node of the order if the command finished it, which deletes it. The response shows the order as it was before.
async fn find_end_node_if_finished(
    client: &Client,
    order: &TenantOrderKey,
    changed: &OrderBody,
) -> Option<String> {
    // A running order has a task, unless it is suspended or stranded.
    if changed.suspended || changed.is_at_removed_node || changed.task.is_some() {
        return None;
    }
    let is_deleted = client.read_order(order).await.is_err_and(|error| error.http_status() == Some(404));
    if !is_deleted {
        return None;
    }
    let detail = client.read_chain(&order.key.chain).await.ok();
    let mut nodes = detail.iter().flat_map(|detail| &detail.chain.nodes);
    let is_end = nodes.any(|node| node.id == changed.node && node.is_end);
    Some(if is_end { changed.node.clone() } else { "an end node".into() })
}
