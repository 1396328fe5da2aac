//! One method a call of the API: events, tasks, handlers.

use pointsman_core::RuleKind;
use reqwest::Method;
use serde::Serialize;

use super::query::Pairs;
use super::{Client, EventQuery, LogQuery, Result, TaskQuery, with_idempotency_key};
use crate::{
    AdoptBody, Adopted, Emitted, EventDetail, EventSeq, HandlerDetail, HandlerList, Health, HoldBody,
    LogList, ObjectDetail, RedriveBody, RedriveCount, RedriveJob, RedriveList, SourceRun, TaskDetail,
    TaskList, WhyBody,
};

/// Events and objects.
impl Client {
    /// Emits one event, or a sequence of them, all or nothing. When this answers, they are durable.
    ///
    /// With an idempotency key the call may be repeated: a repeat emits nothing and answers the same.
    pub async fn emit(&self, events: &impl Serialize, idempotency_key: Option<&str>) -> Result<Emitted> {
        let request = self.post(&["api", "v1", "events"])?.json(events);
        self.json(with_idempotency_key(request, idempotency_key)).await
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

    /// An object's chain of events, and its lanes.
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
    pub async fn logs(&self, id: &str, query: &LogQuery) -> Result<LogList> {
        self.json(self.ask(&["api", "v1", "tasks", id, "logs"], &query.pairs())?).await
    }

    /// The gates that it has to pass before it runs.
    pub async fn why(&self, id: &str) -> Result<WhyBody> {
        self.json(self.get(&["api", "v1", "tasks", id, "why"])?).await
    }

    /// Runs a task in `error` again.
    pub async fn retry(&self, id: &str) -> Result<TaskDetail> {
        self.json(self.post(&["api", "v1", "tasks", id, "retry"])?).await
    }

    /// Ends a task; an attempt that runs is stopped.
    pub async fn cancel(&self, id: &str) -> Result<TaskDetail> {
        self.json(self.post(&["api", "v1", "tasks", id, "cancel"])?).await
    }

    /// Synchronises a source's collection. Answers its task, and whether this call made it: one that is queued or
    /// running already is as good. With an idempotency key, a repeat creates nothing and answers the same task.
    pub async fn run(
        &self,
        source: &str,
        collection: &str,
        idempotency_key: Option<&str>,
    ) -> Result<(SourceRun, bool)> {
        let mut pairs = Pairs::default();
        pairs.add("source", &Some(source));
        pairs.add("collection", &Some(collection));
        let mut url = self.at(&["tasks"])?;
        pairs.append_to(&mut url);
        self.json_created(with_idempotency_key(self.request(Method::POST, url), idempotency_key)).await
    }
}

/// Redrives.
impl Client {
    /// Counts what a redrive would run again.
    pub async fn redrive_count(&self, body: &RedriveBody) -> Result<RedriveCount> {
        let body = RedriveBody { dry_run: true, ..body.clone() };
        self.json(self.post(&["api", "v1", "tasks", "redrive"])?.json(&body)).await
    }

    /// Begins to run tasks in `error` again. Answers at once; the job goes on.
    pub async fn redrive(&self, body: &RedriveBody) -> Result<RedriveJob> {
        let body = RedriveBody { dry_run: false, ..body.clone() };
        self.json(self.post(&["api", "v1", "tasks", "redrive"])?.json(&body)).await
    }

    pub async fn redrives(&self) -> Result<RedriveList> {
        self.json(self.get(&["api", "v1", "redrives"])?).await
    }

    pub async fn redrive_job(&self, id: &str) -> Result<RedriveJob> {
        self.json(self.get(&["api", "v1", "redrives", id])?).await
    }

    /// Stops a redrive. What it has run again stays so.
    pub async fn stop_redrive(&self, id: &str) -> Result<RedriveJob> {
        let url = self.at(&["api", "v1", "redrives", id])?;
        self.json(self.request(Method::DELETE, url)).await
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

    /// Holds the tasks of a handler, a source or a collection (`source/collection`) back. When this answers, no
    /// new attempt starts.
    pub async fn hold(&self, kind: RuleKind, name: &str, body: &HoldBody) -> Result<HandlerDetail> {
        let url = self.at(&["api", "v1", "handlers", name, kind.as_str()])?;
        self.json(self.request(Method::PUT, url).json(body)).await
    }

    /// Lifts a rule.
    pub async fn release(&self, kind: RuleKind, name: &str, body: &HoldBody) -> Result<HandlerDetail> {
        let url = self.at(&["api", "v1", "handlers", name, kind.as_str()])?;
        self.json(self.request(Method::DELETE, url).json(body)).await
    }

    /// Takes up a handler's `missing` tasks, and replays history to it if the body says from where. While the
    /// answer says that there is more, the same call goes on.
    pub async fn adopt(&self, handler: &str, body: &AdoptBody) -> Result<Adopted> {
        self.json(self.post(&["api", "v1", "handlers", handler, "adopt"])?.json(body)).await
    }
}
