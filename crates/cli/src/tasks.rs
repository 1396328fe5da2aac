//! `pointsman tasks`: what is to be done, what was done, and what came of it.

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError, TaskQuery};
use pointsman_api::{AttemptBody, LogBody, TaskBody, TaskDetail};
use pointsman_core::Timestamp;

use crate::args::Global;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, clean, clock, counted, day_and_time, short};

/// List tasks, look into one, run one again, or end one
///
/// A task is one handler to be run once. Without a subcommand, lists the newest, as `list` does.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman tasks
  pointsman tasks --status FAILED --handler index
  pointsman tasks show ID
  pointsman tasks logs -f ID
  pointsman tasks retry ID ID")]
pub(crate) struct Tasks {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List tasks, the newest first
    #[command(after_long_help = "\
Examples:
  pointsman tasks list --status FAILED --handler index
  pointsman tasks list --key record:1 --limit 10
  pointsman tasks list --start 2026-01-31T12:00:00Z --end 2026-01-31T13:00:00Z
  pointsman tasks list --status RUNNING -o json | jq -r '.tasks[].id'")]
    List(List),
    /// Show one task with its attempts and its result
    Show {
        /// The task's id, as `list` and `watch` show it
        id: String,
    },
    /// Print what a task's handler wrote
    Logs {
        /// The task's id
        id: String,
        /// Go on until the task has ended
        #[arg(short, long)]
        follow: bool,
    },
    /// Run tasks again that ended in `error`
    Retry {
        /// The tasks' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// End tasks; an attempt that runs is stopped
    Cancel {
        /// The tasks' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// The filters of a list.
#[derive(Debug, Default, PartialEq, Args)]
struct List {
    /// SCHEDULED, RUNNING, SUCCESS, FAILED or CANCELED
    #[arg(long)]
    status: Option<String>,
    /// Only those of one handler
    #[arg(long)]
    handler: Option<String>,
    /// Only those of one tenant
    #[arg(long)]
    tenant: Option<String>,
    /// Only those of one object
    #[arg(long)]
    key: Option<String>,
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

impl Tasks {
    pub(crate) async fn run(self, global: &Global) -> Result {
        // Clap's own rule for this would also refuse the common options before a subcommand.
        if self.action.is_some() && self.list != List::default() {
            return Err(Failure::usage(
                "the filters of a list go after `list`, or stand without a subcommand",
            ));
        }
        let (client, output) = (global.client()?, Output::new(global));
        match self.action.unwrap_or(Action::List(self.list)) {
            Action::List(list) => list.run(&client, output).await,
            Action::Show { id } => show(&client, output, &id).await,
            Action::Logs { id, follow: true } => follow(&client, output, &id).await,
            Action::Logs { id, follow: false } => logs(&client, output, &id).await,
            Action::Retry { ids } => steer(&client, output, &ids, Steer::Retry).await,
            Action::Cancel { ids } => steer(&client, output, &ids, Steer::Cancel).await,
        }
    }
}

impl List {
    async fn run(self, client: &Client, output: Output) -> Result {
        let query = TaskQuery {
            status: self.status,
            handler: self.handler,
            tenant: self.tenant,
            key: self.key,
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

async fn show(client: &Client, output: Output, id: &str) -> Result {
    let detail = client.task(id).await.map_err(|e| about(id, e))?;
    if output.is_json() {
        return Ok(output.json(&detail)?);
    }
    output.facts(&facts(&detail))?;
    let rows: Vec<_> = detail.attempts.iter().map(attempt).collect();
    if !rows.is_empty() {
        output.line("")?;
        output.table(&["attempt", "started", "ended", "end", "error"], rows, "")?;
    }
    Ok(())
}

fn facts(detail: &TaskDetail) -> Vec<(&'static str, String)> {
    let task = &detail.task;
    let retries = counted(task.retries.into(), "retry", "retries");
    vec![
        ("task", task.id.clone()),
        ("status", format!("{} ({})", task.status, task.state)),
        ("error", task.error.clone().unwrap_or_default()),
        ("handler", task.handler.clone()),
        ("type", task.collection.clone()),
        ("key", task.key.clone().unwrap_or_default()),
        ("tenant", task.tenant.clone()),
        ("event", task.event_id.map(|id| id.to_string()).unwrap_or_default()),
        ("priority", task.priority.to_string()),
        ("attempts", format!("{} ({retries} used)", task.attempt)),
        ("created", task.created_at.clone()),
        ("not before", task.delay_until.clone()),
        ("started", task.started_at.clone()),
        ("finished", task.finished_at.clone()),
        ("result", detail.result.as_ref().map(|json| json.as_str().to_owned()).unwrap_or_default()),
    ]
}

fn attempt(attempt: &AttemptBody) -> Vec<String> {
    // The wire has one word for each end; reading it from there keeps it the same everywhere.
    let end = serde_json::to_value(attempt.end).ok();
    vec![
        attempt.number.to_string(),
        day_and_time(&attempt.started_at),
        day_and_time(&attempt.ended_at),
        end.as_ref().and_then(|end| end.as_str()).unwrap_or("-").to_owned(),
        clean(attempt.error.as_deref().unwrap_or("")).into_owned(),
    ]
}

async fn logs(client: &Client, output: Output, id: &str) -> Result {
    let list = client.logs(id).await.map_err(|e| about(id, e))?;
    list.logs.iter().try_for_each(|line| log_line(output, line))
}

async fn follow(client: &Client, output: Output, id: &str) -> Result {
    let mut frames = client.follow_logs(id).await.map_err(|e| about(id, e))?;
    while let Some(frame) = frames.next().await? {
        match frame.event.as_str() {
            "log" => log_line(output, &serde_json::from_str(&frame.data)?)?,
            // The task has ended; `show` says more about how.
            "end" => return Ok(()),
            _ => {}
        }
    }
    Err(Failure::new(Exit::Unavailable, "the server ended the stream before the task had ended")
        .hint("It may have been stopped. Try again in a moment; the log is kept."))
}

fn log_line(output: Output, line: &LogBody) -> Result {
    if output.is_json() {
        return Ok(output.json(line)?);
    }
    let message = clean(&line.message);
    let message = match line.level {
        pointsman_core::task::Level::Info => message,
        pointsman_core::task::Level::Error => output.paint.bad(&message).into_owned().into(),
    };
    Ok(output.line(format!("{}  {message}", output.paint.dim(clock(&line.time))))?)
}

#[derive(Clone, Copy)]
enum Steer {
    Retry,
    Cancel,
}

/// Retries or ends tasks, one after the other, and shows what each is now.
async fn steer(client: &Client, output: Output, ids: &[String], how: Steer) -> Result {
    for id in ids {
        let done = match how {
            Steer::Retry => client.retry(id).await,
            Steer::Cancel => client.cancel(id).await,
        };
        let detail = done.map_err(|e| about(id, e))?;
        if output.is_json() {
            output.json(&detail)?;
        } else {
            output.line(format!("{}  {}", detail.task.status, detail.task.id))?;
        }
    }
    Ok(())
}

/// A call about one task failed.
fn about(id: &str, error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.hint(format!(
            "There is no task {id:?}. Ids look like handler_type_uuid; `pointsman tasks list` shows them.\n\
             A task that ended long ago may have been forgotten: see `history` in the configuration."
        )),
        Some(409) => failure.hint(format!("`pointsman tasks show {id}` tells how it stands.")),
        _ => failure,
    }
}
