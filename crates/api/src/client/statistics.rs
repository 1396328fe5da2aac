//! How the orders are spread.

use pointsman_core::Tenant;
use pointsman_core::order::OrderStatistics;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::{Client, Result};

/// Counts of orders, stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderCounts {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub event_id: u64,
    #[serde(flatten)]
    pub numbers: OrderStatistics,
}

impl Client {
    /// Counts the orders at a path: `/` all, `/a/` the tree below, `/a/*` its children, `/a/chain` that chain's.
    /// `tenant`: only that tenant's, if given.
    pub async fn order_statistics(&self, path: &str, tenant: Option<&Tenant>) -> Result<OrderCounts> {
        let mut url = self.at(&["jobscheduler", "master", "api", "order"])?;
        url.query_pairs_mut().append_pair("return", "OrderStatistics");
        if let Some(tenant) = tenant {
            url.query_pairs_mut().append_pair("tenant", tenant.as_str());
        }
        self.json(self.request(Method::POST, url).json(&serde_json::json!({"path": path}))).await
    }
}
