//! One method a call of the API: orders and chains.

use pointsman_core::chain::{Action, ChainPath, NodeId, OrderKey};
use pointsman_core::{RuleKind, Tenant};
use reqwest::{Method, RequestBuilder, Url};
use serde::Serialize;

use super::{Client, OrderQuery, Result, with_idempotency_key};
use crate::{
    AddedOrders, ChainDetail, ChainList, ChainStateBody, ChangeOrderBody, HoldBody, NodeActionBody,
    OrderBody, OrderList,
};

/// An order and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderName {
    pub key: OrderKey,
    /// The token's tenant, or `default`, if not given.
    pub tenant: Option<Tenant>,
}

impl From<OrderKey> for OrderName {
    fn from(key: OrderKey) -> Self {
        Self { key, tenant: None }
    }
}

/// Orders.
impl Client {
    /// Orders by path: one page, and where to read on.
    pub async fn orders(&self, query: &OrderQuery) -> Result<OrderList> {
        self.json(self.ask(&["api", "v1", "orders"], &query.pairs())?).await
    }

    pub async fn order(&self, order: &OrderName) -> Result<OrderBody> {
        self.json(self.order_request(Method::GET, order, &[])?).await
    }

    /// Adds one order ([`crate::NewOrderBody`]), or a sequence of 1 to 1,000 of them. With an idempotency key, a repeat
    /// adds nothing and answers the same.
    pub async fn add_orders(
        &self,
        orders: &impl Serialize,
        idempotency_key: Option<&str>,
    ) -> Result<AddedOrders> {
        self.json(with_idempotency_key(self.post(&["api", "v1", "orders"])?.json(orders), idempotency_key))
            .await
    }

    /// Gives an order another value, puts it at another node, or plans it for another time. Not while a step runs.
    pub async fn change_order(&self, order: &OrderName, change: &ChangeOrderBody) -> Result<OrderBody> {
        self.json(self.order_request(Method::PUT, order, &[])?.json(change)).await
    }

    /// Keeps an order where it stands. A step that runs is let end.
    pub async fn suspend_order(&self, order: &OrderName) -> Result<OrderBody> {
        self.json(self.order_request(Method::POST, order, &["suspend"])?).await
    }

    pub async fn resume_order(&self, order: &OrderName) -> Result<OrderBody> {
        self.json(self.order_request(Method::POST, order, &["resume"])?).await
    }

    /// Removes an order; answers it as it was.
    pub async fn remove_order(&self, order: &OrderName) -> Result<OrderBody> {
        self.json(self.order_request(Method::DELETE, order, &[])?).await
    }

    fn order_request(&self, method: Method, order: &OrderName, more: &[&str]) -> Result<RequestBuilder> {
        let mut url = self.address_below("orders", &order.key.to_string(), more)?;
        if let Some(tenant) = &order.tenant {
            url.query_pairs_mut().append_pair("tenant", tenant.as_str());
        }
        Ok(self.request(method, url))
    }
}

/// Chains.
impl Client {
    pub async fn chains(&self) -> Result<ChainList> {
        self.json(self.get(&["api", "v1", "chains"])?).await
    }

    pub async fn chain(&self, chain: &ChainPath) -> Result<ChainDetail> {
        self.json(self.of_chain(Method::GET, chain, &[])?).await
    }

    /// Stops a chain, or starts it again. When this answers, no step of a stopped one begins.
    pub async fn stop_chain(&self, chain: &ChainPath, stopped: bool) -> Result<ChainDetail> {
        let state = if stopped { "stopped" } else { "running" }.into();
        let request = self.of_chain(Method::PUT, chain, &["state"])?;
        self.json(request.json(&ChainStateBody { state })).await
    }

    /// Says what a node does.
    pub async fn set_node(&self, chain: &ChainPath, node: &NodeId, action: Action) -> Result<ChainDetail> {
        let request = self.of_chain(Method::PUT, chain, &["nodes", node.as_str(), "action"])?;
        self.json(request.json(&NodeActionBody { action })).await
    }

    /// Holds the steps of a chain back. When this answers, no new attempt starts.
    pub async fn hold_chain(
        &self,
        kind: RuleKind,
        chain: &ChainPath,
        body: &HoldBody,
    ) -> Result<ChainDetail> {
        self.json(self.of_chain(Method::PUT, chain, &[kind.as_str()])?.json(body)).await
    }

    /// Lifts a rule of a chain.
    pub async fn release_chain(
        &self,
        kind: RuleKind,
        chain: &ChainPath,
        body: &HoldBody,
    ) -> Result<ChainDetail> {
        self.json(self.of_chain(Method::DELETE, chain, &[kind.as_str()])?.json(body)).await
    }

    fn of_chain(&self, method: Method, chain: &ChainPath, more: &[&str]) -> Result<RequestBuilder> {
        Ok(self.request(method, self.address_below("chains", chain.as_str(), more)?))
    }

    /// The address of an absolute path, which is written raw without its leading slash.
    fn address_below(&self, what: &str, path: &str, more: &[&str]) -> Result<Url> {
        let mut segments = vec!["api", "v1", what];
        segments.extend(path.trim_start_matches('/').split('/'));
        segments.extend(more);
        self.at(&segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_raw() {
        let client = Client::new("http://127.0.0.1:7646", None).unwrap();
        let mut order = OrderName::from("/a-b/c.d,117".parse::<OrderKey>().unwrap());
        let request = client.order_request(Method::POST, &order, &["suspend"]).unwrap().build().unwrap();
        assert_eq!(request.url().path(), "/api/v1/orders/a-b/c.d,117/suspend");
        assert_eq!(request.url().query(), None);
        order.tenant = Some(Tenant::new("shop").unwrap());
        let request = client.order_request(Method::GET, &order, &[]).unwrap().build().unwrap();
        assert_eq!(request.url().query(), Some("tenant=shop"));
        let node = "x".parse().unwrap();
        let chain = ChainPath::new("/a/b").unwrap();
        let more = ["nodes", NodeId::as_str(&node), "action"];
        let request = client.of_chain(Method::PUT, &chain, &more).unwrap().build().unwrap();
        assert_eq!(request.url().path(), "/api/v1/chains/a/b/nodes/x/action");
    }
}
