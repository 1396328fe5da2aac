//! `pointsman orders`: adds, lists and controls the orders of chains.
//!
//! ```text
//!  list                 orders by path, and counts by state
//!  show                 one order
//!  add                  a new order
//!  control              suspend, resume, remove, move and set
//!  state_description    describes the state of an order
//!  order_arguments      the arguments that name an order in the command of a hint
//!  similar_orders       suggests orders for a key that does not exist
//!  path_without_orders  explains why a path has no orders
//! ```

mod add;
mod control;
mod list;
mod order_arguments;
mod path_without_orders;
mod show;
mod similar_orders;
mod state_description;

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError, TenantOrderKey};
use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure, is_problem_from_pointsman_server};
use crate::output::Output;
use control::{OrderControl, suspend_resume_or_remove_orders};
use list::{ListOrdersCommand, OrderStatsCommand};
pub(crate) use order_arguments::format_order_arguments;
use order_arguments::format_tenant_argument;

/// List, add, suspend, resume, move or remove orders
///
/// An order runs through the nodes of a chain; each step is one task of the node's handler. Its key is the chain's path
/// and its id: `/publish/article,117`. Without a subcommand, lists the running orders.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders
  pointsman orders list /publish/
  pointsman orders add /publish/article,117 --value '{\"title\":\"Hello\"}'
  pointsman orders show /publish/article,117
  pointsman orders suspend /publish/article,117
  pointsman orders move /publish/article,117 --node render
  pointsman orders resume /publish/article,117
  pointsman watch --path /publish/article,117")]
pub(crate) struct OrdersCommand {
    #[command(subcommand)]
    subcommand: Option<OrderSubcommand>,
}

#[derive(Debug, Subcommand)]
enum OrderSubcommand {
    List(ListOrdersCommand),
    /// Show one running order with its value and task
    #[command(after_long_help = "\
Examples:
  pointsman orders show /publish/article,117
  pointsman orders show /publish/article,117 -o json | jq .value

To see its events: pointsman watch --since-start --path /publish/article,117")]
    Show {
        #[arg(value_name = "PATH,ID", help = ORDER_KEY_HELP)]
        order: OrderKey,
        #[arg(long, help = ORDER_TENANT_HELP)]
        tenant: Option<Tenant>,
    },
    Add(add::AddOrderCommand),
    /// Suspend orders
    ///
    /// A running step finishes; then the order waits at its node until it is resumed.
    #[command(after_long_help = "\
Examples:
  pointsman orders suspend /publish/article,117
  pointsman orders list /publish/article -o json | jq -r '.orders[].path' | xargs pointsman orders suspend

To stop all orders of a chain, including future ones: pointsman chains stop PATH")]
    Suspend(OrderKeysArgs),
    /// Resume suspended orders
    ///
    /// A step that fails permanently also suspends its order if the node has no `on_error`. Resuming such an order
    /// retries the step.
    #[command(after_long_help = "\
Example:
  pointsman orders resume /publish/article,117")]
    Resume(OrderKeysArgs),
    /// Remove orders
    ///
    /// An order whose step is running cannot be removed: suspend it and wait for the step to end.
    #[command(after_long_help = "\
Example:
  pointsman orders remove /publish/article,117 /publish/article,118")]
    Remove(OrderKeysArgs),
    Move(control::MoveOrderCommand),
    Set(control::SetOrderCommand),
    Stats(OrderStatsCommand),
}

const ORDER_TENANT_HELP: &str = "Tenant of the order [default: the token's tenant, or `default`]";
const ORDER_KEY_HELP: &str = "Key of the order: the chain's path, a comma and the id";

#[derive(Debug, Args)]
struct OrderKeysArgs {
    /// Keys of the orders: the chain's path, a comma and the id
    #[arg(required = true, value_name = "PATH,ID")]
    orders: Vec<OrderKey>,
    /// Tenant of the orders [default: the token's tenant, or `default`]
    #[arg(long)]
    tenant: Option<Tenant>,
}

