//! `pointsman tasks list`.

use clap::Args;
use pointsman_api::TaskBody;
use pointsman_api::client::{Client, TaskQuery};
use pointsman_core::{EventId, Timestamp};

use crate::failure::Result;
use crate::output::{Output, day_and_time, short};

/// The filters of a list.
#[derive(Debug, Default, PartialEq, Args)]
pub(super) struct List {
    /// SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED
    #[arg(long)]
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
    #[arg(long, value_name = "TIME")]
    start: Option<Timestamp>,
    /// Created before this time
    #[arg(long, value_name = "TIME")]
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
        let rows = list.tasks.iter().map(row).collect();
        output.table(&["status", "created", "tries", "key", "id", "error"], rows, "No tasks.")?;
        if let Some(cursor) = &list.next {
            output.line(format!("There are more: --cursor {cursor}"))?;
        }
        Ok(())
    }
}

fn row(task: &TaskBody) -> Vec<String> {
    vec![
        task.status.clone(),
        day_and_time(&task.created_at),
        task.attempt.to_string(),
        short(task.key.as_deref().unwrap_or("-"), 32),
        task.id.clone(),
        short(task.error.as_deref().unwrap_or(""), 60),
    ]
}
