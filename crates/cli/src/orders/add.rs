//! `pointsman orders add`.

use clap::Args;
use pointsman_api::NewOrderBody;
use pointsman_api::client::{Client, ClientError};
use pointsman_core::chain::{ChainPath, NodeId, OrderKey};
use pointsman_core::event::Priority;
use pointsman_core::{Tenant, Timestamp};

use crate::args::moment;
use crate::emit::{duration, priority, value};
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Add an order to a chain, and print its name
///
/// When this returns, the order is on disk and stands at its node. It does not wait for steps.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders add /publish/article,117 --value '{\"title\":\"Hello\"}'
  pointsman orders add /publish/article --value @article.json
      gets a fresh id
  pointsman orders add /publish/article,118 --node deploy --value -
  pointsman orders add /publish/article,119 --in 1h30m --priority 500
  pointsman orders add /publish/article --value @article.json --idempotency-key upload-7

An id runs once: while an order of it is on its way, and for a day after it has ended, it is refused. With \
--idempotency-key a command whose answer was lost can be repeated: it adds nothing and prints the same name.")]
pub(super) struct Add {
    /// The chain's path, and the order's id after a comma; without an id it gets a fresh one
    #[arg(value_name = "PATH[,ID]", value_parser = named)]
    order: String,

    /// What the first step is given: JSON, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    value: Option<String>,

    /// Where it begins, rather than at the chain's first node
    #[arg(long)]
    node: Option<NodeId>,

    /// Begin at this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = moment)]
    at: Option<Timestamp>,

    /// Begin after this time: `90`, `90s`, `1h30m`, `PT90S`
    #[arg(long = "in", value_name = "DURATION", value_parser = later, allow_hyphen_values = true,
        conflicts_with = "at")]
    delay: Option<String>,

    /// How urgent its steps are: 1 to 9000, higher first [default: 100]
    #[arg(long, value_name = "N", value_parser = priority)]
    priority: Option<Priority>,

    /// Tenant of the order; if not given, the token's tenant, or `default`
    #[arg(long)]
    tenant: Option<Tenant>,

    /// A repeat with the same key and content adds nothing and prints the same order
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// How long an order waits. The command line takes what begins with a hyphen too, so that it can be told plainly.
fn later(text: &str) -> std::result::Result<String, String> {
    match text.strip_prefix('-') {
        Some(ago) if duration(ago).is_ok() => {
            Err("an order cannot begin in the past; without --in it begins at once".into())
        }
        _ => duration(text),
    }
}

/// An order, or a chain.
fn named(text: &str) -> std::result::Result<String, String> {
    let checked = match text.contains(',') {
        true => text.parse::<OrderKey>().map(|_| ()),
        false => ChainPath::new(text).map(|_| ()),
    };
    checked.map(|()| text.into()).map_err(|e| e.to_string())
}

impl Add {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let body = NewOrderBody {
            path: self.order,
            value: self.value.as_deref().map(value).transpose()?,
            node: self.node.map(|node| node.to_string()),
            at: self.at,
            delay: self.delay,
            priority: self.priority,
            tenant: self.tenant,
        };
        let added = client.add_orders(&body, self.idempotency_key.as_deref()).await;
        let added = added.map_err(|error| not_added(&body, error))?;
        if output.is_json() {
            return Ok(output.json(&added)?);
        }
        added.orders.iter().try_for_each(|order| Ok(output.line(&order.path)?))
    }
}

fn not_added(body: &NewOrderBody, error: ClientError) -> Failure {
    let path = &body.path;
    let (chain, status) = (path.split(',').next().unwrap_or(path), error.status());
    let is_of_node =
        matches!(&error, ClientError::Refused(refusal) if refusal.pointer.as_deref() == Some("/node"));
    let is_of_key = matches!(&error, ClientError::Refused(refusal) if refusal.parameter.as_deref() == Some("Idempotency-Key"));
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.hint("`pointsman chains` lists the chains there are."),
        Some(409) if is_of_key => failure.hint("Use another idempotency key for another order."),
        Some(409) => {
            failure.hint(format!("`pointsman orders show {path}` shows one that is on its way. {FRESH}"))
        }
        Some(422) if is_of_node => failure.hint(format!("`pointsman chains show {chain}` lists its nodes.")),
        Some(422) => failure.hint(FRESH),
        _ => failure,
    }
}

const FRESH: &str = "Leave the id out, and the order gets a fresh one.";
