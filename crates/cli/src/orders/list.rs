//! `pointsman orders list` and `pointsman orders stats`.

use clap::Args;
use pointsman_api::OrderBody;
use pointsman_api::client::{Client, OrderQuery};
use pointsman_core::Tenant;
use pointsman_core::journal::PathFilter;

use super::path_without_orders::explain_path_without_orders;
use super::state_description::{MissingChains, current_time_text, describe_order_state};
use crate::failure::CommandResult;
use crate::output::{Output, display_width, escape_and_shorten};

/// List running orders by path
#[derive(Debug, Default, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders list
  pointsman orders list /publish/
  pointsman orders list /publish/article
  pointsman orders list -o json | jq -r '.orders[] | select(.suspended) | .path'

Orders that have ended are not listed; `pointsman watch --since-start --path PATH` prints their events.")]
pub(super) struct ListOrdersCommand {
    /// Only orders at this path: `/folder/`, `/folder/*`, or the path of a chain
    #[arg(value_parser = validate_path_filter)]
    path: Option<String>,
    /// Only orders of this tenant
    #[arg(long)]
    tenant: Option<Tenant>,
    /// Maximum number of results
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Continue after an earlier page, with the cursor that it printed
    #[arg(long)]
    cursor: Option<String>,
}

/// Count orders by state
///
/// The names are those of the API: `notPlanned` and `planned` orders have not started, `due` is the part of them whose
/// time has come; `started` orders have; `inTask` orders have a task, `inProcess` orders a running one.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  pointsman orders stats
  pointsman orders stats /publish/ -o json | jq .suspended")]
pub(super) struct OrderStatsCommand {
    /// Only orders at this path: `/folder/`, `/folder/*`, or the path of a chain
    #[arg(value_parser = validate_path_filter)]
    path: Option<String>,
    /// Only orders of this tenant
    #[arg(long)]
    tenant: Option<Tenant>,
}

/// Checks a path filter and returns it unchanged.
fn validate_path_filter(text: &str) -> Result<String, String> {
    text.parse::<PathFilter>().map(|_| text.into()).map_err(|e| e.to_string())
}

impl ListOrdersCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        let tenant = self.tenant.as_ref().map(ToString::to_string);
        let query = OrderQuery { path: self.path.clone(), tenant, limit: self.limit, cursor: self.cursor };
        let list = client.list_orders(&query).await?;
        if output.is_json() {
            return Ok(output.print_json(&list)?);
        }
        if list.orders.is_empty() {
            return Ok(output.print_line(explain_no_orders(client, self.path.as_deref()).await)?);
        }
        let missing_chains = MissingChains::find(client, &list.orders).await;
        let shows_tenant = list.orders.iter().any(|order| order.tenant != Tenant::default().as_str());
        let head = ["order", "node", "state", "value"];
        let head: Vec<&str> = if shows_tenant { [&["tenant"], &head[..]].concat() } else { head.to_vec() };
        output.print_table(
            &head,
            order_rows(&list.orders, &missing_chains, shows_tenant, output.terminal_width()),
            "",
        )?;
        if let Some(cursor) = &list.next {
            output.print_line(format!("More results: --cursor {cursor}"))?;
        }
        Ok(())
    }
}

async fn explain_no_orders(client: &Client, path: Option<&str>) -> String {
    match path {
        Some(path) if path != "/" => match explain_path_without_orders(client, path).await {
            Some(reason) => format!("No orders at {path}. {reason}"),
            None => format!("No orders at {path}."),
        },
        _ => "No orders. `pointsman orders add` adds one; `pointsman chains` lists the chains.".into(),
    }
}

/// The maximum widths of a state and of a value. The value shrinks if the table is too wide.
const MAX_STATE_WIDTH: usize = 48;
const MAX_VALUE_WIDTH: usize = 40;
/// The minimum width of a value. If even that does not fit, the state is wrapped.
const MIN_VALUE_WIDTH: usize = 12;

