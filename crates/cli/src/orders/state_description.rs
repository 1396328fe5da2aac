//! Describes the state of an order in a few words.
//!
//! An order is suspended, runs its step, is stranded (its node or chain is no longer configured), or waits: for a time,
//! for a rule or a stopped chain, or for a free slot. The first of these that applies is printed.

use pointsman_api::OrderBody;
use pointsman_api::client::Client;

use crate::output::format_timestamp;

/// The chains of stranded orders that are no longer configured. An order says that it is stranded, but not whether the
/// node or the whole chain is missing.
#[derive(Default)]
pub(super) struct MissingChains(Vec<String>);

impl MissingChains {
    /// Finds the missing chains of these orders. Sends no request if none is stranded; if the request fails, all chains
    /// count as configured.
    pub(super) async fn find(client: &Client, orders: &[OrderBody]) -> Self {
        let stranded = || orders.iter().filter(|order| order.is_at_removed_node);
        if stranded().next().is_none() {
            return Self::default();
        }
        let Ok(list) = client.list_chains().await else { return Self::default() };
        let is_configured = |path: &str| list.chains.iter().any(|chain| chain.path == path && chain.defined);
        let missing = stranded().map(|order| order.chain.clone()).filter(|chain| !is_configured(chain));
        Self(missing.collect())
    }

    pub(super) fn contains(&self, chain: &str) -> bool {
        self.0.iter().any(|missing| missing == chain)
    }
}

/// Describes one order, after looking up its chain.
pub(super) async fn fetch_state_description(client: &Client, order: &OrderBody) -> String {
    let missing_chains = MissingChains::find(client, std::slice::from_ref(order)).await;
    describe_order_state(order, &missing_chains, &current_time_text())
}

/// The current time in the format of an order's times, so that they compare as text.
pub(super) fn current_time_text() -> String {
    pointsman_engine::machine_clock_now().to_string()
}

pub(super) fn describe_order_state(order: &OrderBody, missing_chains: &MissingChains, now: &str) -> String {
    let is_planned = order.started_at.is_empty() && order.planned_at > order.created_at;
    let (planned_at, setback_until) = (order.planned_at.as_str(), order.setback_until.as_str());
    match (&order.failed_step, &order.step_blocked_because) {
        _ if order.suspended && has_running_step(order) => "suspended after its running step".into(),
        (Some(failed), _) if order.suspended => format!("suspended: {}", failed.error),
        _ if order.suspended => "suspended".into(),
        _ if has_running_step(order) => "running".into(),
        _ if order.is_at_removed_node && missing_chains.contains(&order.chain) => {
            "stranded: its chain is not configured".into()
        }
        _ if order.is_at_removed_node => "stranded: its node is not in the chain".into(),
        _ if setback_until > now => format!("set back until {}", format_timestamp(setback_until)),
        _ if is_planned && planned_at > now => format!("planned for {}", format_timestamp(planned_at)),
        (_, Some(reason)) => format!("blocked: {reason}"),
        _ if is_planned || !setback_until.is_empty() => "due".into(),
        _ => "waiting".into(),
    }
}

fn has_running_step(order: &OrderBody) -> bool {
    order.task.as_ref().is_some_and(|task| task.status == "RUNNING")
}

#[cfg(test)]
pub(super) mod tests {
    use pointsman_api::{FailedStepBody, OrderTaskBody};

    use super::*;

    pub(in crate::orders) fn sample_order() -> OrderBody {
        serde_json::from_str(
            r#"{"path":"/a,1","chain":"/a","id":"1","node":"x","value":null,"tenant":"default","priority":100,
            "planned_at":"","created_at":"2026-01-31T12:00:00.000000Z","started_at":"","suspended":false,
            "task":null,"setback_until":"","stranded":false}"#,
        )
        .unwrap()
    }

    impl MissingChains {
        pub(in crate::orders) fn with_one_missing_chain(chain: &str) -> Self {
            Self(vec![chain.into()])
        }
    }

    fn task_with_status(status: &str) -> Option<OrderTaskBody> {
        Some(OrderTaskBody { id: "t".into(), status: status.into(), due: String::new() })
    }

    fn describe_state_at_test_time(order: &OrderBody) -> String {
        describe_order_state(
            order,
            &MissingChains::with_one_missing_chain("/missing"),
            "2026-01-31T12:30:00.000000Z",
        )
    }

    #[test]
    fn the_state_of_a_waiting_order_says_what_it_waits_for() {
        let (past, later) = ("2026-01-31T12:10:00.000000Z", "2026-01-31T13:00:00.000000Z");
        let reason = || Some("the chain /a is stopped".to_owned());
        for (order, description) in [
            (sample_order(), "waiting"),
            (OrderBody { task: task_with_status("SCHEDULED"), ..sample_order() }, "waiting"),
            (
                OrderBody { step_blocked_because: reason(), ..sample_order() },
                "blocked: the chain /a is stopped",
            ),
            (
                OrderBody { setback_until: later.into(), ..sample_order() },
                "set back until 2026-01-31 13:00:00",
            ),
            (OrderBody { setback_until: past.into(), ..sample_order() }, "due"),
            (OrderBody { planned_at: later.into(), ..sample_order() }, "planned for 2026-01-31 13:00:00"),
            (OrderBody { planned_at: past.into(), ..sample_order() }, "due"),
            (
                OrderBody { planned_at: past.into(), step_blocked_because: reason(), ..sample_order() },
                "blocked: the chain /a is stopped",
            ),
        ] {
            assert_eq!(describe_state_at_test_time(&order), description);
        }
    }

    #[test]
    fn an_order_is_described_as_suspended_before_running_and_as_running_before_stranded() {
        let failed = Some(FailedStepBody { task: "t".into(), error: "exit code 3: no luck".into() });
        let stranded = OrderBody { is_at_removed_node: true, ..sample_order() };
        for (order, description) in [
            (OrderBody { task: task_with_status("RUNNING"), ..sample_order() }, "running"),
            (OrderBody { suspended: true, ..sample_order() }, "suspended"),
            (
                OrderBody { suspended: true, task: task_with_status("RUNNING"), ..sample_order() },
                "suspended after its running step",
            ),
            (
                OrderBody { suspended: true, failed_step: failed, ..sample_order() },
                "suspended: exit code 3: no luck",
            ),
            (stranded.clone(), "stranded: its node is not in the chain"),
            (
                OrderBody { chain: "/missing".into(), ..stranded.clone() },
                "stranded: its chain is not configured",
            ),
            (OrderBody { task: task_with_status("RUNNING"), ..stranded.clone() }, "running"),
            (OrderBody { suspended: true, ..stranded }, "suspended"),
        ] {
            assert_eq!(describe_state_at_test_time(&order), description);
        }
    }
}
