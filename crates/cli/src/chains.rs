//! `pointsman chains`: lists, stops and starts chains, and sets the action of nodes.

use clap::{Args, Subcommand, ValueEnum};
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{ChainBody, ChainDetail, ChainNodeBody, SetbackPolicyBody};
use pointsman_core::chain::{self, ChainNodeId, ChainPath};

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::handlers::{RULE_COLUMNS, rule_rows};
use crate::output::{Output, format_count};

/// List, show, stop or start chains, or set the action of a node
///
/// Without a subcommand, lists all chains.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman chains
  pointsman chains show /publish/article
  pointsman chains stop /publish/article
  pointsman chains node /publish/article deploy stop
  pointsman chains -o json | jq '.chains[] | select(.state == \"stopped\") | .path'")]
pub(crate) struct ChainsCommand {
    #[command(subcommand)]
    subcommand: Option<ChainSubcommand>,
}

#[derive(Debug, Subcommand)]
enum ChainSubcommand {
    /// List all chains
    #[command(after_long_help = "\
Examples:
  pointsman chains list
  pointsman chains list -o json | jq -r '.chains[] | [.path, .orders] | @tsv'")]
    List,
    /// Show one chain with its nodes, their orders and its rules
    #[command(after_long_help = "\
Examples:
  pointsman chains show /publish/article
  pointsman chains show /publish/article -o json | jq '.nodes[] | {id, orders}'")]
    Show {
        /// Path of the chain
        path: ChainPath,
    },
    /// Stop a chain
    ///
    /// When this returns, no order of the chain starts a step; running steps finish. New orders are accepted and wait.
    #[command(after_long_help = "\
Example:
  pointsman chains stop /publish/article

Stopping is a state of the chain and recorded as an event. To pause a chain for one tenant or with a reason, use \
`pointsman pause /publish/article`.")]
    Stop {
        /// Path of the chain
        path: ChainPath,
    },
    /// Start a stopped chain
    #[command(after_long_help = "\
Example:
  pointsman chains start /publish/article")]
    Start {
        /// Path of the chain
        path: ChainPath,
    },
    /// Set the action of a node
    #[command(after_long_help = "\
Examples:
  pointsman chains node /publish/article deploy stop
      orders wait there
  pointsman chains node /publish/article deploy next_state
      orders skip this step and move to the next node
  pointsman chains node /publish/article deploy process
      orders run the step (the default)")]
    #[command(name = "node")]
    SetNodeAction {
        /// Path of the chain
        path: ChainPath,
        /// Id of the node
        node: ChainNodeId,
        /// Action
        action: ChainNodeActionArg,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ChainNodeActionArg {
    /// Orders run the step (the default)
    Process,
    /// Orders wait at the node
    Stop,
    /// Orders skip the step
    #[value(name = "next_state")]
    NextState,
}

impl From<ChainNodeActionArg> for chain::ChainNodeAction {
    fn from(action: ChainNodeActionArg) -> Self {
        match action {
            ChainNodeActionArg::Process => Self::Process,
            ChainNodeActionArg::Stop => Self::Stop,
            ChainNodeActionArg::NextState => Self::NextState,
        }
    }
}

impl ChainsCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let (client, output) = (global.new_client()?, Output::new(global));
        match self.subcommand.unwrap_or(ChainSubcommand::List) {
            ChainSubcommand::List => list_chains(&client, output).await,
            ChainSubcommand::Show { path } => {
                print_chain(output, &client.read_chain(&path).await.map_err(chain_request_failure)?)
            }
            ChainSubcommand::Stop { path } => {
                let chain = client.set_chain_stopped(&path, true).await.map_err(chain_request_failure)?;
                print_changed_chain(output, &chain, &format!("{path} is stopped."))
            }
            ChainSubcommand::Start { path } => {
                let chain = client.set_chain_stopped(&path, false).await.map_err(chain_request_failure)?;
                print_changed_chain(output, &chain, &format!("{path} is running."))
            }
            ChainSubcommand::SetNodeAction { path, node, action } => {
                let action = action.into();
                let chain = client.set_chain_node_action(&path, &node, action).await;
                let chain = chain.map_err(|error| chain_node_request_failure(&path, error))?;
                print_changed_chain(
                    output,
                    &chain,
                    &format!("Node {node} of {path} is set to {}.", action.as_str()),
                )
            }
        }
    }
}

async fn list_chains(client: &Client, output: Output) -> CommandResult {
    let list = client.list_chains().await?;
    if output.is_json() {
        return Ok(output.print_json(&list)?);
    }
    let rows = list.chains.iter().map(chain_row).collect();
    let head = ["chain", "state", "nodes", "orders", "rules"];
    Ok(output.print_table(&head, rows, "No chains. Configure them under `chains:`.")?)
}

fn chain_row(chain: &ChainBody) -> Vec<String> {
    let rules: Vec<String> = chain.rules.iter().map(|rule| rule.kind.as_str().into()).collect();
    let state = if chain.defined { chain.state.clone() } else { "not defined".into() };
    let nodes = chain.nodes.iter().map(|node| match node.action {
        chain::ChainNodeAction::Process => node.id.clone(),
        action => format!("{}({})", node.id, action.as_str()),
    });
    let nodes = nodes.collect::<Vec<_>>().join(" ");
    vec![chain.path.clone(), state, nodes, format_order_count(chain.order_count), rules.join(" ")]
}

