//! `pointsman orders add`.

use clap::Args;
use pointsman_api::NewOrderBody;
use pointsman_api::client::{Client, ClientError};
use pointsman_core::chain::{ChainNodeId, ChainPath, OrderKey};
use pointsman_core::event::Priority;
use pointsman_core::{Tenant, Timestamp};

use crate::args::parse_time;
use crate::emit::{parse_priority, read_value, validate_duration};
use crate::failure::{CommandResult, Failure};
use crate::output::Output;

/// Add an order to a chain and print its key
///
/// When this returns, the order is stored. It does not wait for the order's steps.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders add /publish/article,117 --value '{\"title\":\"Hello\"}'
  pointsman orders add /publish/article --value @article.json
      gets a new id
  pointsman orders add /publish/article,118 --node deploy --value -
  pointsman orders add /publish/article,119 --in 1h30m --priority 500
  pointsman orders add /publish/article --value @article.json --idempotency-key upload-7

An id can be used once: it is refused while its order runs and for a day after the order has ended. With \
--idempotency-key a command can be repeated after a lost response: it adds no second order and prints the same key.")]
pub(super) struct AddOrderCommand {
    /// Path of the chain and, after a comma, the order's id; without an id the order gets a new one
    #[arg(value_name = "PATH[,ID]", value_parser = validate_order_key_or_chain_path)]
    path_or_key: String,

    /// Value for the first step: JSON, `@file`, or `-` for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    value: Option<String>,

    /// Node to start at [default: the chain's first node]
    #[arg(long)]
    node: Option<ChainNodeId>,

    /// Start at this time: 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,

    /// Start after this delay: `90`, `90s`, `1h30m`, `PT90S`
    #[arg(long = "in", value_name = "DURATION", value_parser = validate_delay, allow_hyphen_values = true,
        conflicts_with = "at")]
    delay: Option<String>,

    /// Priority of its steps: 1 to 9000, higher first [default: 100]
    #[arg(long, value_name = "N", value_parser = parse_priority)]
    priority: Option<Priority>,

    /// Tenant of the order [default: the token's tenant, or `default`]
    #[arg(long)]
    tenant: Option<Tenant>,

    /// Repeating the command with the same key adds no second order and prints the first one
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Checks a delay and returns it unchanged. A negative delay gets an error message of its own.
fn validate_delay(text: &str) -> Result<String, String> {
    match text.strip_prefix('-') {
        Some(positive) if validate_duration(positive).is_ok() => {
            Err("an order cannot start in the past; without --in it starts immediately".into())
        }
        _ => validate_duration(text),
    }
}

/// Checks that a text is the key of an order or the path of a chain, and returns it unchanged.
fn validate_order_key_or_chain_path(text: &str) -> Result<String, String> {
    let checked = match text.contains(',') {
        true => text.parse::<OrderKey>().map(|_| ()),
        false => ChainPath::new(text).map(|_| ()),
    };
    checked.map(|()| text.into()).map_err(|e| e.to_string())
}

impl AddOrderCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        let body = NewOrderBody {
            path: self.path_or_key,
            value: self.value.as_deref().map(read_value).transpose()?,
            node: self.node.map(|node| node.to_string()),
            planned_at: self.at,
            delay: self.delay,
            priority: self.priority,
            tenant: self.tenant,
        };
        let added = client.add_orders(&body, self.idempotency_key.as_deref()).await;
        let added = added.map_err(|error| add_order_request_failure(&body, error))?;
        if output.is_json() {
            return Ok(output.print_json(&added)?);
        }
        added.orders.iter().try_for_each(|order| Ok(output.print_line(&order.path)?))
    }
}

fn add_order_request_failure(body: &NewOrderBody, error: ClientError) -> Failure {
    let path = &body.path;
    let chain = path.split(',').next().unwrap_or(path);
    let status = error.http_status();
    let is_about_node =
        matches!(&error, ClientError::ErrorResponse(refusal) if refusal.pointer.as_deref() == Some("/node"));
    let is_about_idempotency_key = matches!(&error, ClientError::ErrorResponse(refusal) if refusal.parameter.as_deref() == Some("Idempotency-Key"));
    let tenant = body.tenant.as_ref().map(|tenant| format!(" --tenant {tenant}")).unwrap_or_default();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.with_hint("`pointsman chains` lists the chains."),
        Some(409) if is_about_idempotency_key => {
            failure.with_hint("Use another idempotency key for another order.")
        }
        Some(409) => {
            // The id is that of a running order, or of one that ended within a day; these commands find both.
            failure.with_hint(format!(
                "`pointsman tasks --key {path}{tenant}` lists the steps of that order;\n\
                 `pointsman watch --since-start --path {path}{tenant}` prints its events.\n\
                 {OMIT_ID_HINT}"
            ))
        }
        Some(422) if is_about_node => {
            failure.with_hint(format!("`pointsman chains show {chain}` lists its nodes."))
        }
        Some(422) => failure.with_hint(OMIT_ID_HINT),
        _ => failure,
    }
}

const OMIT_ID_HINT: &str = "Without an id the order gets a new one.";
