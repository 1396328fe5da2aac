//! `pointsman orders list` and `pointsman orders stats`.

use clap::Args;
use pointsman_api::OrderBody;
use pointsman_api::client::{Client, OrderQuery};
use pointsman_core::Tenant;
use pointsman_core::journal::PathFilter;

use super::nowhere::nowhere;
use super::stands::{GoneChains, now, stands};
use crate::failure::Result;
use crate::output::{Output, short, width};

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
    /// Only those of one tenant
    #[arg(long)]
    tenant: Option<Tenant>,
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
            return Ok(output.line(nothing(client, self.path.as_deref()).await)?);
        }
        let gone = GoneChains::of(client, &list.orders).await;
        let foreign = list.orders.iter().any(|order| order.tenant != Tenant::default().as_str());
        let head = ["order", "node", "stands", "value"];
        let head: Vec<&str> = if foreign { [&["tenant"], &head[..]].concat() } else { head.to_vec() };
        output.table(&head, rows(&list.orders, &gone, foreign, output.width()), "")?;
        if let Some(cursor) = &list.next {
            output.line(format!("There are more: --cursor {cursor}"))?;
        }
        Ok(())
    }
}

async fn nothing(client: &Client, path: Option<&str>) -> String {
    match path {
        Some(path) if path != "/" => match nowhere(client, path).await {
            Some(wrong) => format!("No orders at {path}. {wrong}"),
            None => format!("No orders at {path}."),
        },
        _ => "No orders. `pointsman orders add` adds one; `pointsman chains` lists where to.".into(),
    }
}

/// The most characters of how an order stands, and of its value. The latter gives way to the rest of the table.
const STANDS: usize = 48;
const VALUE: usize = 40;
/// The fewest of a value that are worth their place. Where not even these are left, how orders stand is broken at
/// blanks.
const LEAST_VALUE: usize = 12;

fn rows(orders: &[OrderBody], gone: &GoneChains, foreign: bool, width: Option<usize>) -> Vec<Vec<String>> {
    let now = now();
    let rows: Vec<Vec<String>> = orders.iter().map(|order| row(order, gone, foreign, &now)).collect();
    let most = width.map_or(VALUE, |width| room(&rows, width));
    let value = |order: &OrderBody| short(order.value.as_str(), most);
    rows.into_iter().zip(orders).map(|(row, order)| [row, vec![value(order)]].concat()).collect()
}

/// All but the value.
fn row(order: &OrderBody, gone: &GoneChains, foreign: bool, now: &str) -> Vec<String> {
    let tenant = foreign.then(|| order.tenant.clone());
    let stands = short(&stands(order, gone, now), STANDS);
    tenant.into_iter().chain([order.path.clone(), order.node.clone(), stands]).collect()
}

/// The longest title of those columns, and what is between two of them.
const LEAST_TITLE: usize = "TENANT".len();
const GAP: usize = 2;

/// How many characters of a line the other columns leave for a value.
fn room(rows: &[Vec<String>], most: usize) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let others: usize = (0..columns).map(|column| widest(column).max(LEAST_TITLE)).sum();
    let others = others + GAP * columns;
    most.saturating_sub(others).clamp(LEAST_VALUE, VALUE)
}

impl Stats {
    pub(super) async fn run(self, client: &Client, output: Output) -> Result {
        let statistics =
            client.order_statistics(self.path.as_deref().unwrap_or("/"), self.tenant.as_ref()).await?;
        if output.is_json() {
            return Ok(output.json(&statistics)?);
        }
        let numbers = serde_json::to_value(statistics.numbers)?;
        let path = self.path.as_deref().filter(|_| numbers["total"] == 0);
        let wrong = match path {
            Some(path) => nowhere(client, path).await,
            None => None,
        };
        if let Some(wrong) = wrong {
            return Ok(output.line(format!("No orders. {wrong}"))?);
        }
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
    use pointsman_api::FailedBody;
    use pointsman_core::Json;

    use super::super::stands::tests::order;
    use super::*;

    #[test]
    fn a_value_gives_way_to_what_stands_before_it() {
        let failed = FailedBody { task: "x".into(), error: "exit code 1: there is no such file".repeat(3) };
        let order = OrderBody {
            path: "/publish/article,1794761680908000".into(),
            value: Json::parse(&format!("{{\"text\":\"{}\"}}", "long".repeat(30))).unwrap(),
            suspended: true,
            failed: Some(failed),
            ..order()
        };
        let cells =
            |width| rows(std::slice::from_ref(&order), &GoneChains::default(), false, width).remove(0);
        let wide = cells(None);
        assert_eq!((wide.len(), wide[3].chars().count(), wide[2].chars().count()), (4, VALUE, STANDS));
        assert!(wide[2].starts_with("suspended: exit code 1: ") && wide[2].ends_with('…'), "{wide:?}");
        assert_eq!(cells(Some(80))[3].chars().count(), LEAST_VALUE);
        assert_eq!(cells(Some(200))[3].chars().count(), VALUE);
    }
}
