//! One method a call of the API: schedules, nodes, the audit, the configuration.

use pointsman_core::RuleKind;
use reqwest::Method;

use super::query::Pairs;
use super::{Client, Result, with_idempotency_key};
use crate::{
    AuditList, ConfigBody, FireList, HoldBody, MeBody, NodeList, RanNow, ScheduleDetail, ScheduleList,
};

impl Client {
    /// All schedules, however many calls that takes.
    pub async fn schedules(&self) -> Result<ScheduleList> {
        let mut all = self.schedule_page(None).await?;
        while let Some(cursor) = all.next.take() {
            let page = self.schedule_page(Some(&cursor)).await?;
            all.schedules.extend(page.schedules);
            all.next = page.next;
        }
        Ok(all)
    }

    async fn schedule_page(&self, cursor: Option<&str>) -> Result<ScheduleList> {
        let mut pairs = Pairs::default();
        pairs.add("cursor", &cursor);
        self.json(self.ask(&["api", "v1", "schedules"], &pairs)?).await
    }

    /// One schedule, by its name or as `source/collection`.
    pub async fn schedule(&self, name: &str) -> Result<ScheduleDetail> {
        self.json(self.get(&["api", "v1", "schedules", name])?).await
    }

    /// What became of its planned times, the latest first; with `before`, of those before it.
    pub async fn fires(&self, name: &str, before: Option<&str>, limit: Option<u32>) -> Result<FireList> {
        let mut pairs = Pairs::default();
        pairs.add("before", &before);
        pairs.add("limit", &limit);
        self.json(self.ask(&["api", "v1", "schedules", name, "fires"], &pairs)?).await
    }

    /// Makes at once what the schedule makes at its planned times. With an idempotency key, a repeat makes nothing and
    /// answers the same.
    pub async fn run_schedule(&self, name: &str, idempotency_key: Option<&str>) -> Result<RanNow> {
        let request = self.post(&["api", "v1", "schedules", name, "run"])?;
        self.json(with_idempotency_key(request, idempotency_key)).await
    }

    /// Keeps a schedule from firing. A schedule has no tenants: the body may give a reason alone.
    pub async fn hold_schedule(&self, kind: RuleKind, name: &str, body: &HoldBody) -> Result<ScheduleDetail> {
        let url = self.at(&["api", "v1", "schedules", name, kind.as_str()])?;
        self.json(self.request(Method::PUT, url).json(body)).await
    }

    /// Lifts a rule of a schedule.
    pub async fn release_schedule(&self, kind: RuleKind, name: &str) -> Result<ScheduleDetail> {
        let url = self.at(&["api", "v1", "schedules", name, kind.as_str()])?;
        self.json(self.request(Method::DELETE, url)).await
    }

    /// Whose token this is.
    pub async fn me(&self) -> Result<MeBody> {
        self.json(self.get(&["api", "v1", "me"])?).await
    }

    pub async fn nodes(&self) -> Result<NodeList> {
        self.json(self.get(&["api", "v1", "nodes"])?).await
    }

    /// What people did, newest first; with `before`, before the deed of this number.
    pub async fn audit(&self, before: Option<i64>, limit: Option<u32>) -> Result<AuditList> {
        let mut pairs = Pairs::default();
        pairs.add("before", &before);
        pairs.add("limit", &limit);
        self.json(self.ask(&["api", "v1", "audit"], &pairs)?).await
    }
    /// What the process that answers is set up with, and what became of the changes since.
    pub async fn config(&self) -> Result<ConfigBody> {
        self.json(self.get(&["api", "v1", "config"])?).await
    }
}
