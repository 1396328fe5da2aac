//! `pointsman run`: synchronise a source's collection now.

use std::pin::pin;
use std::time::Duration;

use clap::Args;
use pointsman_api::client::{Client, ClientError, LogQuery};
use pointsman_core::Pair;

use crate::args::Global;
use crate::failure::{Failure, Result};
use crate::output::{Output, say};
use crate::tasks;

/// Run a source's collection now
///
/// Queues a task for it and prints the task's id. A collection has one task at a time: if one is queued or
/// running already, that one is meant.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman run shop/orders
  pointsman run shop/orders --wait
  pointsman run shop/orders -o json | jq -r .task_id

With --wait, its log is printed as it comes, and the exit code is 0 if the task succeeded and 1 if not.")]
pub(crate) struct Run {
    /// The source and its collection
    #[arg(value_name = "SOURCE/COLLECTION")]
    pair: Pair,
    /// Follow its log until it has ended, and exit as it does
    #[arg(short, long)]
    wait: bool,
    /// A repeat with the same key queues nothing and prints the same task
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Run {
    pub(crate) async fn run(self, global: &Global) -> Result {
        let (client, output) = (global.client()?, Output::new(global));
        let (source, collection) = (self.pair.source.as_str(), self.pair.collection.as_str());
        let key = self.idempotency_key.as_deref();
        let (run, created) = client.run(source, collection, key).await.map_err(about)?;
        if output.is_json() {
            output.json(&serde_json::json!({"task_id": run.task_id, "created": created}))?;
        } else {
            if !created {
                say(match key {
                    Some(_) => "It was queued already, or the key was used before.",
                    None => "It was queued or running already.",
                });
            }
            output.line(&run.task_id)?;
        }
        match self.wait {
            true => wait(&client, output, &run.task_id).await,
            false => Ok(()),
        }
    }
}

/// How long a task may wait before whoever waits with it is told what for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Follows a task to its end; its end is ours.
async fn wait(client: &Client, output: Output, id: &str) -> Result {
    let query = LogQuery::default();
    let mut follow = pin!(tasks::logs::follow(client, output, id, &query));
    tokio::select! {
        followed = &mut follow => followed?,
        () = tokio::time::sleep(PATIENCE) => {
            tell_why_it_waits(client, id).await;
            follow.await?;
        }
    }
    let detail = match client.task(id).await {
        Ok(detail) => detail,
        Err(error) => return Err(tasks::about(client, id, error).await),
    };
    let (status, error) = (detail.task.status.as_str(), detail.task.error.as_deref());
    match status {
        "SUCCESS" => Ok(()),
        _ => {
            let why = error.map(|error| format!(": {error}")).unwrap_or_default();
            Err(Failure::runtime(format!("the task ended as {status}{why}"))
                .hint(format!("`pointsman tasks show {id}` shows its attempts.")))
        }
    }
}

/// Says what keeps a task from beginning, if something does and the server tells it.
async fn tell_why_it_waits(client: &Client, id: &str) {
    if let Ok(why) = client.why(id).await
        && why.status == "SCHEDULED"
    {
        say(format!("It has not begun: {}", why.summary));
    }
}

fn about(error: ClientError) -> Failure {
    let status = error.status();
    let failure = Failure::from(error);
    match status {
        Some(404) => failure.hint("`pointsman handlers` lists the sources and their collections."),
        _ => failure,
    }
}
