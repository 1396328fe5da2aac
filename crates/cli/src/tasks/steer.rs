//! `pointsman tasks retry` and `pointsman tasks cancel`: many tasks, one after the other.

use pointsman_api::TaskDetail;
use pointsman_api::client::{Client, ClientError, OrderName};
use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;

use super::{about, named};
use crate::failure::{Failure, Result};
use crate::orders::words as named_order;
use crate::output::{Output, say};

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
                say(format!("error: {id}: {failure}"));
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
    match done {
        Ok(detail) => Ok(detail),
        Err(error) => Err(not_done(client, &id, how, error).await),
    }
}

/// A step is not run again by itself, but by its order.
async fn not_done(client: &Client, id: &str, how: Steer, error: ClientError) -> Failure {
    let is_conflict = error.status() == Some(409);
    let failure = about(client, id, error).await;
    let detail = match how {
        Steer::Retry if is_conflict => client.task(id).await.ok(),
        Steer::Retry | Steer::Cancel => None,
    };
    let Some(order) = detail.and_then(order_of) else { return failure };
    let words = named_order(&order);
    match client.order(&order).await {
        Ok(_) => failure.hint(format!("`pointsman orders resume {words}` continues it, and runs a failed step again.")),
        Err(_) => failure.hint(format!(
            "The order is no longer on its way; `pointsman watch --since-start --path {words}` shows what became of it."
        )),
    }
}

/// The order whose step a task is. Of tasks without an event, only an order's have a key.
fn order_of(detail: TaskDetail) -> Option<OrderName> {
    let task = detail.task;
    let key: OrderKey = task.key.filter(|_| task.event_id.is_none())?.parse().ok()?;
    let tenant = task.tenant.parse::<Tenant>().ok().filter(|tenant| !tenant.is_default());
    Some(OrderName { key, tenant })
}
