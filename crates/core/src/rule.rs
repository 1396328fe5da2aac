//! Rules hold a handler's tasks back.

use serde::{Deserialize, Serialize};

use crate::{HandlerName, Tenant, Timestamp};

/// Who may set a rule, and who may lift it. Both may stand at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// An operator's.
    Pause,
    /// An admin's.
    Block,
}

impl RuleKind {
    pub const ALL: [Self; 2] = [Self::Pause, Self::Block];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Block => "block",
        }
    }
}

/// A standing rule: no new attempt of this handler's tasks starts while it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub kind: RuleKind,
    pub handler: HandlerName,
    /// One tenant's queue of the handler; all of them if not given.
    pub tenant: Option<Tenant>,
    pub by: String,
    pub reason: String,
    pub since: Timestamp,
}

impl Rule {
    /// Whether this rule holds that queue.
    pub fn holds(&self, handler: &HandlerName, tenant: &Tenant) -> bool {
        self.handler == *handler && self.tenant.as_ref().is_none_or(|t| t == tenant)
    }

    /// Whether the other rule speaks of the same thing, so that it replaces this one.
    pub fn same_place(&self, other: &Self) -> bool {
        self.kind == other.kind && self.handler == other.handler && self.tenant == other.tenant
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_a_tenant_holds_them_all() {
        let handler = HandlerName::new("index").unwrap();
        let (a, b) = (Tenant::new("a").unwrap(), Tenant::new("b").unwrap());
        let mut rule = Rule {
            kind: RuleKind::Pause,
            handler: handler.clone(),
            tenant: None,
            by: "ops".into(),
            reason: String::new(),
            since: Timestamp::MIN,
        };
        assert!(rule.holds(&handler, &a) && rule.holds(&handler, &b));
        rule.tenant = Some(a.clone());
        assert!(rule.holds(&handler, &a) && !rule.holds(&handler, &b));
        assert!(!rule.holds(&HandlerName::new("other").unwrap(), &a));
    }
}