impl OrderKeysArgs {
    fn into_tenant_keys(self) -> Vec<TenantOrderKey> {
        let tenant = self.tenant;
        self.orders.into_iter().map(|key| TenantOrderKey { key, tenant: tenant.clone() }).collect()
    }
}

impl OrdersCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let (client, output) = (global.new_client()?, Output::new(global));
        match self.subcommand.unwrap_or(OrderSubcommand::List(ListOrdersCommand::default())) {
            OrderSubcommand::List(list) => list.run(&client, output).await,
            OrderSubcommand::Show { order: key, tenant } => {
                show::show_order(&client, output, &TenantOrderKey { key, tenant }).await
            }
            OrderSubcommand::Add(add) => add.run(&client, output).await,
            OrderSubcommand::Suspend(orders) => {
                suspend_resume_or_remove_orders(
                    &client,
                    output,
                    &orders.into_tenant_keys(),
                    OrderControl::Suspend,
                )
                .await
            }
            OrderSubcommand::Resume(orders) => {
                suspend_resume_or_remove_orders(
                    &client,
                    output,
                    &orders.into_tenant_keys(),
                    OrderControl::Resume,
                )
                .await
            }
            OrderSubcommand::Remove(orders) => {
                suspend_resume_or_remove_orders(
                    &client,
                    output,
                    &orders.into_tenant_keys(),
                    OrderControl::Remove,
                )
                .await
            }
            OrderSubcommand::Move(change) => change.run(&client, output).await,
            OrderSubcommand::Set(change) => change.run(&client, output).await,
            OrderSubcommand::Stats(stats) => stats.run(&client, output).await,
        }
    }
}

/// Converts the error of an API request about one order, with a hint.
async fn order_request_failure(client: &Client, order: &TenantOrderKey, error: ClientError) -> Failure {
    let status = error.http_status();
    let is_server_problem = is_problem_from_pointsman_server(&error);
    let failure = match status {
        // The server's message names the HTTP parameter `tenant=`; the option of this command is --tenant.
        Some(404) if is_server_problem => missing_order_failure(order),
        _ => Failure::from(error),
    };
    if status == Some(404) {
        return failure.with_hint(explain_missing_order(client, order).await);
    }
    match status {
        Some(409) => failure.with_hint(format!(
            "`pointsman orders suspend {arguments}` suspends it after its running step;\n\
             `pointsman orders show {arguments}` shows whether that step still runs.",
            arguments = format_order_arguments(order),
        )),
        Some(422) => {
            failure.with_hint(format!("`pointsman chains show {}` lists its nodes.", order.key.chain))
        }
        _ => failure,
    }
}

fn missing_order_failure(order: &TenantOrderKey) -> Failure {
    let tenant = order.tenant.as_ref().map(|tenant| format!(" of tenant {tenant}")).unwrap_or_default();
    Failure::runtime(format!("there is no order {}{tenant} (HTTP 404)", order.key))
}

/// Explains why a request found no such order: its chain does not exist, the id is mistyped, or the order has ended.
async fn explain_missing_order(client: &Client, order: &TenantOrderKey) -> String {
    let OrderKey { chain, .. } = &order.key;
    if let Some(reason) = path_without_orders::explain_path_without_orders(client, chain.as_str()).await {
        return format!("{reason}\n`pointsman chains` lists the chains.");
    }
    let near = similar_orders::suggest_similar_orders(client, order)
        .await
        .map(|near| format!("{near}\n\n"))
        .unwrap_or_default();
    let tenant = format_tenant_argument(order);
    format!(
        "{near}Orders that have ended are not listed. Order ids belong to a tenant; --tenant selects another one.\n\
         `pointsman tasks --key {key}{tenant}` lists the steps of an ended order;\n\
         `pointsman watch --since-start --path {key}{tenant}` prints its events;\n\
         `pointsman orders list {chain}` lists the running orders of the chain.",
        key = order.key
    )
}
