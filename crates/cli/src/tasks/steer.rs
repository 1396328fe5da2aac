//! `pointsman tasks retry` and `pointsman tasks cancel`: many tasks, one after the other.

use pointsman_api::TaskDetail;
use pointsman_api::client::Client;

use super::{about, named};
use crate::failure::{Failure, Result};
use crate::output::Output;

#[derive(Clone, Copy)]
pub(super) enum Steer {
    Retry,
    Cancel,
}

/// Retries or ends tasks and shows what each is now. One that cannot be is told, and the others follow.
pub(super) async fn steer(client: &Client, output: Output, ids: &[String], how: Steer) -> Result {
    let mut failed = 0;
    for id in ids {
        match one(client, id, how).await {
            Ok(detail) if output.is_json() => output.json(&detail)?,
            Ok(detail) => output.line(format!("{}  {}", detail.task.status, detail.task.id))?,
            // Alone, it is told with what to do next; and where nobody answers, the others fare no better.
            Err(failure) if ids.len() == 1 || failure.is_temporary() => return Err(failure),
            Err(failure) => {
                eprintln!("error: {id}: {failure}");
                failed += 1;
            }
        }
    }
    match (failed, how) {
        (0, _) => Ok(()),
        (n, Steer::Retry) => Err(Failure::runtime(format!("{n} of {} tasks are not run again", ids.len()))),
        (n, Steer::Cancel) => Err(Failure::runtime(format!("{n} of {} tasks are not ended", ids.len()))),
    }
}

async fn one(client: &Client, id: &str, how: Steer) -> Result<TaskDetail> {
    let id = named::task(client, id).await?;
    let done = match how {
        Steer::Retry => client.retry(&id).await,
        Steer::Cancel => client.cancel(&id).await,
    };
    done.map_err(|e| about(&id, e))
}
