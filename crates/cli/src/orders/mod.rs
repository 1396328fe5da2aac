//! `pointsman orders`: what travels the chains.
//!
//! ```text
//!  list     many of them, and how they are spread
//!  named    an order as the command line names it
//!  nowhere  why there are none at a path
//!  near     which was perhaps meant, where there is none of that name
//!  stands   how one stands, in a few words
//!  show     one of them
//!  add      a new one
//!  steer    suspend, resume and remove; another node, another value, another time
//! ```

mod add;
mod list;
mod named;
mod near;
mod nowhere;
mod show;
mod stands;
mod steer;

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError, OrderName};
use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::Output;
use list::{List, Stats};
use named::tenant_words;
pub(crate) use named::words;
use steer::{Steer, steer};

/// List orders, add one, suspend, resume, move or remove them
///
/// An order travels a chain, node by node; at each step it has one task of the node's handler. It is named by its
/// chain's path and its id: `/publish/article,117`. Without a subcommand, lists them, as `list` does.
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
pub(crate) struct Orders {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(List),
    /// Show one order with its value and its task
    #[command(after_long_help = "\
Examples:
  pointsman orders show /publish/article,117
  pointsman orders show /publish/article,117 -o json | jq .value

What it has been through is in the stream: pointsman watch --since-start --key /publish/article,117")]
    Show {
        #[arg(value_name = "PATH,ID", help = ORDER)]
        order: OrderKey,
        #[arg(long, help = TENANT)]
        tenant: Option<Tenant>,
    },
    Add(add::Add),
    /// Keep orders from going on
    ///
    /// A step that runs is let end; after it, the order stays where it is until it is resumed.
    #[command(after_long_help = "\
Examples:
  pointsman orders suspend /publish/article,117
  pointsman orders list /publish/article -o json | jq -r '.orders[].path' | xargs pointsman orders suspend

To hold all orders of a chain back, also those to come: pointsman chains stop PATH")]
    Suspend(Several),
    /// Let suspended orders go on
    ///
    /// An order is also suspended by a step that failed for good where the node has no `on_error`: resumed, it
    /// runs that step again.
    #[command(after_long_help = "\
Example:
  pointsman orders resume /publish/article,117")]
    Resume(Several),
    /// Remove orders
    ///
    /// One whose step runs cannot be removed: suspend it, and wait for the step to end.
    #[command(after_long_help = "\
Example:
  pointsman orders remove /publish/article,117 /publish/article,118")]
    Remove(Several),
    Move(steer::Move),
    Set(steer::Set),
    Stats(Stats),
}

const TENANT: &str = "Tenant of the order; if not given, the token's tenant, or `default`";
const ORDER: &str = "The order: its chain's path, a comma, and its id";

#[derive(Debug, Args)]
struct Several {
    /// The orders, each as its chain's path, a comma, and its id
    #[arg(required = true, value_name = "PATH,ID")]
    orders: Vec<OrderKey>,
    /// Tenant of the orders; if not given, the token's tenant, or `default`
    #[arg(long)]
    tenant: Option<Tenant>,
}

impl Several {
    fn named(self) -> Vec<OrderName> {
        let tenant = self.tenant;
        self.orders.into_iter().map(|key| OrderName { key, tenant: tenant.clone() }).collect()
    }
}

impl Orders {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let (client, output) = (global.client()?, Output::new(global));
        match self.action.unwrap_or(Action::List(List::default())) {
            Action::List(list) => list.run(&client, output).await,
            Action::Show { order: key, tenant } => {
                show::show(&client, output, &OrderName { key, tenant }).await
            }
            Action::Add(add) => add.run(&client, output).await,
            Action::Suspend(these) => steer(&client, output, &these.named(), Steer::Suspend).await,
            Action::Resume(these) => steer(&client, output, &these.named(), Steer::Resume).await,
            Action::Remove(these) => steer(&client, output, &these.named(), Steer::Remove).await,
            Action::Move(change) => change.run(&client, output).await,
            Action::Set(change) => change.run(&client, output).await,
            Action::Stats(stats) => stats.run(&client, output).await,
        }
    }
}

/// A call about one order failed.
async fn about(client: &Client, order: &OrderName, error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    if status == Some(404) {
        return failure.hint(gone(client, order).await);
    }
    match status {
        Some(409) => failure.hint(format!(
            "`pointsman orders suspend {words}` suspends it once its running step has ended;\n\
             `pointsman orders show {words}` shows whether that step still runs.",
            words = words(order),
        )),
        Some(422) => failure.hint(format!("`pointsman chains show {}` lists its nodes.", order.key.chain)),
        _ => failure,
    }
}

/// What could be wrong where there is no such order.
async fn gone(client: &Client, order: &OrderName) -> String {
    let OrderKey { chain, .. } = &order.key;
    if let Some(wrong) = nowhere::nowhere(client, chain.as_str()).await {
        return format!("{wrong}\n`pointsman chains` lists the chains there are.");
    }
    let near = near::told(client, order).await.map(|near| format!("{near}\n\n")).unwrap_or_default();
    let tenant = tenant_words(order);
    format!(
        "{near}A finished order is no longer listed. Order ids belong to a tenant: --tenant selects another one.\n\
         `pointsman tasks --key {key}{tenant}` lists the steps that it had;\n\
         `pointsman watch --since-start --path {key}{tenant}` shows what became of it;\n\
         `pointsman orders list {chain}` lists those of its chain that are on their way.",
        key = order.key
    )
}
