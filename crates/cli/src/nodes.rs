//! `pointsman nodes` and `pointsman audit`: the nodes of the store, and the audit log.

use clap::Args;
use pointsman_api::{AuditEntryBody, NodeBody};

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

/// List the audit log, newest first
///
/// Records rules, retries, cancels, redrives, runs, adoptions and changes of orders and chains, each with the name of the
/// token.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman audit
  pointsman audit --limit 20
  pointsman audit -o json | jq -r '.entries[] | select(.by == \"ops\")'")]
pub(crate) struct AuditCommand {
    /// Maximum number of results
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Continue after an earlier page, with the number that it printed
    #[arg(long, value_name = "NUMBER", value_parser = parse_audit_cursor)]
    before: Option<i64>,
}

fn parse_audit_cursor(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "expected the number printed at the end of an earlier page, not a time")
}

impl AuditCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let (client, output) = (global.new_client()?, Output::new(global));
        let list = client.list_audit_entries(self.before, self.limit).await?;
        if output.is_json() {
            return Ok(output.print_json(&list)?);
        }
        let rows = list.entries.iter().map(audit_row).collect();
        output.print_table(
            &["time", "token", "action", "target", "detail"],
            rows,
            "The audit log is empty.",
        )?;
        if let Some(next) = list.next {
            output.print_line(format!("More results: --before {next}"))?;
        }
        Ok(())
    }
}

fn audit_row(entry: &AuditEntryBody) -> Vec<String> {
    vec![
        format_timestamp(&entry.time),
        escape_controls(&entry.actor).into_owned(),
        entry.action.clone(),
        escape_controls(&entry.target).into_owned(),
        escape_and_shorten(&entry.detail, 80),
    ]
}
