//! Chains as targets of rules.

use pointsman_api::ChainDetail;
use pointsman_core::RuleScope;
use pointsman_core::chain::ChainPath;

use super::chain_bodies::find_chain;
use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::rules::RuleTarget;
use crate::rules::openapi::RuleCallOpenApiTexts;

impl RuleTarget for ChainPath {
    type Detail = ChainDetail;

    const OPENAPI_TEXTS: RuleCallOpenApiTexts = RuleCallOpenApiTexts {
        tag: "chains",
        noun: "chain",
        parameter: ("path", "a chain's path, not encoded, without its leading slash"),
        pause_effect: "After the response, no new attempt of a step starts.",
        unpause_effect: "",
    };

    fn scope(&self) -> RuleScope {
        RuleScope::Chain(self.clone())
    }

    async fn find_target_detail(&self, app: &App, caller: &Caller) -> Result<ChainDetail, Problem> {
        find_chain(app, caller, self).await
    }

    fn clear_rules_in_body(detail: &mut ChainDetail) {
        detail.chain.rules.clear();
    }
}