/// Formats the number of orders. It is `-` for a token bound to a tenant, which does not get the number.
fn format_order_count(count: Option<u64>) -> String {
    count.map_or("-".into(), |count| count.to_string())
}

fn print_chain(output: Output, detail: &ChainDetail) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(detail)?);
    }
    let chain = &detail.chain;
    output.print_fields(&[
        ("chain", chain.path.clone()),
        ("state", if chain.defined { chain.state.clone() } else { "not defined".into() }),
        ("orders", chain.order_count.map(|count| count.to_string()).unwrap_or_default()),
    ])?;
    if !chain.rules.is_empty() {
        output.print_line("")?;
        output.print_table(&RULE_COLUMNS, rule_rows(&chain.rules), "")?;
    }
    output.print_line("")?;
    let head = ["node", "handler", "next", "on error", "retries", "action", "orders"];
    output.print_table(&head, chain.nodes.iter().map(chain_node_row).collect(), "The chain has no nodes.")?;
    for stranded in &chain.order_counts_at_removed_nodes {
        output.print_line(format!(
            "{} at node {}, which is not in the chain: move them, or add the node again",
            format_count(stranded.order_count, "order is", "orders are"),
            stranded.node
        ))?;
    }
    Ok(())
}

fn chain_node_row(node: &ChainNodeBody) -> Vec<String> {
    let text_or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let on_error = match (&node.on_error, node.is_end) {
        (None, false) => "(suspend)".into(),
        (on_error, _) => text_or_dash(on_error),
    };
    vec![
        node.id.clone(),
        node.handler.clone().unwrap_or_else(|| "(end)".into()),
        text_or_dash(&node.next),
        on_error,
        node.setback.as_ref().map(describe_setback).unwrap_or_default(),
        if node.is_end { "-".into() } else { node.action.as_str().into() },
        format_order_count(node.order_count),
    ]
}

/// How often and after which delays a failed step is retried: `5 times, 30 s to 300 s`.
fn describe_setback(setback: &SetbackPolicyBody) -> String {
    let times = format_count(setback.max_retries.into(), "time", "times");
    let (first, max) = (setback.delay_seconds, setback.max_delay_seconds);
    match setback.backoff.as_str() {
        "list" => {
            let delays: Vec<String> = setback.delays_seconds.iter().map(|s| format!("{s} s")).collect();
            format!("{times}, after {}", delays.join(", "))
        }
        _ if first == max => format!("{times}, every {first} s"),
        _ => format!("{times}, {first} s to {max} s"),
    }
}

/// Prints the change as a sentence, and the rules of the chain.
fn print_changed_chain(output: Output, detail: &ChainDetail, message: &str) -> CommandResult {
    if output.is_json() {
        return Ok(output.print_json(detail)?);
    }
    output.print_line(message)?;
    if detail.chain.rules.is_empty() {
        return Ok(());
    }
    output.print_line("")?;
    Ok(output.print_table(&RULE_COLUMNS, rule_rows(&detail.chain.rules), "")?)
}

/// Converts the error of an API request about one chain, with a hint.
pub(crate) fn chain_request_failure(error: ClientError) -> Failure {
    let status = error.http_status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.with_hint("`pointsman chains` lists the chains."),
        _ => failure,
    }
}

fn chain_node_request_failure(path: &ChainPath, error: ClientError) -> Failure {
    let status = error.http_status();
    match status {
        Some(422) | Some(404) => {
            Failure::from(error).with_hint(format!("`pointsman chains show {path}` lists its nodes."))
        }
        _ => chain_request_failure(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setback_policies_are_described() {
        let body = |backoff: &str, delays: &[f64]| SetbackPolicyBody {
            max_retries: 5,
            backoff: backoff.into(),
            delay_seconds: 30.0,
            max_delay_seconds: if backoff == "fixed" { 30.0 } else { 300.0 },
            delays_seconds: delays.to_vec(),
        };
        assert_eq!(describe_setback(&body("fixed", &[])), "5 times, every 30 s");
        assert_eq!(describe_setback(&body("exponential", &[])), "5 times, 30 s to 300 s");
        assert_eq!(describe_setback(&body("list", &[1.0, 5.0])), "5 times, after 1 s, 5 s");
        assert_eq!(
            describe_setback(&SetbackPolicyBody { max_retries: 1, ..body("fixed", &[]) }),
            "1 time, every 30 s"
        );
    }

    #[test]
    fn a_chain_node_without_on_error_is_shown_as_suspending() {
        let step = ChainNodeBody {
            id: "render".into(),
            is_end: false,
            handler: Some("render".into()),
            next: Some("done".into()),
            on_error: None,
            setback: None,
            action: chain::ChainNodeAction::Process,
            order_count: Some(2),
        };
        assert_eq!(chain_node_row(&step), ["render", "render", "done", "(suspend)", "", "process", "2"]);
        let end = ChainNodeBody { id: "done".into(), is_end: true, handler: None, next: None, ..step };
        assert_eq!(chain_node_row(&end), ["done", "(end)", "-", "-", "", "-", "2"]);
    }
}
