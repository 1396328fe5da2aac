//! Calls about tasks and runs of sources.

use reqwest::Method;

use super::queries::QueryParameters;
use super::{Client, ClientResult, LogQuery, TaskQuery, with_idempotency_key};
use crate::{CollectionRunResponse, LogList, TaskDetail, TaskList, TaskWhyBody};

impl Client {
    /// Lists one page of tasks, the newest first.
    pub async fn list_tasks(&self, query: &TaskQuery) -> ClientResult<TaskList> {
        self.send_for_json(
            self.build_get_request_with_parameters(&["api", "v1", "tasks"], &query.to_parameters())?,
        )
        .await
    }

    /// Reads a task with its attempts and its result.
    pub async fn read_task(&self, id: &str) -> ClientResult<TaskDetail> {
        self.send_for_json(self.build_get_request(&["api", "v1", "tasks", id])?).await
    }

    /// Reads the lines that a task's log has now.
    pub async fn read_task_logs(&self, id: &str, query: &LogQuery) -> ClientResult<LogList> {
        self.send_for_json(
            self.build_get_request_with_parameters(
                &["api", "v1", "tasks", id, "logs"],
                &query.to_parameters(),
            )?,
        )
        .await
    }

    /// Reads why a task does not run: the gates it has to pass before it starts.
    pub async fn read_task_why(&self, id: &str) -> ClientResult<TaskWhyBody> {
        self.send_for_json(self.build_get_request(&["api", "v1", "tasks", id, "why"])?).await
    }

    /// Runs a task in `error` again.
    pub async fn retry_task(&self, id: &str) -> ClientResult<TaskDetail> {
        self.send_for_json(self.build_post_request(&["api", "v1", "tasks", id, "retry"])?).await
    }

    /// Ends a task; a running attempt is stopped.
    pub async fn cancel_task(&self, id: &str) -> ClientResult<TaskDetail> {
        self.send_for_json(self.build_post_request(&["api", "v1", "tasks", id, "cancel"])?).await
    }

    /// Synchronises a source's collection. Returns its task, and whether this call created it: a task that is queued
    /// or running already is returned instead. With an idempotency key, a repeat creates nothing and returns the same
    /// task.
    pub async fn run_collection(
        &self,
        source: &str,
        collection: &str,
        idempotency_key: Option<&str>,
    ) -> ClientResult<(CollectionRunResponse, bool)> {
        let mut parameters = QueryParameters::default();
        parameters.add("source", &Some(source));
        parameters.add("collection", &Some(collection));
        let mut url = self.resource_url(&["tasks"])?;
        parameters.append_to(&mut url);
        let request = self.build_request(Method::POST, url);
        self.send_for_json_and_created_flag(with_idempotency_key(request, idempotency_key)).await
    }
}
