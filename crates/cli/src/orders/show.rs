//! `pointsman orders show`: one order with its value and task.

use pointsman_api::OrderBody;
use pointsman_api::client::{Client, TenantOrderKey};
use pointsman_core::Tenant;

use super::order_request_failure;
use super::state_description::{MissingChains, current_time_text, describe_order_state};
use crate::failure::CommandResult;
use crate::output::Output;

pub(super) async fn show_order(client: &Client, output: Output, key: &TenantOrderKey) -> CommandResult {
    let order = match client.read_order(key).await {
        Ok(order) => order,
        Err(error) => return Err(order_request_failure(client, key, error).await),
    };
    if output.is_json() {
        return Ok(output.print_json(&order)?);
    }
    let missing_chains = MissingChains::find(client, std::slice::from_ref(&order)).await;
    output.print_fields(&order_fields(&order, &missing_chains))?;
    match suggest_next_command(&order, &missing_chains) {
        Some(advice) => Ok(output.print_line(format!("\n{advice}"))?),
        None => Ok(()),
    }
}

fn order_fields(order: &OrderBody, missing_chains: &MissingChains) -> Vec<(&'static str, String)> {
    let failed = order.failed_step.as_ref().filter(|_| order.suspended);
    let state = match failed {
        // The error has a line of its own.
        Some(_) => "suspended by a failed step".into(),
        None => describe_order_state(order, missing_chains, &current_time_text()),
    };
    let task = order.task.as_ref();
    vec![
        ("order", order.path.clone()),
        ("state", state),
        ("error", failed.map(|failed| failed.error.clone()).unwrap_or_default()),
        ("node", order.node.clone()),
        ("tenant", order.tenant.clone()),
        ("priority", order.priority.to_string()),
        ("planned for", order.planned_at.clone()),
        ("created", order.created_at.clone()),
        ("started", order.started_at.clone()),
        ("failed task", failed.map(|failed| failed.task.clone()).unwrap_or_default()),
        ("task", task.map(|task| format!("{}  {}", task.status, task.id)).unwrap_or_default()),
        ("due", task.map(|task| task.due.clone()).unwrap_or_default()),
        ("value", order.value.as_str().to_owned()),
    ]
}

/// The command to continue the order, or to find out why it waits, if it needs one.
fn suggest_next_command(order: &OrderBody, missing_chains: &MissingChains) -> Option<String> {
    let OrderBody { path, chain, tenant, .. } = order;
    let tenant = match tenant == Tenant::default().as_str() {
        true => String::new(),
        false => format!(" --tenant {tenant}"),
    };
    let waiting = order.task.as_ref().filter(|task| task.status == "SCHEDULED");
    match (&order.failed_step, waiting) {
        _ if order.is_at_removed_node && missing_chains.contains(chain) => Some(format!(
            "Its chain is no longer configured. Configure {chain} again to continue the order, or remove it:\n    \
             pointsman orders remove {path}{tenant}"
        )),
        _ if order.is_at_removed_node => Some(format!(
            "Its node is no longer in the chain. Add the node to {chain} again, or move the order:\n    \
             pointsman orders move {path}{tenant} --node NODE"
        )),
        (Some(failed), _) if order.suspended => Some(format!(
            "Log of the failed step: pointsman tasks logs {}\nTo retry the step: pointsman orders resume {path}{tenant}",
            failed.task
        )),
        (_, Some(task)) => Some(format!("Why it is waiting: pointsman tasks why {}", task.id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pointsman_api::FailedStepBody;

    use super::super::state_description::tests::sample_order;
    use super::*;

    #[test]
    fn a_failed_order_suggests_resuming_it() {
        let failed = Some(FailedStepBody { task: "x_1".into(), error: "exit code 3".into() });
        let order = OrderBody { suspended: true, failed_step: failed, ..sample_order() };
        let fields = order_fields(&order, &MissingChains::default());
        assert!(fields.contains(&("error", "exit code 3".into())), "{fields:?}");
        assert!(fields.contains(&("failed task", "x_1".into())), "{fields:?}");
        let suggestion = suggest_next_command(&order, &MissingChains::default()).unwrap();
        assert!(suggestion.ends_with("pointsman orders resume /a,1"), "{suggestion}");
    }

    #[test]
    fn moving_a_stranded_order_is_suggested_only_if_its_chain_is_configured() {
        let order = OrderBody { is_at_removed_node: true, ..sample_order() };
        let moved = suggest_next_command(&order, &MissingChains::default()).unwrap();
        assert!(moved.contains("orders move /a,1"), "{moved}");
        let removed = suggest_next_command(&order, &MissingChains::with_one_missing_chain("/a")).unwrap();
        assert!(
            removed.starts_with("Its chain is no longer configured.") && !removed.contains("orders move"),
            "{removed}"
        );
    }
}
