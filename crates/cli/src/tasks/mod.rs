//! `pointsman tasks`: what is to be done, what was done, and what came of it.
//!
//! ```text
//!  list       many of them
//!  show       one of them, with its attempts
//!  logs       what its handler wrote
//!  why        what keeps it from running
//!  redrive    running many again, carefully
//!  named      which task is meant by the end of an id
//!  near       which was perhaps meant, where there is none
//!  steer      retry and cancel
//! ```

mod list;
pub(crate) mod logs;
mod named;
mod near;
mod redrive;
mod show;
mod steer;
mod why;

use clap::{Args, Subcommand};
use pointsman_api::client::{Client, ClientError};

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::Output;
use list::List;
use steer::{Steer, steer};

/// List tasks, look into one, run them again, or end them
///
/// A task is one handler to be run once. Without a subcommand, lists the newest, as `list` does.
///
/// Where one task is meant, the last six or more characters of its id will do, if no other of the newest 1000 ends
/// so.
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
  pointsman tasks list --source shop --collection orders
  pointsman tasks list --key record:1 --limit 10
  pointsman tasks list --event 1478257655827000
  pointsman tasks list --start '2026-01-31 12:00:00' --end '2026-01-31 13:00:00'
  pointsman tasks list --status RUNNING -o json | jq -r '.tasks[].id'")]
    List(List),
    /// Show one task with its attempts and its result
    #[command(after_long_help = "\
Examples:
  pointsman tasks show ID
  pointsman tasks show ID -o json | jq .result")]
    Show {
        /// The task's id, as `list` and `watch` show it, or its end
        id: String,
    },
    Logs(logs::Logs),
    Why(why::Why),
    /// Run tasks again that ended in `error`
    #[command(after_long_help = "\
Example:
  pointsman tasks retry ID ID

For many at once, see `pointsman tasks redrive`.")]
    Retry {
        /// The tasks' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// End tasks; an attempt that runs is stopped
    #[command(after_long_help = "\
Example:
  pointsman tasks cancel ID

A command is ended at once, a worker that fetched the task is told at its next heartbeat.")]
    Cancel {
        /// The tasks' ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    Redrive(redrive::Redrive),
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
            Action::Show { id } => show::show(&client, output, &named::task(&client, &id).await?).await,
            Action::Logs(logs) => logs.run(&client, output).await,
            Action::Why(why) => why.run(&client, output).await,
            Action::Retry { ids } => steer(&client, output, &ids, Steer::Retry).await,
            Action::Cancel { ids } => steer(&client, output, &ids, Steer::Cancel).await,
            Action::Redrive(redrive) => redrive.run(&client, output).await,
        }
    }
}

/// A call about one task failed.
pub(crate) async fn about(client: &Client, id: &str, error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    match status {
        Some(404) => {
            let near = near::told(client, id).await.map(|near| format!("{near}\n\n")).unwrap_or_default();
            failure.hint(format!("{near}{ABOUT_IDS}"))
        }
        Some(409) => failure.hint(format!("`pointsman tasks show {id}` tells how it stands.")),
        _ => failure,
    }
}

const ABOUT_IDS: &str = "\
Ids look like handler_type_uuid or source_collection_uuid; `pointsman tasks list` shows them.
A task that ended long ago may have been forgotten: see `history` in the configuration.";
