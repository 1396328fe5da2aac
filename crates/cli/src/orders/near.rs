//! Which order was perhaps meant by a name that none has.

use pointsman_api::client::{Client, OrderName, OrderQuery};
use pointsman_core::chain::OrderKey;
use pointsman_server::config::nearest::several;

/// How many orders of a chain are looked at: as many as the server tells at once.
const LOOK: u32 = 1000;
/// How many of those that may be meant are named.
const SHOWN: usize = 5;

/// The orders of the same chain that are called nearly so. Nothing if there are none, or if they cannot be read: this is
/// said beside something else.
pub(super) async fn told(client: &Client, order: &OrderName) -> Option<String> {
    let OrderName { key: OrderKey { chain, id }, tenant } = order;
    let tenant = tenant.as_ref().map(ToString::to_string);
    let query =
        OrderQuery { path: Some(chain.to_string()), tenant, limit: Some(LOOK), ..OrderQuery::default() };
    let list = client.orders(&query).await.ok()?;
    let near = several(id.as_str(), list.orders.iter().map(|order| order.id.as_str()), SHOWN);
    let near: Vec<String> = near.iter().map(|id| format!("{chain},{id}")).collect();
    match near.as_slice() {
        [] => None,
        [one] => Some(format!("Did you mean {one}?")),
        many => Some(format!("Did you mean one of these?\n    {}", many.join("\n    "))),
    }
}
