//! How an order stands at its node, in a few words.
//!
//! An order is suspended, or its step runs, or it is stranded, or its step waits: for its time, for whatever holds it,
//! or for a free slot. The first of these that is so is told.

use pointsman_api::OrderBody;
use pointsman_api::client::Client;

use crate::output::day_and_time;

/// The chains that orders were left behind by. An order tells that it is stranded, but not whether its chain has lost
/// a node or is gone as a whole.
#[derive(Default)]
pub(super) struct GoneChains(Vec<String>);

impl GoneChains {
    /// Of the chains of these orders. Nothing is asked where none is stranded; and where the server does not answer, a
    /// chain is taken to be there.
    pub(super) async fn of(client: &Client, orders: &[OrderBody]) -> Self {
        let stranded = || orders.iter().filter(|order| order.stranded);
        if stranded().next().is_none() {
            return Self::default();
        }
        let Ok(list) = client.chains().await else { return Self::default() };
        let is_there = |path: &str| list.chains.iter().any(|chain| chain.path == path && chain.defined);
        let gone = stranded().map(|order| order.chain.clone()).filter(|chain| !is_there(chain));
        Self(gone.collect())
    }

    pub(super) fn has(&self, chain: &str) -> bool {
        self.0.iter().any(|gone| gone == chain)
    }
}

/// How one order stands. What is found out about its chain is not needed any further.
pub(super) async fn stands_now(client: &Client, order: &OrderBody) -> String {
    let gone = GoneChains::of(client, std::slice::from_ref(order)).await;
    stands(order, &gone, &now())
}

/// The present, written as orders have their times, so that they compare as texts.
pub(super) fn now() -> String {
    pointsman_engine::now().to_string()
}

pub(super) fn stands(order: &OrderBody, gone: &GoneChains, now: &str) -> String {
    let planned = order.started_at.is_empty() && order.planned_at > order.created_at;
    let (planned_at, setback_until) = (order.planned_at.as_str(), order.setback_until.as_str());
    match (&order.failed, &order.held) {
        _ if order.suspended && runs(order) => "suspended; its step is let end".into(),
        (Some(failed), _) if order.suspended => format!("suspended: {}", failed.error),
        _ if order.suspended => "suspended".into(),
        _ if runs(order) => "its step runs".into(),
        _ if order.stranded && gone.has(&order.chain) => "stranded: its chain is gone".into(),
        _ if order.stranded => "stranded: its chain has no such node".into(),
        _ if setback_until > now => format!("set back until {}", day_and_time(setback_until)),
        _ if planned && planned_at > now => format!("planned for {}", day_and_time(planned_at)),
        (_, Some(held)) => format!("held: {held}"),
        _ if planned || !setback_until.is_empty() => "due".into(),
        _ => "waits".into(),
    }
}

fn runs(order: &OrderBody) -> bool {
    order.task.as_ref().is_some_and(|task| task.status == "RUNNING")
}

#[cfg(test)]
pub(super) mod tests {
    use pointsman_api::{FailedBody, OrderTaskBody};

    use super::*;

    pub(in crate::orders) fn order() -> OrderBody {
        serde_json::from_str(
            r#"{"path":"/a,1","chain":"/a","id":"1","node":"x","value":null,"tenant":"default","priority":100,
            "planned_at":"","created_at":"2026-01-31T12:00:00.000000Z","started_at":"","suspended":false,
            "task":null,"setback_until":"","stranded":false}"#,
        )
        .unwrap()
    }

    impl GoneChains {
        pub(in crate::orders) fn of_one(chain: &str) -> Self {
            Self(vec![chain.into()])
        }
    }

    fn task(status: &str) -> Option<OrderTaskBody> {
        Some(OrderTaskBody { id: "t".into(), status: status.into(), due: String::new() })
    }

    fn told(order: &OrderBody) -> String {
        stands(order, &GoneChains::of_one("/gone"), "2026-01-31T12:30:00.000000Z")
    }

    #[test]
    fn an_order_that_waits_tells_for_what() {
        let (past, later) = ("2026-01-31T12:10:00.000000Z", "2026-01-31T13:00:00.000000Z");
        let held = || Some("the chain /a is stopped".to_owned());
        for (order, words) in [
            (order(), "waits"),
            (OrderBody { task: task("SCHEDULED"), ..order() }, "waits"),
            (OrderBody { held: held(), ..order() }, "held: the chain /a is stopped"),
            (OrderBody { setback_until: later.into(), ..order() }, "set back until 2026-01-31 13:00:00"),
            (OrderBody { setback_until: past.into(), ..order() }, "due"),
            (OrderBody { planned_at: later.into(), ..order() }, "planned for 2026-01-31 13:00:00"),
            (OrderBody { planned_at: past.into(), ..order() }, "due"),
            (OrderBody { planned_at: past.into(), held: held(), ..order() }, "held: the chain /a is stopped"),
        ] {
            assert_eq!(told(&order), words);
        }
    }

    #[test]
    fn what_keeps_an_order_is_told_before_where_it_is_kept() {
        let failed = Some(FailedBody { task: "t".into(), error: "exit code 3: no luck".into() });
        let stranded = OrderBody { stranded: true, ..order() };
        for (order, words) in [
            (OrderBody { task: task("RUNNING"), ..order() }, "its step runs"),
            (OrderBody { suspended: true, ..order() }, "suspended"),
            (
                OrderBody { suspended: true, task: task("RUNNING"), ..order() },
                "suspended; its step is let end",
            ),
            (OrderBody { suspended: true, failed, ..order() }, "suspended: exit code 3: no luck"),
            (stranded.clone(), "stranded: its chain has no such node"),
            (OrderBody { chain: "/gone".into(), ..stranded.clone() }, "stranded: its chain is gone"),
            (OrderBody { task: task("RUNNING"), ..stranded.clone() }, "its step runs"),
            (OrderBody { suspended: true, ..stranded }, "suspended"),
        ] {
            assert_eq!(told(&order), words);
        }
    }
}
