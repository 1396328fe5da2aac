//! `pointsman tasks`: lists, shows, retries and cancels tasks.
//!
//! ```text
//!  list        tasks by filter
//!  show        one task with its attempts
//!  logs        the log of one task
//!  why         why a task waits
//!  control     retry and cancel
//!  redrive     retries many tasks
//!  resolve_id  finds a task by the end of its id
//!  similar_ids suggests tasks for an id that does not exist
//! ```

mod control;
mod list;
pub(crate) mod logs;
mod redrive;
mod resolve_id;
mod show;
mod similar_ids;
mod why;

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError};

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::output::Output;
use control::{TaskControl, retry_or_cancel_tasks};
use list::ListTasksCommand;

/// List, show, retry or cancel tasks
///
/// A task is one run of one handler, for an event, a collection or a step of an order. Without a subcommand, lists the
/// newest tasks.
///
/// Instead of a task's full id, you can give its last six or more characters if they are unique among the newest 1000
/// tasks.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman tasks
  pointsman tasks --status FAILED --handler index
  pointsman tasks show ID
  pointsman tasks why ID
  pointsman tasks logs -f ID
  pointsman tasks retry ID ID
  pointsman tasks redrive --handler index --dry-run")]
pub(crate) struct TasksCommand {
    #[command(subcommand)]
    subcommand: Option<TaskSubcommand>,
    #[command(flatten)]
    list: ListTasksCommand,
}

#[derive(Debug, Subcommand)]
enum TaskSubcommand {
    /// List tasks, newest first
    #[command(after_long_help = "\
Examples:
  pointsman tasks list --status FAILED --handler index
  pointsman tasks list --source shop --collection orders
  pointsman tasks list --key record:1 --limit 10
  pointsman tasks list --event 1478257655827000
  pointsman tasks list --start '2026-01-31 12:00:00' --end '2026-01-31 13:00:00'
  pointsman tasks list --status RUNNING -o json | jq -r '.tasks[].id'")]
    List(ListTasksCommand),
    /// Show one task with its attempts and result
    #[command(after_long_help = "\
Examples:
  pointsman tasks show ID
  pointsman tasks show ID -o json | jq .result")]
    Show {
        /// Id of the task, as printed by `list` and `watch`, or the end of it
        id: String,
    },
    Logs(logs::TaskLogsCommand),
    Why(why::WhyCommand),
    /// Retry failed or canceled tasks
    #[command(after_long_help = "\
Example:
  pointsman tasks retry ID ID

To retry many tasks by filter, see `pointsman tasks redrive`.")]
    Retry {
        /// Ids of the tasks
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Cancel tasks; a running attempt is stopped
    #[command(after_long_help = "\
Example:
  pointsman tasks cancel ID

A running command is killed; a pull worker is notified at its next heartbeat.")]
    Cancel {
        /// Ids of the tasks
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    Redrive(redrive::RedriveCommand),
}

impl TasksCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        // Clap's own check would also refuse the global options before a subcommand.
        if self.subcommand.is_some() && self.list != ListTasksCommand::default() {
            return Err(Failure::usage("put the filters after `list`, or leave the subcommand out"));
        }
        let (client, output) = (global.new_client()?, Output::new(global));
        match self.subcommand.unwrap_or(TaskSubcommand::List(self.list)) {
            TaskSubcommand::List(list) => list.run(&client, output).await,
            TaskSubcommand::Show { id } => {
                let id = resolve_id::resolve_task_id(&client, &id).await?;
                show::show_task(&client, output, &id).await
            }
            TaskSubcommand::Logs(logs) => logs.run(&client, output).await,
            TaskSubcommand::Why(why) => why.run(&client, output).await,
            TaskSubcommand::Retry { ids } => {
                retry_or_cancel_tasks(&client, output, &ids, TaskControl::Retry).await
            }
            TaskSubcommand::Cancel { ids } => {
                retry_or_cancel_tasks(&client, output, &ids, TaskControl::Cancel).await
            }
            TaskSubcommand::Redrive(redrive) => redrive.run(&client, output).await,
        }
    }
}

/// Converts the error of an API request about one task, with a hint.
pub(crate) async fn task_request_failure(client: &Client, id: &str, error: ClientError) -> Failure {
    let status = error.http_status();
    let failure = Failure::from(error);
    match status {
        Some(404) => {
            let near = similar_ids::suggest_similar_tasks(client, id)
                .await
                .map(|near| format!("{near}\n\n"))
                .unwrap_or_default();
            failure.with_hint(format!("{near}{TASK_ID_HINT}"))
        }
        Some(409) => failure.with_hint(format!("`pointsman tasks show {id}` prints its status.")),
        _ => failure,
    }
}

const TASK_ID_HINT: &str = "\
Ids look like handler_type_uuid or source_collection_uuid; `pointsman tasks list` prints them.
A task that ended long ago may have expired: see `history` in the configuration.";
