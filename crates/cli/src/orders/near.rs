//! Which order was perhaps meant by a name that none has.

use pointsman_api::client::{Client, OrderQuery};
use pointsman_core::chain::OrderKey;
use pointsman_server::config::nearest::several;

/// How many orders of a chain are looked at: as many as the server tells at once.
const LOOK: u32 = 1000;
/// How many of those that may be meant are named.
const SHOWN: usize = 5;

/// The orders of the same chain that are called nearly so. Nothing if there are none, or if they cannot be read: this is
/// said beside something else.
pub(super) async fn told(client: &Client, order: &OrderKey) -> Option<String> {
    let query =
        OrderQuery { path: Some(order.chain.to_string()), limit: Some(LOOK), ..OrderQuery::default() };
    let list = client.orders(&query).await.ok()?;
    let near = several(order.id.as_str(), list.orders.iter().map(|order| order.id.as_str()), SHOWN);
    let near: Vec<String> = near.iter().map(|id| format!("{},{id}", order.chain)).collect();
    match near.as_slice() {
        [] => None,
        [one] => Some(format!("Did you mean {one}?")),
        many => Some(format!("Did you mean one of these?\n    {}", many.join("\n    "))),
    }
}
