//! `pointsman orders show`: one order with its value and its task.

use pointsman_api::OrderBody;
use pointsman_api::client::{Client, OrderName};
use pointsman_core::Tenant;

use super::about;
use super::stands::{GoneChains, now, stands};
use crate::failure::Result;
use crate::output::Output;

pub(super) async fn show(client: &Client, output: Output, name: &OrderName) -> Result {
    let order = match client.order(name).await {
        Ok(order) => order,
        Err(error) => return Err(about(client, name, error).await),
    };
    if output.is_json() {
        return Ok(output.json(&order)?);
    }
    let gone = GoneChains::of(client, std::slice::from_ref(&order)).await;
    output.facts(&facts(&order, &gone))?;
    match advice(&order, &gone) {
        Some(advice) => Ok(output.line(format!("\n{advice}"))?),
        None => Ok(()),
    }
}

fn facts(order: &OrderBody, gone: &GoneChains) -> Vec<(&'static str, String)> {
    let failed = order.failed.as_ref().filter(|_| order.suspended);
    let stands = match failed {
        // The error has a line of its own.
        Some(_) => "suspended by its step".into(),
        None => stands(order, gone, &now()),
    };
    let task = order.task.as_ref();
    vec![
        ("order", order.path.clone()),
        ("stands", stands),
        ("error", failed.map(|failed| failed.error.clone()).unwrap_or_default()),
        ("node", order.node.clone()),
        ("tenant", order.tenant.clone()),
        ("priority", order.priority.to_string()),
        ("planned", order.planned_at.clone()),
        ("created", order.created_at.clone()),
        ("started", order.started_at.clone()),
        ("failed task", failed.map(|failed| failed.task.clone()).unwrap_or_default()),
        ("task", task.map(|task| format!("{}  {}", task.status, task.id)).unwrap_or_default()),
        ("due", task.map(|task| task.due.clone()).unwrap_or_default()),
        ("value", order.value.as_str().to_owned()),
    ]
}

/// What to do next, where there is something to do.
fn advice(order: &OrderBody, gone: &GoneChains) -> Option<String> {
    let OrderBody { path, chain, tenant, .. } = order;
    let tenant = match tenant == Tenant::default().as_str() {
        true => String::new(),
        false => format!(" --tenant {tenant}"),
    };
    let waiting = order.task.as_ref().filter(|task| task.status == "SCHEDULED");
    match (&order.failed, waiting) {
        _ if order.stranded && gone.has(chain) => Some(format!(
            "Its chain is gone. It goes on when {chain} is configured again; or remove it:\n    \
             pointsman orders remove {path}{tenant}"
        )),
        _ if order.stranded => Some(format!(
            "Its chain has changed. It goes on when {chain} has such a node again, or when it is moved:\n    \
             pointsman orders move {path}{tenant} --node NODE"
        )),
        (Some(failed), _) if order.suspended => Some(format!(
            "What the step wrote: pointsman tasks logs {}\n`pointsman orders resume {path}{tenant}` tries again",
            failed.task
        )),
        (_, Some(task)) => Some(format!("What it waits for: pointsman tasks why {}", task.id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pointsman_api::FailedBody;

    use super::super::stands::tests::order;
    use super::*;

    #[test]
    fn who_failed_is_told_to_be_tried_again() {
        let failed = Some(FailedBody { task: "x_1".into(), error: "exit code 3".into() });
        let order = OrderBody { suspended: true, failed, ..order() };
        let facts = facts(&order, &GoneChains::default());
        assert!(facts.contains(&("error", "exit code 3".into())), "{facts:?}");
        assert!(facts.contains(&("failed task", "x_1".into())), "{facts:?}");
        let advice = advice(&order, &GoneChains::default()).unwrap();
        assert!(advice.ends_with("`pointsman orders resume /a,1` tries again"), "{advice}");
    }

    #[test]
    fn who_is_stranded_is_moved_only_where_there_is_a_chain() {
        let order = OrderBody { stranded: true, ..order() };
        let moved = advice(&order, &GoneChains::default()).unwrap();
        assert!(moved.contains("orders move /a,1"), "{moved}");
        let gone = advice(&order, &GoneChains::of_one("/a")).unwrap();
        assert!(gone.starts_with("Its chain is gone.") && !gone.contains("orders move"), "{gone}");
    }
}
