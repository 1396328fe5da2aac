//! `pointsman run`: runs a source's collection now.

use std::pin::pin;
use std::time::Duration;

use clap::Args;
use pointsman_api::client::{Client, ClientError, LogQuery};
use pointsman_core::SourceCollection;

use crate::args::GlobalOptions;
use crate::failure::{CommandResult, Failure};
use crate::output::{Output, print_to_stderr};
use crate::tasks;

/// Run a source's collection now
///
/// Queues a task and prints its id. A collection has one task at a time: if one is already queued or running, its id
/// is printed.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman run shop/orders
  pointsman run shop/orders --wait
  pointsman run shop/orders -o json | jq -r .task_id

With --wait, the log is printed live; the exit code is 0 if the task succeeded, else 1.")]
pub(crate) struct RunCommand {
    /// Source and collection
    #[arg(value_name = "SOURCE/COLLECTION")]
    source_collection: SourceCollection,
    /// Follow the log until the task ends; fail if the task fails
    #[arg(short, long)]
    wait: bool,
    /// Repeating the command with the same key queues no second task and prints the first id
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl RunCommand {
    pub(crate) async fn run(self, global: &GlobalOptions) -> CommandResult {
        let (client, output) = (global.new_client()?, Output::new(global));
        let (source, collection) =
            (self.source_collection.source.as_str(), self.source_collection.collection.as_str());
        let key = self.idempotency_key.as_deref();
        let (run, created) =
            client.run_collection(source, collection, key).await.map_err(run_collection_request_failure)?;
        if output.is_json() {
            output.print_json(&serde_json::json!({"task_id": run.task_id, "created": created}))?;
        } else {
            if !created {
                print_to_stderr(match key {
                    Some(_) => "A task is already queued, or the key was used before.",
                    None => "A task is already queued or running.",
                });
            }
            output.print_line(&run.task_id)?;
        }
        match self.wait {
            true => follow_task_until_ended(&client, output, &run.task_id).await,
            false => Ok(()),
        }
    }
}

/// If the task has not ended after this time, the reason why it waits is printed.
const EXPLAIN_WAITING_AFTER: Duration = Duration::from_secs(2);

/// Prints the task's log until the task ends, and returns an error unless it succeeded.
async fn follow_task_until_ended(client: &Client, output: Output, id: &str) -> CommandResult {
    let query = LogQuery::default();
    let mut follow = pin!(tasks::logs::follow_log(client, output, id, &query));
    tokio::select! {
        followed = &mut follow => followed?,
        () = tokio::time::sleep(EXPLAIN_WAITING_AFTER) => {
            print_waiting_reason(client, id).await;
            follow.await?;
        }
    }
    let detail = match client.read_task(id).await {
        Ok(detail) => detail,
        Err(error) => return Err(tasks::task_request_failure(client, id, error).await),
    };
    let (status, error) = (detail.task.status.as_str(), detail.task.error.as_deref());
    match status {
        "SUCCESS" => Ok(()),
        _ => {
            let reason = error.map(|error| format!(": {error}")).unwrap_or_default();
            Err(Failure::runtime(format!("the task ended with status {status}{reason}"))
                .with_hint(format!("`pointsman tasks show {id}` prints its attempts.")))
        }
    }
}

/// Prints why the task waits, if it does.
async fn print_waiting_reason(client: &Client, id: &str) {
    if let Ok(why) = client.read_task_why(id).await
        && why.status == "SCHEDULED"
    {
        print_to_stderr(format!("The task has not started: {}", why.summary));
    }
}

fn run_collection_request_failure(error: ClientError) -> Failure {
    let status = error.http_status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.with_hint("`pointsman handlers` lists the sources and their collections."),
        _ => failure,
    }
}
