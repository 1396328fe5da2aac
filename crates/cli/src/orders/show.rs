//! `pointsman orders show`: one order with its value and its task.

use pointsman_api::client::Client;
use pointsman_core::chain::OrderKey;

use super::{about, list};
use crate::failure::Result;
use crate::output::Output;

pub(super) async fn show(client: &Client, output: Output, key: &OrderKey) -> Result {
    let order = client.order(key).await.map_err(|error| about(key, error))?;
    if output.is_json() {
        return Ok(output.json(&order)?);
    }
    let task = order.task.as_ref();
    output.facts(&[
        ("order", order.path.clone()),
        ("stands", list::stands(&order)),
        ("node", order.node.clone()),
        ("tenant", order.tenant.clone()),
        ("priority", order.priority.to_string()),
        ("planned", order.planned_at.clone()),
        ("created", order.created_at.clone()),
        ("started", order.started_at.clone()),
        ("task", task.map(|task| format!("{}  {}", task.status, task.id)).unwrap_or_default()),
        ("due", task.map(|task| task.due.clone()).unwrap_or_default()),
        ("value", order.value.as_str().to_owned()),
    ])?;
    match (&order.task, order.stranded) {
        (_, true) => output.line(format!(
            "\nIts chain has changed. It goes on when {} has such a node again, or when it is moved:\n    \
             pointsman orders move {} --node NODE",
            order.chain, order.path
        ))?,
        (Some(task), false) if task.status == "SCHEDULED" => {
            output.line(format!("\nWhat it waits for: pointsman tasks why {}", task.id))?;
        }
        (_, false) => {}
    }
    Ok(())
}
