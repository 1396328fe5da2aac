//! The targets of rules below `/handlers`: handlers, sources and collections.

use std::str::FromStr;

use pointsman_api::HandlerDetail;
use pointsman_core::names::BadName;
use pointsman_core::{HandlerName, RuleScope};

use super::handler_bodies::{find_rule_target, keep_busiest_queues_in_detail};
use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::rules::RuleTarget;
use crate::rules::openapi::RuleCallOpenApiTexts;

/// A handler, a source, or a collection of a source.
pub(crate) struct HandlerRuleTarget(RuleScope);

impl FromStr for HandlerRuleTarget {
    type Err = BadName;
    fn from_str(text: &str) -> Result<Self, BadName> {
        Ok(Self(match text.contains('/') {
            true => RuleScope::Collection(text.parse()?),
            false => RuleScope::Handler(HandlerName::new(text)?),
        }))
    }
}

impl RuleTarget for HandlerRuleTarget {
    type Detail = HandlerDetail;

    const OPENAPI_TEXTS: RuleCallOpenApiTexts = RuleCallOpenApiTexts {
        tag: "handlers",
        noun: "handler",
        parameter: ("name", "a handler, a source, or `source%2Fcollection`"),
        pause_effect: "After the response, no new attempt starts.",
        unpause_effect: "",
    };

    fn scope(&self) -> RuleScope {
        self.0.clone()
    }

    async fn find_target_detail(&self, app: &App, caller: &Caller) -> Result<HandlerDetail, Problem> {
        find_rule_target(app, caller, &self.0).await.map(keep_busiest_queues_in_detail)
    }

    fn clear_rules_in_body(detail: &mut HandlerDetail) {
        detail.handler.rules.clear();
    }
}
