//! `pointsman chains`: the ways that orders travel, and what stops them.

use clap::{Args, Subcommand, ValueEnum};
use pointsman_api::client::{Client, ClientError};
use pointsman_api::{ChainBody, ChainDetail, ChainNodeBody, SetbackBody};
use pointsman_core::chain::{self, ChainPath, NodeId};

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::handlers::{RULE_HEAD, rule_rows};
use crate::output::{Output, counted};

/// List chains, look at one, stop and start it, or set what a node does
///
/// Without a subcommand, lists them all.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman chains
  pointsman chains show /publish/article
  pointsman chains stop /publish/article
  pointsman chains node /publish/article deploy stop
  pointsman chains -o json | jq '.chains[] | select(.state == \"stopped\") | .path'")]
pub(crate) struct Chains {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all chains
    #[command(after_long_help = "\
Examples:
  pointsman chains list
  pointsman chains list -o json | jq -r '.chains[] | [.path, .orders] | @tsv'")]
    List,
    /// Show one chain: its nodes, how many orders stand at each, and what holds it
    #[command(after_long_help = "\
Examples:
  pointsman chains show /publish/article
  pointsman chains show /publish/article -o json | jq '.nodes[] | {id, orders}'")]
    Show {
        /// The chain's path
        path: ChainPath,
    },
    /// Stop a chain
    ///
    /// When this returns, none of its orders begins a step; what runs already runs to its end. Orders are still
    /// added, and wait.
    #[command(after_long_help = "\
Example:
  pointsman chains stop /publish/article

Stopping is a state of the chain, told in the stream. To hold it back for one tenant, or with a reason, see \
`pointsman pause /publish/article`.")]
    Stop {
        /// The chain's path
        path: ChainPath,
    },
    /// Start a chain that was stopped
    #[command(after_long_help = "\
Example:
  pointsman chains start /publish/article")]
    Start {
        /// The chain's path
        path: ChainPath,
    },
    /// Set what a node does with the orders that come to it
    #[command(after_long_help = "\
Examples:
  pointsman chains node /publish/article deploy stop
      orders wait there
  pointsman chains node /publish/article deploy next_state
      orders go on to the next node without a step
  pointsman chains node /publish/article deploy process
      as usual")]
    Node {
        /// The chain's path
        path: ChainPath,
        /// The node's id
        node: NodeId,
        /// What it does
        action: NodeAction,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NodeAction {
    /// Run the step of each order: as usual
    Process,
    /// Let orders wait
    Stop,
    /// Let orders go on without a step
    #[value(name = "next_state")]
    NextState,
}

impl From<NodeAction> for chain::Action {
    fn from(action: NodeAction) -> Self {
        match action {
            NodeAction::Process => Self::Process,
            NodeAction::Stop => Self::Stop,
            NodeAction::NextState => Self::NextState,
        }
    }
}

impl Chains {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let (client, output) = (global.client()?, Output::new(global));
        match self.action.unwrap_or(Action::List) {
            Action::List => list(&client, output).await,
            Action::Show { path } => show(output, &client.chain(&path).await.map_err(about)?),
            Action::Stop { path } => {
                let chain = client.stop_chain(&path, true).await.map_err(about)?;
                told(output, &chain, &format!("{path} is stopped."))
            }
            Action::Start { path } => {
                let chain = client.stop_chain(&path, false).await.map_err(about)?;
                told(output, &chain, &format!("{path} is running."))
            }
            Action::Node { path, node, action } => {
                let action = action.into();
                let chain = client.set_node(&path, &node, action).await;
                let chain = chain.map_err(|error| about_node(&path, error))?;
                told(output, &chain, &format!("{node} of {path} is set to {}.", action.as_str()))
            }
        }
    }
}

async fn list(client: &Client, output: Output) -> Result {
    let list = client.chains().await?;
    if output.is_json() {
        return Ok(output.json(&list)?);
    }
    let rows = list.chains.iter().map(row).collect();
    let head = ["chain", "state", "nodes", "orders", "held by"];
    Ok(output.table(&head, rows, "No chains. They are configured under `chains:`.")?)
}

fn row(chain: &ChainBody) -> Vec<String> {
    let held: Vec<String> = chain.rules.iter().map(|rule| rule.kind.as_str().into()).collect();
    let state = if chain.defined { chain.state.clone() } else { "not defined".into() };
    let nodes = chain.nodes.iter().map(|node| match node.action {
        chain::Action::Process => node.id.clone(),
        action => format!("{}({})", node.id, action.as_str()),
    });
    let nodes = nodes.collect::<Vec<_>>().join(" ");
    vec![chain.path.clone(), state, nodes, number(chain.orders), held.join(" ")]
}

/// A token that is bound to a tenant is not told how many there are.
fn number(count: Option<u64>) -> String {
    count.map_or("-".into(), |count| count.to_string())
}

fn show(output: Output, detail: &ChainDetail) -> Result {
    if output.is_json() {
        return Ok(output.json(detail)?);
    }
    let chain = &detail.chain;
    output.facts(&[
        ("chain", chain.path.clone()),
        ("state", if chain.defined { chain.state.clone() } else { "not defined".into() }),
        ("orders", chain.orders.map(|count| count.to_string()).unwrap_or_default()),
    ])?;
    if !chain.rules.is_empty() {
        output.line("")?;
        output.table(&RULE_HEAD, rule_rows(&chain.rules), "")?;
    }
    output.line("")?;
    let head = ["node", "handler", "next", "on error", "setback", "action", "orders"];
    output.table(&head, chain.nodes.iter().map(node).collect(), "It has no nodes.")?;
    for stranded in &chain.stranded {
        output.line(format!(
            "{} at {}, a node that is gone: move them, or give the chain that node again",
            counted(stranded.orders, "order stands", "orders stand"),
            stranded.node
        ))?;
    }
    Ok(())
}

fn node(node: &ChainNodeBody) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let on_error = match (&node.on_error, node.end) {
        (None, false) => "(suspended)".into(),
        (on_error, _) => or_dash(on_error),
    };
    vec![
        node.id.clone(),
        node.handler.clone().unwrap_or_else(|| "(end)".into()),
        or_dash(&node.next),
        on_error,
        node.setback.as_ref().map(setback).unwrap_or_default(),
        if node.end { "-".into() } else { node.action.as_str().into() },
        number(node.orders),
    ]
}

