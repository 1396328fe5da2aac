//! One method a call of the API.

use pointsman_core::RuleKind;
use reqwest::Method;
use serde::Serialize;

use super::query::Pairs;
use super::{Client, EventQuery, Result, TaskQuery};
use crate::{
    Adopted, Emitted, EventDetail, EventSeq, HandlerDetail, HandlerList, Health, HoldBody, LogList,
    ObjectDetail, TaskDetail, TaskList,
};

/// Events and objects.
impl Client {
    /// Emits one event, or a sequence of them, all or nothing. When this answers, they are durable.
    ///
    /// With an idempotency key the call may be repeated: a repeat emits nothing and answers the same.
    pub async fn emit(&self, events: &impl Serialize, idempotency_key: Option<&str>) -> Result<Emitted> {
        let mut request = self.request(Method::POST, self.at(&["api", "v1", "events"])?).json(events);
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        self.json(request).await
    }

    /// A stretch of the journal. Waits as long as the query's own timeout says.
    pub async fn events(&self, query: &EventQuery) -> Result<EventSeq> {
        let request = self.ask(&["api", "v1", "events"], &query.pairs())?;
        match query.timeout {
            Some(_) => self.read(self.send(request).await?).await,
            None => self.json(request).await,
        }
    }

    pub async fn event(&self, id: u64) -> Result<EventDetail> {
        self.json(self.get(&["api", "v1", "events", &id.to_string()])?).await
    }

    /// An object's chain of events.
    pub async fn object(&self, key: &str, tenant: Option<&str>) -> Result<ObjectDetail> {
        let mut pairs = Pairs::default();
        pairs.add("tenant", &tenant);
        self.json(self.ask(&["api", "v1", "objects", key], &pairs)?).await
    }

    pub async fn health(&self) -> Result<Health> {
        self.json(self.get(&["healthz"])?).await
    }
}

/// Tasks.
impl Client {
    pub async fn tasks(&self, query: &TaskQuery) -> Result<TaskList> {
        self.json(self.ask(&["api", "v1", "tasks"], &query.pairs())?).await
    }

    pub async fn task(&self, id: &str) -> Result<TaskDetail> {
        self.json(self.get(&["api", "v1", "tasks", id])?).await
    }

    /// The lines that its log has now.
    pub async fn logs(&self, id: &str) -> Result<LogList> {
        self.json(self.get(&["api", "v1", "tasks", id, "logs"])?).await
    }

    /// Runs a task in `error` again.
    pub async fn retry(&self, id: &str) -> Result<TaskDetail> {
        let url = self.at(&["api", "v1", "tasks", id, "retry"])?;
        self.json(self.request(Method::POST, url)).await
    }

    /// Ends a task; an attempt that runs is stopped.
    pub async fn cancel(&self, id: &str) -> Result<TaskDetail> {
        let url = self.at(&["api", "v1", "tasks", id, "cancel"])?;
        self.json(self.request(Method::POST, url)).await
    }
}

/// Handlers and their rules.
impl Client {
    pub async fn handlers(&self) -> Result<HandlerList> {
        self.json(self.get(&["api", "v1", "handlers"])?).await
    }

    pub async fn handler(&self, name: &str) -> Result<HandlerDetail> {
        self.json(self.get(&["api", "v1", "handlers", name])?).await
    }

    /// Holds a handler's tasks back. When this answers, no new attempt starts.
    pub async fn hold(&self, kind: RuleKind, handler: &str, body: &HoldBody) -> Result<HandlerDetail> {
        let url = self.at(&["api", "v1", "handlers", handler, kind.as_str()])?;
        self.json(self.request(Method::PUT, url).json(body)).await
    }

    /// Lifts a rule.
    pub async fn release(&self, kind: RuleKind, handler: &str, body: &HoldBody) -> Result<HandlerDetail> {
        let url = self.at(&["api", "v1", "handlers", handler, kind.as_str()])?;
        self.json(self.request(Method::DELETE, url).json(body)).await
    }

    /// Takes up a handler's `missing` tasks.
    pub async fn adopt(&self, handler: &str) -> Result<Adopted> {
        let url = self.at(&["api", "v1", "handlers", handler, "adopt"])?;
        self.json(self.request(Method::POST, url)).await
    }
}
