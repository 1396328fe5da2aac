//! `pointsman nodes`: lists the nodes of the store.

use clap::Args;
use pointsman_api::NodeBody;

use crate::args::GlobalOptions;
use crate::failure::CommandResult;
use crate::output::{Output, escape_and_shorten, escape_controls, format_timestamp};

/// List the nodes: processes that run tasks
///
/// STATE is `alive`, `gone` or `out of service`. A node that was stopped with SIGTERM or Ctrl-C stays listed as `gone`. A
/// node that crashed or was killed is `alive` until its lease expires, then `gone`; on SQLite it disappears from the list
/// when the next server starts. At most 100 nodes are listed.
///
/// LAST SEEN is its last heartbeat. CLOCK is the offset of its machine's clock from the store's time; a node that is off
/// by more than 30 s is out of service until the clocks agree again. RUNNING is the number of running tasks and of slots.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman nodes
  pointsman nodes -o json | jq -r '.nodes[] | select(.alive).name'")]
pub(crate) struct NodesCommand {}

impl NodesCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let (client, output) = (global.new_client()?, Output::new(global));
        let list = client.list_nodes().await?;
        if output.is_json() {
            return Ok(output.print_json(&list)?);
        }
        let rows = list.nodes.iter().map(node_row).collect();
        let head = ["node", "id", "state", "since", "last seen", "clock", "running", "handlers"];
        Ok(output.print_table(&head, rows, "No nodes.")?)
    }
}

fn node_state(node: &NodeBody) -> &'static str {
    match (node.alive, node.clock.out_of_service) {
        (false, _) => "gone",
        (true, true) => "out of service",
        (true, false) => "alive",
    }
}

fn node_row(node: &NodeBody) -> Vec<String> {
    vec![
        escape_controls(&node.name).into_owned(),
        node.id.to_string(),
        node_state(node).into(),
        format_timestamp(&node.joined_at),
        format_timestamp(&node.last_heartbeat_at),
        format!("{:+.1} s", node.clock.offset_ms as f64 / 1000.0),
        format!("{} of {}", node.running_task_count, node.slots),
        escape_and_shorten(&node.handlers.join(" "), 60),
    ]
}
