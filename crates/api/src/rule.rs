//! Rules on the wire.

use pointsman_core::{Rule, RuleKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A standing rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleBody {
    /// `pause` or `block`.
    #[schema(value_type = String)]
    pub kind: RuleKind,
    /// What it holds: a `handler`, a `collection`, a `schedule` or a `chain`.
    pub space: String,
    /// Its name; of a collection `source/collection`, of a chain its path.
    pub name: String,
    /// Null if it holds all tenants.
    pub tenant: Option<String>,
    pub by: String,
    pub reason: String,
    pub since: String,
}

impl From<&Rule> for RuleBody {
    fn from(rule: &Rule) -> Self {
        Self {
            kind: rule.kind,
            space: rule.place.space().into(),
            name: rule.place.name(),
            tenant: rule.tenant.as_ref().map(ToString::to_string),
            by: rule.by.clone(),
            reason: rule.reason.clone(),
            since: rule.since.to_string(),
        }
    }
}

/// What a pause or a block may say. All of it is optional, the body too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldBody {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
