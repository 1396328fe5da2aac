//! `pointsman tasks list`.

use clap::Args;
use pointsman_api::TaskBody;
use pointsman_api::client::{Client, TaskQuery};
use pointsman_core::suggestion::did_you_mean_suffix;
use pointsman_core::task::TaskStatus;
use pointsman_core::{EventId, Tenant, Timestamp};

use crate::args::parse_time;
use crate::failure::CommandResult;
use crate::handlers;
use crate::output::{Output, escape_and_shorten, format_timestamp};

/// The filters of `tasks list`.
#[derive(Debug, Default, PartialEq, Args)]
pub(super) struct ListTasksCommand {
    /// Only tasks with this status: SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED
    #[arg(long, value_parser = parse_status)]
    status: Option<String>,
    /// Only tasks of this handler
    #[arg(long, conflicts_with = "source")]
    handler: Option<String>,
    /// Only tasks of this source
    #[arg(long)]
    source: Option<String>,
    /// Only tasks of this collection of a source, or of this event type
    #[arg(long)]
    collection: Option<String>,
    /// Only tasks of this tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only tasks of this object
    #[arg(long)]
    key: Option<String>,
    /// Only tasks of this event
    #[arg(long = "event", value_name = "EVENT_ID")]
    event_id: Option<EventId>,
    /// Only tasks created at or after this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    start: Option<Timestamp>,
    /// Only tasks created before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    end: Option<Timestamp>,
    /// Maximum number of results
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Continue after an earlier page, with the cursor that it printed
    #[arg(long)]
    cursor: Option<String>,
}

impl ListTasksCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        let query = TaskQuery {
            status: self.status,
            handler: self.handler.or(self.source),
            subject_name: self.collection,
            tenant: self.tenant,
            key: self.key,
            event_id: self.event_id.map(EventId::get),
            created_from: self.start.map(|time| time.to_string()),
            created_before: self.end.map(|time| time.to_string()),
            limit: self.limit,
            cursor: self.cursor,
        };
        let list = client.list_tasks(&query).await?;
        if output.is_json() {
            return Ok(output.print_json(&list)?);
        }
        if list.tasks.is_empty() {
            return print_no_tasks(client, output, query.handler.as_deref()).await;
        }
        let shows_tenant = list.tasks.iter().any(|task| task.tenant != Tenant::default().as_str());
        let head = ["status", "created", "tries", "key", "error", "id"];
        let head: Vec<&str> = if shows_tenant { [&["tenant"], &head[..]].concat() } else { head.to_vec() };
        let rows = list.tasks.iter().map(|task| task_row(task, shows_tenant)).collect();
        output.print_table(&head, rows, "")?;
        if let Some(cursor) = &list.next {
            output.print_line(format!("More results: --cursor {cursor}"))?;
        }
        Ok(())
    }
}

/// Reports an empty list, with a suggestion if the handler is mistyped.
async fn print_no_tasks(client: &Client, output: Output, handler: Option<&str>) -> CommandResult {
    let unknown = match handler {
        Some(name) => handlers::explain_unknown_handler(client, name).await,
        None => None,
    };
    let explanation = unknown.map(|unknown| format!(" {unknown}")).unwrap_or_default();
    Ok(output.print_line(format!("No tasks.{explanation}"))?)
}

/// Checks the value of `--status`: a public status in any case, or a state of the task lifecycle. Returns it as the API
/// spells it.
pub(super) fn parse_status(text: &str) -> Result<String, String> {
    let public = ["SCHEDULED", "RUNNING", "SUCCESS", "FAILED", "CANCELED"];
    let states = TaskStatus::ALL.map(TaskStatus::as_str);
    let public_status = public.into_iter().find(|status| status.eq_ignore_ascii_case(text));
    let status = public_status.or_else(|| states.into_iter().find(|state| *state == text));
    status.map(Into::into).ok_or_else(|| {
        let near = did_you_mean_suffix(text, public.into_iter().chain(states));
        let (public, states) = (public.join(", "), states.join(", "));
        format!("{text:?} is not a status; use {public}, or a state: {states}{near}")
    })
}

fn task_row(task: &TaskBody, shows_tenant: bool) -> Vec<String> {
    let tenant = shows_tenant.then(|| task.tenant.clone());
    let rest = [
        task.status.clone(),
        format_timestamp(&task.created_at),
        task.attempt.to_string(),
        escape_and_shorten(task.key.as_deref().unwrap_or("-"), 32),
        escape_and_shorten(task.error.as_deref().unwrap_or(""), 60),
        task.id.clone(),
    ];
    tenant.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_may_be_written_in_any_case() {
        let parse = |text| parse_status(text).unwrap();
        assert_eq!(["failed", "Running", "SCHEDULED"].map(parse), ["FAILED", "RUNNING", "SCHEDULED"]);
        assert_eq!(["new", "missing"].map(parse), ["new", "missing"]);
        assert!(parse_status("faild").unwrap_err().ends_with("; did you mean `FAILED`?"));
    }
}
