//! `pointsman nodes` and `pointsman audit`: who is alive, and who changed what.

use clap::Args;
use pointsman_api::{DeedBody, NodeBody};

use crate::args::Global;
use crate::failure::Result;
use crate::output::{Output, clean, day_and_time, short};

/// List the processes that run tasks
///
/// Nodes that are alive, and those that were last heard from. `clock` is the offset of the node's machine from the
/// store's time; a node that is off by more than 30 s is out of service until it agrees again.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman nodes
  pointsman nodes -o json | jq -r '.nodes[] | select(.alive).name'")]
pub(crate) struct Nodes {}

impl Nodes {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let (client, output) = (global.client()?, Output::new(global));
        let list = client.nodes().await?;
        if output.is_json() {
            return Ok(output.json(&list)?);
        }
        let rows = list.nodes.iter().map(node).collect();
        let head = ["node", "id", "state", "since", "heard", "clock", "running", "handlers"];
        Ok(output.table(&head, rows, "No nodes.")?)
    }
}

fn state(node: &NodeBody) -> &'static str {
    match (node.alive, node.clock.out_of_service) {
        (false, _) => "gone",
        (true, true) => "out of service",
        (true, false) => "alive",
    }
}

fn node(node: &NodeBody) -> Vec<String> {
    vec![
        clean(&node.name).into_owned(),
        node.id.to_string(),
        state(node).into(),
        day_and_time(&node.joined_at),
        day_and_time(&node.heard_at),
        format!("{:+.1} s", node.clock.offset_ms as f64 / 1000.0),
        format!("{} of {}", node.running, node.slots),
        short(&node.handlers.join(" "), 60),
    ]
}

/// List who changed what, the newest first
///
/// Pauses and blocks, retries and cancels, redrives, runs and adoptions, each with the name of the token.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman audit
  pointsman audit --limit 20
  pointsman audit -o json | jq -r '.deeds[] | select(.by == \"ops\")'")]
pub(crate) struct Audit {
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on where an earlier list ended, with what it said
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    before: Option<i64>,
}

fn number(text: &str) -> std::result::Result<i64, &'static str> {
    text.parse().map_err(|_| "it is the number that an earlier list ended with, not a time")
}

impl Audit {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let (client, output) = (global.client()?, Output::new(global));
        let list = client.audit(self.before, self.limit).await?;
        if output.is_json() {
            return Ok(output.json(&list)?);
        }
        let rows = list.deeds.iter().map(deed).collect();
        output.table(&["time", "by", "did", "to", "detail"], rows, "Nobody has changed anything.")?;
        if let Some(next) = list.next {
            output.line(format!("There are more: --before {next}"))?;
        }
        Ok(())
    }
}

fn deed(deed: &DeedBody) -> Vec<String> {
    vec![
        day_and_time(&deed.time),
        clean(&deed.by).into_owned(),
        deed.action.clone(),
        clean(&deed.what).into_owned(),
        short(&deed.detail, 80),
    ]
}
