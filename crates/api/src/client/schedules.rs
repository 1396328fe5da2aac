//! Calls about schedules and their fires.

use pointsman_core::RuleKind;
use reqwest::Method;

use super::queries::QueryParameters;
use super::{Client, ClientResult, with_idempotency_key};
use crate::{FireList, RuleRequestBody, RunScheduleResponse, ScheduleDetail, ScheduleList};

impl Client {
    /// Lists all schedules, page by page.
    pub async fn list_schedules(&self) -> ClientResult<ScheduleList> {
        let mut all = self.list_schedule_page(None).await?;
        while let Some(cursor) = all.next.take() {
            let page = self.list_schedule_page(Some(&cursor)).await?;
            all.schedules.extend(page.schedules);
            all.next = page.next;
        }
        Ok(all)
    }

    async fn list_schedule_page(&self, cursor: Option<&str>) -> ClientResult<ScheduleList> {
        let mut parameters = QueryParameters::default();
        parameters.add("cursor", &cursor);
        self.send_for_json(self.build_get_request_with_parameters(&["api", "v1", "schedules"], &parameters)?)
            .await
    }

    /// Reads one schedule, by its name or as `source/collection`.
    pub async fn read_schedule(&self, name: &str) -> ClientResult<ScheduleDetail> {
        self.send_for_json(self.build_get_request(&["api", "v1", "schedules", name])?).await
    }

    /// Lists the outcomes of a schedule's planned times, the latest first; with `before`, only earlier ones.
    pub async fn list_fires(
        &self,
        name: &str,
        before: Option<&str>,
        limit: Option<u32>,
    ) -> ClientResult<FireList> {
        let mut parameters = QueryParameters::default();
        parameters.add("before", &before);
        parameters.add("limit", &limit);
        self.send_for_json(
            self.build_get_request_with_parameters(&["api", "v1", "schedules", name, "fires"], &parameters)?,
        )
        .await
    }

    /// Fires a schedule now, besides its planned times. With an idempotency key, a repeat creates nothing and returns
    /// the first response.
    pub async fn run_schedule(
        &self,
        name: &str,
        idempotency_key: Option<&str>,
    ) -> ClientResult<RunScheduleResponse> {
        let request = self.build_post_request(&["api", "v1", "schedules", name, "run"])?;
        self.send_for_json(with_idempotency_key(request, idempotency_key)).await
    }

    /// Pauses or blocks a schedule. A schedule has no tenants: the body may give a reason only.
    pub async fn set_schedule_rule(
        &self,
        kind: RuleKind,
        name: &str,
        body: &RuleRequestBody,
    ) -> ClientResult<ScheduleDetail> {
        let url = self.resource_url(&["api", "v1", "schedules", name, kind.as_str()])?;
        self.send_for_json(self.build_request(Method::PUT, url).json(body)).await
    }

    /// Deletes a pause or a block of a schedule.
    pub async fn delete_schedule_rule(&self, kind: RuleKind, name: &str) -> ClientResult<ScheduleDetail> {
        let url = self.resource_url(&["api", "v1", "schedules", name, kind.as_str()])?;
        self.send_for_json(self.build_request(Method::DELETE, url)).await
    }
}
