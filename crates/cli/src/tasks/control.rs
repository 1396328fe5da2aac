//! `pointsman tasks retry` and `pointsman tasks cancel`, for one or more tasks.

use pointsman_api::TaskDetail;
use pointsman_api::client::{Client, ClientError, TenantOrderKey};
use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;

use super::{resolve_id, task_request_failure};
use crate::failure::{CommandResult, Failure};
use crate::orders::format_order_arguments;
use crate::output::{Output, print_to_stderr};

#[derive(Clone, Copy)]
pub(super) enum TaskControl {
    Retry,
    Cancel,
}

/// Retries or cancels tasks one after the other and prints their new status. Errors of single tasks are printed, and the
/// rest is still tried.
pub(super) async fn retry_or_cancel_tasks(
    client: &Client,
    output: Output,
    ids: &[String],
    control: TaskControl,
) -> CommandResult {
    let mut failed = 0;
    for id in ids {
        match retry_or_cancel_task(client, id, control).await {
            Ok(detail) if output.is_json() => output.print_json(&detail)?,
            Ok(detail) => output.print_line(format!("{}  {}", detail.task.status, detail.task.id))?,
            // A single task's error is returned with its hint; if the server is unavailable, the others would fail too.
            Err(failure) if ids.len() == 1 || failure.is_temporary() => return Err(failure),
            Err(failure) => {
                print_to_stderr(format!("error: {id}: {failure}"));
                failed += 1;
            }
        }
    }
    match (failed, control) {
        (0, _) => Ok(()),
        (n, TaskControl::Retry) => {
            Err(Failure::runtime(format!("{n} of {} tasks could not be retried", ids.len())))
        }
        (n, TaskControl::Cancel) => {
            Err(Failure::runtime(format!("{n} of {} tasks could not be canceled", ids.len())))
        }
    }
}

async fn retry_or_cancel_task(client: &Client, id: &str, control: TaskControl) -> CommandResult<TaskDetail> {
    let id = resolve_id::resolve_task_id(client, id).await?;
    let response = match control {
        TaskControl::Retry => client.retry_task(&id).await,
        TaskControl::Cancel => client.cancel_task(&id).await,
    };
    match response {
        Ok(detail) => Ok(detail),
        Err(error) => Err(retry_or_cancel_request_failure(client, &id, control, error).await),
    }
}

/// Converts the error of a retry or cancel request. A step of an order cannot be retried by itself; the hint says how to
/// retry it through its order.
async fn retry_or_cancel_request_failure(
    client: &Client,
    id: &str,
    control: TaskControl,
    error: ClientError,
) -> Failure {
    let is_conflict = error.http_status() == Some(409);
    let failure = task_request_failure(client, id, error).await;
    let detail = match control {
        TaskControl::Retry if is_conflict => client.read_task(id).await.ok(),
        TaskControl::Retry | TaskControl::Cancel => None,
    };
    let Some(order) = detail.and_then(order_of_step) else { return failure };
    let arguments = format_order_arguments(&order);
    match client.read_order(&order).await {
        Ok(_) => failure.with_hint(format!(
            "`pointsman orders resume {arguments}` continues the order and retries its failed step."
        )),
        Err(_) => failure.with_hint(format!(
            "The order has ended; `pointsman watch --since-start --path {arguments}` prints its events."
        )),
    }
}

/// The order that a task is a step of, if any. A task without an event has a key only if it is a step.
fn order_of_step(detail: TaskDetail) -> Option<TenantOrderKey> {
    let task = detail.task;
    let key: OrderKey = task.key.filter(|_| task.event_id.is_none())?.parse().ok()?;
    let tenant = task.tenant.parse::<Tenant>().ok().filter(|tenant| !tenant.is_default());
    Some(TenantOrderKey { key, tenant })
}
