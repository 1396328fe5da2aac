//! Calls about orders.

use pointsman_core::Tenant;
use pointsman_core::chain::OrderKey;
use reqwest::{Method, RequestBuilder};
use serde::Serialize;

use super::{Client, ClientResult, OrderQuery, with_idempotency_key};
use crate::{AddOrdersResponse, ChangeOrderBody, OrderBody, OrderList};

/// An order's key and the tenant it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantOrderKey {
    /// The order's path and id.
    pub key: OrderKey,
    /// The token's tenant, or `default`, if not given.
    pub tenant: Option<Tenant>,
}

impl From<OrderKey> for TenantOrderKey {
    fn from(key: OrderKey) -> Self {
        Self { key, tenant: None }
    }
}

impl Client {
    /// Lists one page of orders, by path.
    pub async fn list_orders(&self, query: &OrderQuery) -> ClientResult<OrderList> {
        self.send_for_json(
            self.build_get_request_with_parameters(&["api", "v1", "orders"], &query.to_parameters())?,
        )
        .await
    }

    /// Reads one order.
    pub async fn read_order(&self, order: &TenantOrderKey) -> ClientResult<OrderBody> {
        self.send_for_json(self.build_order_request(Method::GET, order, &[])?).await
    }

    /// Adds one order ([`crate::NewOrderBody`]), or a sequence of 1 to 1,000 of them. With an idempotency key, a repeat
    /// adds nothing and returns the first response.
    pub async fn add_orders(
        &self,
        orders: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> ClientResult<AddOrdersResponse> {
        let request = self.build_post_request(&["api", "v1", "orders"])?.json(orders);
        self.send_for_json(with_idempotency_key(request, idempotency_key)).await
    }

    /// Changes an order's value, node or planned time. Refused while a step of it runs.
    pub async fn change_order(
        &self,
        order: &TenantOrderKey,
        change: &ChangeOrderBody,
    ) -> ClientResult<OrderBody> {
        self.send_for_json(self.build_order_request(Method::PUT, order, &[])?.json(change)).await
    }

    /// Suspends an order at its node. A running step finishes.
    pub async fn suspend_order(&self, order: &TenantOrderKey) -> ClientResult<OrderBody> {
        self.send_for_json(self.build_order_request(Method::POST, order, &["suspend"])?).await
    }

    /// Resumes a suspended order.
    pub async fn resume_order(&self, order: &TenantOrderKey) -> ClientResult<OrderBody> {
        self.send_for_json(self.build_order_request(Method::POST, order, &["resume"])?).await
    }

    /// Removes an order; returns it as it was.
    pub async fn remove_order(&self, order: &TenantOrderKey) -> ClientResult<OrderBody> {
        self.send_for_json(self.build_order_request(Method::DELETE, order, &[])?).await
    }

    fn build_order_request(
        &self,
        method: Method,
        order: &TenantOrderKey,
        trailing_segments: &[&str],
    ) -> ClientResult<RequestBuilder> {
        let mut url = self.order_or_chain_url("orders", &order.key.to_string(), trailing_segments)?;
        if let Some(tenant) = &order.tenant {
            url.query_pairs_mut().append_pair("tenant", tenant.as_str());
        }
        Ok(self.build_request(method, url))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_requests_have_an_unescaped_path_and_the_tenant() {
        let client = Client::new("http://127.0.0.1:7646", None).unwrap();
        let mut order = TenantOrderKey::from("/a-b/c.d,117".parse::<OrderKey>().unwrap());
        let request =
            client.build_order_request(Method::POST, &order, &["suspend"]).unwrap().build().unwrap();
        assert_eq!(request.url().path(), "/api/v1/orders/a-b/c.d,117/suspend");
        assert_eq!(request.url().query(), None);
        order.tenant = Some(Tenant::new("shop").unwrap());
        let request = client.build_order_request(Method::GET, &order, &[]).unwrap().build().unwrap();
        assert_eq!(request.url().query(), Some("tenant=shop"));
    }
}
