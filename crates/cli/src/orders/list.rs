//! `pointsman orders list` and `pointsman orders stats`.

use clap::Args;
use pointsman_api::OrderBody;
use pointsman_api::client::{Client, OrderQuery};
use pointsman_core::Tenant;
use pointsman_core::journal::PathFilter;

use crate::failure::Result;
use crate::output::{Output, day_and_time, short};

/// List orders, by path
#[derive(Debug, Default, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders list
  pointsman orders list /publish/
  pointsman orders list /publish/article
  pointsman orders list -o json | jq -r '.orders[] | select(.suspended) | .path'

Orders that have arrived at an end are gone; what became of them is in the stream.")]
pub(super) struct List {
    /// Only those there: `/folder/`, `/folder/*`, or the path of a chain
    #[arg(value_parser = path)]
    path: Option<String>,
    /// Only those of one tenant
    #[arg(long)]
    tenant: Option<Tenant>,
    /// At most so many
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Go on where an earlier list ended, with what it said
    #[arg(long)]
    cursor: Option<String>,
}

/// Count orders by how they stand
///
/// In the words of the events: `notPlanned` and `planned` have not begun, `due` are those of them whose time has
/// come, `started` have; `inTask` have a task, and `inProcess` one that runs.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders stats
  pointsman orders stats /publish/ -o json | jq .suspended")]
pub(super) struct Stats {
    /// Only those there: `/folder/`, `/folder/*`, or the path of a chain
    #[arg(value_parser = path)]
    path: Option<String>,
}

fn path(text: &str) -> std::result::Result<String, String> {
    text.parse::<PathFilter>().map(|_| text.into()).map_err(|e| e.to_string())
}

impl List {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let tenant = self.tenant.as_ref().map(ToString::to_string);
        let query = OrderQuery { path: self.path.clone(), tenant, limit: self.limit, cursor: self.cursor };
        let list = client.orders(&query).await?;
        if output.is_json() {
            return Ok(output.json(&list)?);
        }
        if list.orders.is_empty() {
            return Ok(output.line(nothing(self.path.as_deref()))?);
        }
        let foreign = list.orders.iter().any(|order| order.tenant != Tenant::default().as_str());
        let head = ["order", "node", "stands", "created", "value", "task"];
        let head: Vec<&str> = if foreign { [&["tenant"], &head[..]].concat() } else { head.to_vec() };
        output.table(&head, list.orders.iter().map(|order| row(order, foreign)).collect(), "")?;
        if let Some(cursor) = &list.next {
            output.line(format!("There are more: --cursor {cursor}"))?;
        }
        Ok(())
    }
}

fn nothing(path: Option<&str>) -> String {
    match path {
        Some(path) if path != "/" => format!("No orders at {path}."),
        _ => "No orders. `pointsman orders add` adds one; `pointsman chains` lists where to.".into(),
    }
}

fn row(order: &OrderBody, foreign: bool) -> Vec<String> {
    let tenant = foreign.then(|| order.tenant.clone());
    let rest = [
        order.path.clone(),
        order.node.clone(),
        stands(order),
        day_and_time(&order.created_at),
        short(order.value.as_str(), 40),
        order.task.as_ref().map(|task| task.id.clone()).unwrap_or_default(),
    ];
    tenant.into_iter().chain(rest).collect()
}

/// How an order stands at its node, in a few words.
pub(super) fn stands(order: &OrderBody) -> String {
    let runs = order.task.as_ref().is_some_and(|task| task.status == "RUNNING");
    match order {
        _ if order.suspended && runs => "suspended; its step is let end".into(),
        _ if order.stranded => "stranded: its chain has no such node".into(),
        _ if order.suspended => "suspended".into(),
        _ if runs => "its step runs".into(),
        _ if !order.setback_until.is_empty() => {
            format!("set back until {}", day_and_time(&order.setback_until))
        }
        // Both are written alike, so that they compare as texts.
        _ if order.started_at.is_empty() && order.planned_at > order.created_at => {
            format!("planned for {}", day_and_time(&order.planned_at))
        }
        _ => "waits".into(),
    }
}

impl Stats {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let statistics = client.order_statistics(self.path.as_deref().unwrap_or("/")).await?;
        if output.is_json() {
            return Ok(output.json(&statistics)?);
        }
        let numbers = serde_json::to_value(statistics.numbers)?;
        // In the order in which they are documented, which is not that of a JSON object.
        let names = [
            "total",
            "notPlanned",
            "planned",
            "due",
            "started",
            "inTask",
            "inProcess",
            "setback",
            "suspended",
            "blacklisted",
            "permanent",
            "fileOrder",
        ];
        Ok(output.facts(&names.map(|name| (name, numbers[name].to_string())))?)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_api::OrderTaskBody;
    use pointsman_core::Json;

    use super::*;

    fn order() -> OrderBody {
        OrderBody {
            event_id: None,
            path: "/a,1".into(),
            chain: "/a".into(),
            id: "1".into(),
            node: "x".into(),
            value: Json::null(),
            tenant: "default".into(),
            priority: 100,
            planned_at: String::new(),
            created_at: "2026-01-31T12:00:00.000000Z".into(),
            started_at: String::new(),
            suspended: false,
            task: None,
            setback_until: String::new(),
            stranded: false,
        }
    }

    #[test]
    fn how_an_order_stands_is_told_in_words() {
        let later = || "2026-01-31T13:00:00.000000Z".to_owned();
        let task =
            |status: &str| Some(OrderTaskBody { id: "t".into(), status: status.into(), due: String::new() });
        let told = [
            (order(), "waits"),
            (OrderBody { task: task("SCHEDULED"), ..order() }, "waits"),
            (OrderBody { task: task("RUNNING"), ..order() }, "its step runs"),
            (OrderBody { suspended: true, ..order() }, "suspended"),
            (
                OrderBody { suspended: true, task: task("RUNNING"), ..order() },
                "suspended; its step is let end",
            ),
            (OrderBody { setback_until: later(), ..order() }, "set back until 2026-01-31 13:00:00"),
            (OrderBody { planned_at: later(), ..order() }, "planned for 2026-01-31 13:00:00"),
            (
                OrderBody { stranded: true, suspended: true, ..order() },
                "stranded: its chain has no such node",
            ),
        ];
        for (order, words) in told {
            assert_eq!(stands(&order), words);
        }
    }
}
