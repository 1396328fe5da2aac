//! Schedules as targets of rules. Their planned times are then skipped, and the ledger records it.

use pointsman_api::ScheduleDetail;
use pointsman_core::{RuleScope, ScheduleName, Tenant};

use super::schedule_bodies::find_schedule;
use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::rules::RuleTarget;
use crate::rules::openapi::RuleCallOpenApiTexts;

impl RuleTarget for ScheduleName {
    type Detail = ScheduleDetail;

    const OPENAPI_TEXTS: RuleCallOpenApiTexts = RuleCallOpenApiTexts {
        tag: "schedules",
        noun: "schedule",
        parameter: ("name", "a schedule's name, or `source%2Fcollection`"),
        pause_effect: "After the response, it no longer fires.",
        unpause_effect: " Missed times are caught up according to the schedule's `catch_up`.",
    };

    fn scope(&self) -> RuleScope {
        RuleScope::Schedule(self.clone())
    }

    fn select_tenant(_: &Caller, requested: Option<Tenant>) -> Result<Option<Tenant>, Problem> {
        match requested {
            None => Ok(None),
            Some(_) => Err(Problem::unprocessable("a schedule has no tenants; leave out `tenant`")
                .with_pointer("/tenant")),
        }
    }

    async fn find_target_detail(&self, app: &App, caller: &Caller) -> Result<ScheduleDetail, Problem> {
        find_schedule(app, caller, self).await
    }

    fn clear_rules_in_body(detail: &mut ScheduleDetail) {
        detail.schedule.rules.clear();
        detail.schedule.is_paused_or_blocked = false;
    }
}