fn order_rows(
    orders: &[OrderBody],
    missing_chains: &MissingChains,
    shows_tenant: bool,
    terminal_width: Option<usize>,
) -> Vec<Vec<String>> {
    let now = current_time_text();
    let row = |order| order_row_without_value(order, missing_chains, shows_tenant, &now);
    let rows: Vec<Vec<String>> = orders.iter().map(row).collect();
    let value_width = terminal_width.map_or(MAX_VALUE_WIDTH, |width| remaining_value_width(&rows, width));
    let value = |order: &OrderBody| escape_and_shorten(order.value.as_str(), value_width);
    rows.into_iter().zip(orders).map(|(row, order)| [row, vec![value(order)]].concat()).collect()
}

fn order_row_without_value(
    order: &OrderBody,
    missing_chains: &MissingChains,
    shows_tenant: bool,
    now: &str,
) -> Vec<String> {
    let tenant = shows_tenant.then(|| order.tenant.clone());
    let state = escape_and_shorten(&describe_order_state(order, missing_chains, now), MAX_STATE_WIDTH);
    tenant.into_iter().chain([order.path.clone(), order.node.clone(), state]).collect()
}

/// The width of the longest column title, and the blanks between two columns.
const MAX_TITLE_WIDTH: usize = "TENANT".len();
const COLUMN_GAP: usize = 2;

/// The width that the other columns leave for the value.
fn remaining_value_width(rows: &[Vec<String>], terminal_width: usize) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |column: usize| rows.iter().map(|row| display_width(&row[column])).max().unwrap_or(0);
    let others: usize = (0..columns).map(|column| widest(column).max(MAX_TITLE_WIDTH)).sum();
    let others = others + COLUMN_GAP * columns;
    terminal_width.saturating_sub(others).clamp(MIN_VALUE_WIDTH, MAX_VALUE_WIDTH)
}

impl OrderStatsCommand {
    pub(super) async fn run(self, client: &Client, output: Output) -> CommandResult {
        let statistics =
            client.read_order_statistics(self.path.as_deref().unwrap_or("/"), self.tenant.as_ref()).await?;
        if output.is_json() {
            return Ok(output.print_json(&statistics)?);
        }
        let numbers = serde_json::to_value(statistics.statistics)?;
        let path = self.path.as_deref().filter(|_| numbers["total"] == 0);
        let reason = match path {
            Some(path) => explain_path_without_orders(client, path).await,
            None => None,
        };
        if let Some(reason) = reason {
            return Ok(output.print_line(format!("No orders. {reason}"))?);
        }
        // In the documented order, which a JSON object does not keep.
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
        Ok(output.print_fields(&names.map(|name| (name, numbers[name].to_string())))?)
    }
}

#[cfg(test)]
mod tests {
    use pointsman_api::FailedStepBody;
    use pointsman_core::Json;

    use super::super::state_description::tests::sample_order;
    use super::*;

    #[test]
    fn a_value_shrinks_before_the_other_columns() {
        let failed =
            FailedStepBody { task: "x".into(), error: "exit code 1: there is no such file".repeat(3) };
        let order = OrderBody {
            path: "/publish/article,1794761680908000".into(),
            value: Json::parse(&format!("{{\"text\":\"{}\"}}", "long".repeat(30))).unwrap(),
            suspended: true,
            failed_step: Some(failed),
            ..sample_order()
        };
        let cells = |width| {
            let orders = std::slice::from_ref(&order);
            order_rows(orders, &MissingChains::default(), false, width).remove(0)
        };
        let wide = cells(None);
        assert_eq!(
            (wide.len(), wide[3].chars().count(), wide[2].chars().count()),
            (4, MAX_VALUE_WIDTH, MAX_STATE_WIDTH)
        );
        assert!(wide[2].starts_with("suspended: exit code 1: ") && wide[2].ends_with('…'), "{wide:?}");
        assert_eq!(cells(Some(80))[3].chars().count(), MIN_VALUE_WIDTH);
        assert_eq!(cells(Some(200))[3].chars().count(), MAX_VALUE_WIDTH);
    }
}
