//! One method a call of the API: what a worker that fetches its tasks needs.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, Result};
use crate::worker::{
    ClaimBody, ClaimedList, DoneBody, Ended, FailBody, HeartbeatBody, Leased, Logged, LogsBody, SnoozeBody,
};

impl Client {
    /// Fetches tasks. Waits as long as the body's own `wait` says.
    pub async fn claim(&self, body: &ClaimBody) -> Result<ClaimedList> {
        let request = self.post(&["api", "v1", "worker", "claim"])?.json(body);
        match body.wait {
            Some(_) => self.read(self.send(request).await?).await,
            None => self.json(request).await,
        }
    }

    /// Keeps a task for longer.
    pub async fn heartbeat(&self, id: &str, body: &HeartbeatBody) -> Result<Leased> {
        self.of_worker(id, "heartbeat", body).await
    }

    /// Adds to a task's log.
    pub async fn add_logs(&self, id: &str, body: &LogsBody) -> Result<Logged> {
        self.of_worker(id, "logs", body).await
    }

    /// Ends a task well, with what it emits.
    pub async fn done(&self, id: &str, body: &DoneBody) -> Result<Ended> {
        self.of_worker(id, "done", body).await
    }

    pub async fn fail(&self, id: &str, body: &FailBody) -> Result<Ended> {
        self.of_worker(id, "fail", body).await
    }

    pub async fn snooze(&self, id: &str, body: &SnoozeBody) -> Result<Ended> {
        self.of_worker(id, "snooze", body).await
    }

    async fn of_worker<T: DeserializeOwned>(&self, id: &str, what: &str, body: &impl Serialize) -> Result<T> {
        self.json(self.post(&["api", "v1", "worker", id, what])?.json(body)).await
    }
}
