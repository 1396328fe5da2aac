//! Suggests orders for a key that does not exist.

use pointsman_api::client::{Client, OrderQuery, TenantOrderKey};
use pointsman_core::chain::OrderKey;
use pointsman_core::suggestion::suggest_names;

/// The number of orders of the chain that are compared: the largest page of the server.
const MAX_SEARCHED_ORDERS: u32 = 1000;
/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 5;

/// A question that lists orders of the same chain with similar ids, such as `Did you mean /a,1?`. None if there are none
/// or the orders cannot be read: the question only completes the hint of another error.
pub(super) async fn suggest_similar_orders(client: &Client, order: &TenantOrderKey) -> Option<String> {
    let TenantOrderKey { key: OrderKey { chain, id }, tenant } = order;
    let tenant = tenant.as_ref().map(ToString::to_string);
    let query = OrderQuery {
        path: Some(chain.to_string()),
        tenant,
        limit: Some(MAX_SEARCHED_ORDERS),
        ..OrderQuery::default()
    };
    let list = client.list_orders(&query).await.ok()?;
    let similar =
        suggest_names(id.as_str(), list.orders.iter().map(|order| order.id.as_str()), MAX_SUGGESTIONS);
    let keys: Vec<String> = similar.iter().map(|id| format!("{chain},{id}")).collect();
    match keys.as_slice() {
        [] => None,
        [one] => Some(format!("Did you mean {one}?")),
        many => Some(format!("Did you mean one of these?\n    {}", many.join("\n    "))),
    }
}