/// How often and when a step is tried again: `5 times, 30 s to 300 s`.
fn setback(setback: &SetbackBody) -> String {
    let times = counted(setback.max.into(), "time", "times");
    let (first, most) = (setback.delay_seconds, setback.max_delay_seconds);
    match setback.backoff.as_str() {
        "list" => {
            let waits: Vec<String> = setback.delays_seconds.iter().map(|s| format!("{s} s")).collect();
            format!("{times}, after {}", waits.join(", "))
        }
        _ if first == most => format!("{times}, every {first} s"),
        _ => format!("{times}, {first} s to {most} s"),
    }
}

/// Says in a sentence how it stands now, and what else holds it.
fn told(output: Output, detail: &ChainDetail, said: &str) -> Result {
    if output.is_json() {
        return Ok(output.json(detail)?);
    }
    output.line(said)?;
    if detail.chain.rules.is_empty() {
        return Ok(());
    }
    output.line("")?;
    Ok(output.table(&RULE_HEAD, rule_rows(&detail.chain.rules), "")?)
}

/// A call about one chain failed.
pub(crate) fn about(error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.hint("`pointsman chains` lists the chains there are."),
        _ => failure,
    }
}

fn about_node(path: &ChainPath, error: ClientError) -> Failure {
    let status = error.status();
    match status {
        Some(422) | Some(404) => {
            Failure::from(error).hint(format!("`pointsman chains show {path}` lists its nodes."))
        }
        _ => about(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setbacks_are_told_in_a_few_words() {
        let body = |backoff: &str, delays: &[f64]| SetbackBody {
            max: 5,
            backoff: backoff.into(),
            delay_seconds: 30.0,
            max_delay_seconds: if backoff == "fixed" { 30.0 } else { 300.0 },
            delays_seconds: delays.to_vec(),
        };
        assert_eq!(setback(&body("fixed", &[])), "5 times, every 30 s");
        assert_eq!(setback(&body("exponential", &[])), "5 times, 30 s to 300 s");
        assert_eq!(setback(&body("list", &[1.0, 5.0])), "5 times, after 1 s, 5 s");
        assert_eq!(setback(&SetbackBody { max: 1, ..body("fixed", &[]) }), "1 time, every 30 s");
    }

    #[test]
    fn a_step_without_on_error_suspends() {
        let step = ChainNodeBody {
            id: "render".into(),
            end: false,
            handler: Some("render".into()),
            next: Some("done".into()),
            on_error: None,
            setback: None,
            action: chain::Action::Process,
            orders: Some(2),
        };
        assert_eq!(node(&step), ["render", "render", "done", "(suspended)", "", "process", "2"]);
        let end = ChainNodeBody { id: "done".into(), end: true, handler: None, next: None, ..step };
        assert_eq!(node(&end), ["done", "(end)", "-", "-", "", "-", "2"]);
    }
}
