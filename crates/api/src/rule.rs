//! JSON bodies about rules.

use pointsman_core::{Rule, RuleKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A rule in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleBody {
    /// `pause` or `block`.
    #[schema(value_type = String)]
    pub kind: RuleKind,
    /// The kind of its target: a `handler`, a `collection`, a `schedule` or a `chain`.
    #[serde(rename = "space")]
    pub target_kind: String,
    /// The name of its target; for a collection `source/collection`, for a chain its path.
    pub name: String,
    /// The tenant whose tasks the rule applies to; null if it applies to all tenants.
    pub tenant: Option<String>,
    /// The token or the program that set the rule.
    #[serde(rename = "by")]
    pub set_by: String,
    /// Why the rule was set; may be empty.
    pub reason: String,
    /// When the rule was set.
    pub since: String,
}

impl From<&Rule> for RuleBody {
    fn from(rule: &Rule) -> Self {
        Self {
            kind: rule.kind,
            target_kind: rule.scope.kind_name().into(),
            name: rule.scope.name(),
            tenant: rule.tenant.as_ref().map(ToString::to_string),
            set_by: rule.set_by.clone(),
            reason: rule.reason.clone(),
            since: rule.since.to_string(),
        }
    }
}

/// A request to set or delete a pause or a block. All members are optional, and so is the body.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleRequestBody {
    /// The rule applies only to the tasks of this tenant; to those of all tenants if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Why the rule is set, for those who ask why a task waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
