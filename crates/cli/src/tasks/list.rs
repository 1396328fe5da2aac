//! `pointsman tasks list`.

use clap::Args;
use pointsman_api::TaskBody;
use pointsman_api::client::{Client, TaskQuery};
use pointsman_core::task::Status;
use pointsman_core::{EventId, Tenant, Timestamp};
use pointsman_server::config::nearest::hint;

use crate::args::moment;
use crate::failure::Result;
use crate::handlers;
use crate::output::{Output, day_and_time, short};

/// The filters of a list.
#[derive(Debug, Default, PartialEq, Args)]
pub(super) struct List {
    /// SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED
    #[arg(long, value_parser = status)]
    status: Option<String>,
    /// Only those of one handler
    #[arg(long, conflicts_with = "source")]
    handler: Option<String>,
    /// Only those of one source
    #[arg(long)]
    source: Option<String>,
    /// Only those of one of a source's collections, or of one type of event
    #[arg(long)]
    collection: Option<String>,
    /// Only those of one tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only those of one object
    #[arg(long)]
    key: Option<String>,
    /// Only those of one event
    #[arg(long, value_name = "EVENT_ID")]
    event: Option<EventId>,
    /// Created at or after this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    start: Option<Timestamp>,
    /// Created before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    end: Option<Timestamp>,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on where an earlier list ended, with what it said
    #[arg(long)]
    cursor: Option<String>,
}

impl List {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let query = TaskQuery {
            status: self.status,
            handler: self.handler.or(self.source),
            collection: self.collection,
            tenant: self.tenant,
            key: self.key,
            event: self.event.map(EventId::get),
            start: self.start.map(|time| time.to_string()),
            end: self.end.map(|time| time.to_string()),
            limit: self.limit,
            cursor: self.cursor,
        };
        let list = client.tasks(&query).await?;
        if output.is_json() {
            return Ok(output.json(&list)?);
        }
        if list.tasks.is_empty() {
            return nothing(client, output, query.handler.as_deref()).await;
        }
        let foreign = list.tasks.iter().any(|task| task.tenant != Tenant::default().as_str());
        let head = ["status", "created", "tries", "key", "error", "id"];
        let head: Vec<&str> = if foreign { [&["tenant"], &head[..]].concat() } else { head.to_vec() };
        let rows = list.tasks.iter().map(|task| row(task, foreign)).collect();
        output.table(&head, rows, "")?;
        if let Some(cursor) = &list.next {
            output.line(format!("There are more: --cursor {cursor}"))?;
        }
        Ok(())
    }
}

/// Nothing matched: perhaps because the name is mistyped.
async fn nothing(client: &Client, output: Output, handler: Option<&str>) -> Result {
    let unknown = match handler {
        Some(name) => handlers::unknown(client, name).await,
        None => None,
    };
    let more = unknown.map(|unknown| format!(" {unknown}")).unwrap_or_default();
    Ok(output.line(format!("No tasks.{more}"))?)
}

/// The public words in any case, or the labels of the lifecycle.
pub(super) fn status(text: &str) -> std::result::Result<String, String> {
    let public = ["SCHEDULED", "RUNNING", "SUCCESS", "FAILED", "CANCELED"];
    let labels = Status::ALL.map(Status::as_str);
    let public_one = public.into_iter().find(|word| word.eq_ignore_ascii_case(text));
    let wanted = public_one.or_else(|| labels.into_iter().find(|label| *label == text));
    wanted.map(Into::into).ok_or_else(|| {
        let near = hint(text, public.into_iter().chain(labels));
        let (public, labels) = (public.join(", "), labels.join(", "));
        format!("{text:?} is not a status; there are {public}, and {labels}{near}")
    })
}

fn row(task: &TaskBody, foreign: bool) -> Vec<String> {
    let tenant = foreign.then(|| task.tenant.clone());
    let rest = [
        task.status.clone(),
        day_and_time(&task.created_at),
        task.attempt.to_string(),
        short(task.key.as_deref().unwrap_or("-"), 32),
        short(task.error.as_deref().unwrap_or(""), 60),
        task.id.clone(),
    ];
    tenant.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_may_be_written_in_any_case() {
        let read = |text| status(text).unwrap();
        assert_eq!(["failed", "Running", "SCHEDULED"].map(read), ["FAILED", "RUNNING", "SCHEDULED"]);
        assert_eq!(["new", "missing"].map(read), ["new", "missing"]);
        assert!(status("faild").unwrap_err().ends_with("; did you mean `FAILED`?"));
    }
}
