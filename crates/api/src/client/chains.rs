//! Calls about chains and their rules.

use pointsman_core::RuleKind;
use pointsman_core::chain::{ChainNodeAction, ChainNodeId, ChainPath};
use reqwest::{Method, RequestBuilder};

use super::{Client, ClientResult};
use crate::{ChainDetail, ChainList, RuleRequestBody, SetChainNodeActionBody, SetChainStateBody};

impl Client {
    /// Lists all chains, by path.
    pub async fn list_chains(&self) -> ClientResult<ChainList> {
        self.send_for_json(self.build_get_request(&["api", "v1", "chains"])?).await
    }

    /// Reads one chain.
    pub async fn read_chain(&self, chain: &ChainPath) -> ClientResult<ChainDetail> {
        self.send_for_json(self.build_chain_request(Method::GET, chain, &[])?).await
    }

    /// Stops a chain, or starts it again. When this returns, no step of a stopped chain starts.
    pub async fn set_chain_stopped(&self, chain: &ChainPath, stopped: bool) -> ClientResult<ChainDetail> {
        let state = if stopped { "stopped" } else { "running" }.into();
        let request = self.build_chain_request(Method::PUT, chain, &["state"])?;
        self.send_for_json(request.json(&SetChainStateBody { state })).await
    }

    /// Sets what happens to orders at a node of a chain.
    pub async fn set_chain_node_action(
        &self,
        chain: &ChainPath,
        node: &ChainNodeId,
        action: ChainNodeAction,
    ) -> ClientResult<ChainDetail> {
        let request = self.build_chain_request(Method::PUT, chain, &["nodes", node.as_str(), "action"])?;
        self.send_for_json(request.json(&SetChainNodeActionBody { action })).await
    }

    /// Pauses or blocks the steps of a chain. When this returns, no new attempt starts.
    pub async fn set_chain_rule(
        &self,
        kind: RuleKind,
        chain: &ChainPath,
        body: &RuleRequestBody,
    ) -> ClientResult<ChainDetail> {
        self.send_for_json(self.build_chain_request(Method::PUT, chain, &[kind.as_str()])?.json(body)).await
    }

    /// Deletes a pause or a block of a chain.
    pub async fn delete_chain_rule(
        &self,
        kind: RuleKind,
        chain: &ChainPath,
        body: &RuleRequestBody,
    ) -> ClientResult<ChainDetail> {
        self.send_for_json(self.build_chain_request(Method::DELETE, chain, &[kind.as_str()])?.json(body))
            .await
    }

    fn build_chain_request(
        &self,
        method: Method,
        chain: &ChainPath,
        trailing_segments: &[&str],
    ) -> ClientResult<RequestBuilder> {
        Ok(self.build_request(method, self.order_or_chain_url("chains", chain.as_str(), trailing_segments)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slashes_of_chain_paths_are_not_escaped() {
        let client = Client::new("http://127.0.0.1:7646", None).unwrap();
        let node = "x".parse().unwrap();
        let chain = ChainPath::new("/a/b").unwrap();
        let segments = ["nodes", ChainNodeId::as_str(&node), "action"];
        let request = client.build_chain_request(Method::PUT, &chain, &segments).unwrap().build().unwrap();
        assert_eq!(request.url().path(), "/api/v1/chains/a/b/nodes/x/action");
    }
}
