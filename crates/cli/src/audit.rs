//! `pointsman audit`: lists the audit log.

use clap::Args;
use pointsman_api::AuditEntryBody;

use crate::args::GlobalOptions;
use crate::failure::CommandResult;
use crate::output::{Output, escape_and_shorten, escape_controls, format_timestamp};

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
