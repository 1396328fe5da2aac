//! Counting orders by state.

use pointsman_core::Tenant;
use pointsman_core::order::OrderStatistics;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::{Client, ClientResult};

/// Counts of orders by state, and the newest event id when they were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderStatisticsBody {
    /// The newest event id when this was read.
    #[serde(rename = "eventId")]
    pub newest_event_id: u64,
    /// The counts.
    #[serde(flatten)]
    pub statistics: OrderStatistics,
}

impl Client {
    /// Counts the orders at a path: `/` all, `/a/` the tree below, `/a/*` its children, `/a/chain` that chain's.
    /// With `tenant`, only those of that tenant.
    pub async fn read_order_statistics(
        &self,
        path: &str,
        tenant: Option<&Tenant>,
    ) -> ClientResult<OrderStatisticsBody> {
        let mut url = self.resource_url(&["jobscheduler", "master", "api", "order"])?;
        url.query_pairs_mut().append_pair("return", "OrderStatistics");
        if let Some(tenant) = tenant {
            url.query_pairs_mut().append_pair("tenant", tenant.as_str());
        }
        let request = self.build_request(Method::POST, url).json(&serde_json::json!({"path": path}));
        self.send_for_json(request).await
    }
}
