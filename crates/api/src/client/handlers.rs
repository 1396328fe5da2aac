//! Calls about handlers and their rules.

use pointsman_core::RuleKind;
use reqwest::Method;

use super::{Client, ClientResult};
use crate::{AdoptMissingTasksBody, AdoptMissingTasksResponse, HandlerDetail, HandlerList, RuleRequestBody};

impl Client {
    /// Lists all handlers and sources.
    pub async fn list_handlers(&self) -> ClientResult<HandlerList> {
        self.send_for_json(self.build_get_request(&["api", "v1", "handlers"])?).await
    }

    /// Reads one handler or source with its routes, counts and rules.
    pub async fn read_handler(&self, name: &str) -> ClientResult<HandlerDetail> {
        self.send_for_json(self.build_get_request(&["api", "v1", "handlers", name])?).await
    }

    /// Pauses or blocks the tasks of a handler, a source or a collection (`source/collection`). When this returns, no
    /// new attempt starts.
    pub async fn set_handler_rule(
        &self,
        kind: RuleKind,
        name: &str,
        body: &RuleRequestBody,
    ) -> ClientResult<HandlerDetail> {
        let url = self.resource_url(&["api", "v1", "handlers", name, kind.as_str()])?;
        self.send_for_json(self.build_request(Method::PUT, url).json(body)).await
    }

    /// Deletes a pause or a block of a handler, a source or a collection.
    pub async fn delete_handler_rule(
        &self,
        kind: RuleKind,
        name: &str,
        body: &RuleRequestBody,
    ) -> ClientResult<HandlerDetail> {
        let url = self.resource_url(&["api", "v1", "handlers", name, kind.as_str()])?;
        self.send_for_json(self.build_request(Method::DELETE, url).json(body)).await
    }

    /// Adopts a handler's `missing` tasks, and replays history to it if the body says from where. While the response
    /// says that there is more, call it again to continue.
    pub async fn adopt_missing_tasks(
        &self,
        handler: &str,
        body: &AdoptMissingTasksBody,
    ) -> ClientResult<AdoptMissingTasksResponse> {
        self.send_for_json(self.build_post_request(&["api", "v1", "handlers", handler, "adopt"])?.json(body))
            .await
    }
}
