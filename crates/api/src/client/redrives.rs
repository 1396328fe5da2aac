//! Calls about redrives: running many failed tasks again.

use reqwest::Method;

use super::{Client, ClientResult};
use crate::{RedriveBody, RedriveDryRunResponse, RedriveJob, RedriveList};

impl Client {
    /// Counts the tasks that a redrive would run again, and runs none.
    pub async fn dry_run_redrive(&self, body: &RedriveBody) -> ClientResult<RedriveDryRunResponse> {
        let body = RedriveBody { dry_run: true, ..body.clone() };
        self.send_for_json(self.build_post_request(&["api", "v1", "tasks", "redrive"])?.json(&body)).await
    }

    /// Starts to run tasks in `error` again. Returns at once; the redrive continues on the server.
    pub async fn start_redrive(&self, body: &RedriveBody) -> ClientResult<RedriveJob> {
        let body = RedriveBody { dry_run: false, ..body.clone() };
        self.send_for_json(self.build_post_request(&["api", "v1", "tasks", "redrive"])?.json(&body)).await
    }

    /// Lists the running redrives of the node that responds, and the last ones that ended.
    pub async fn list_redrives(&self) -> ClientResult<RedriveList> {
        self.send_for_json(self.build_get_request(&["api", "v1", "redrives"])?).await
    }

    /// Reads the progress of a redrive.
    pub async fn read_redrive(&self, id: &str) -> ClientResult<RedriveJob> {
        self.send_for_json(self.build_get_request(&["api", "v1", "redrives", id])?).await
    }

    /// Stops a redrive. Tasks that it has already retried stay retried.
    pub async fn stop_redrive(&self, id: &str) -> ClientResult<RedriveJob> {
        let url = self.resource_url(&["api", "v1", "redrives", id])?;
        self.send_for_json(self.build_request(Method::DELETE, url)).await
    }
}
