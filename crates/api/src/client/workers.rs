//! Calls of a pull worker, which claims tasks and reports how they ended.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, ClientResult};
use crate::worker::{
    AddLogsBody, AddLogsResponse, AttemptEndResponse, ClaimBody, ClaimedTaskList, DoneBody, FailBody,
    HeartbeatBody, HeartbeatResponse, SnoozeBody,
};

impl Client {
    /// Claims tasks. Waits as long as the body's own `wait` says.
    pub async fn claim_tasks(&self, body: &ClaimBody) -> ClientResult<ClaimedTaskList> {
        let request = self.build_post_request(&["api", "v1", "worker", "claim"])?.json(body);
        match body.wait {
            Some(_) => self.read_json(self.send(request).await?).await,
            None => self.send_for_json(request).await,
        }
    }

    /// Extends the lease of a claimed task.
    pub async fn send_heartbeat(&self, id: &str, body: &HeartbeatBody) -> ClientResult<HeartbeatResponse> {
        self.post_task_report(id, "heartbeat", body).await
    }

    /// Adds lines to the log of a claimed task.
    pub async fn add_task_logs(&self, id: &str, body: &AddLogsBody) -> ClientResult<AddLogsResponse> {
        self.post_task_report(id, "logs", body).await
    }

    /// Reports that the attempt succeeded, with the events it emits.
    pub async fn complete_task(&self, id: &str, body: &DoneBody) -> ClientResult<AttemptEndResponse> {
        self.post_task_report(id, "done", body).await
    }

    /// Reports that the attempt failed.
    pub async fn fail_task(&self, id: &str, body: &FailBody) -> ClientResult<AttemptEndResponse> {
        self.post_task_report(id, "fail", body).await
    }

    /// Puts the task off, at the cost of no retry.
    pub async fn snooze_task(&self, id: &str, body: &SnoozeBody) -> ClientResult<AttemptEndResponse> {
        self.post_task_report(id, "snooze", body).await
    }

    async fn post_task_report<T: DeserializeOwned>(
        &self,
        id: &str,
        report: &str,
        body: &impl Serialize,
    ) -> ClientResult<T> {
        self.send_for_json(self.build_post_request(&["api", "v1", "worker", id, report])?.json(body)).await
    }
}
