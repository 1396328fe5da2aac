//! Pause and block rules.

use std::borrow::Cow;

use pointsman_core::{Rule, RuleKind, RuleScope, Tenant, Timestamp};

use super::columns;
use crate::error::{Fault, TableResult};

columns! {
    /// The columns of a rule.
    RuleColumns<'a> key(kind, space, name, tenant) {
        kind: Cow<'a, str>,
        /// The kind of the rule's scope.
        space: Cow<'a, str>,
        name: Cow<'a, str>,
        /// Empty for all tenants.
        tenant: Cow<'a, str>,
        by: Cow<'a, str>,
        reason: Cow<'a, str>,
        since: i64,
    }
}

impl<'a> RuleColumns<'a> {
    pub fn from_rule(rule: &'a Rule) -> Self {
        Self {
            kind: rule.kind.as_str().into(),
            space: rule.scope.kind_name().into(),
            name: rule.scope.name().to_string().into(),
            tenant: rule.tenant.as_ref().map_or("", Tenant::as_str).into(),
            by: rule.set_by.as_str().into(),
            reason: rule.reason.as_str().into(),
            since: rule.since.micros(),
        }
    }

    pub fn into_rule(self) -> TableResult<Rule> {
        let kind = RuleKind::ALL.into_iter().find(|kind| kind.as_str() == self.kind);
        let scope = RuleScope::parse(&self.space, &self.name);
        let tenant = Some(self.tenant).filter(|name| !name.is_empty());
        Ok(Rule {
            kind: kind.ok_or_else(|| Fault::damaged("a rule has an unknown kind"))?,
            scope: scope.ok_or_else(|| Fault::damaged("a rule has an unknown scope"))?,
            tenant: tenant.map(Tenant::new).transpose().map_err(Fault::damaged)?,
            set_by: self.by.into(),
            reason: self.reason.into(),
            since: Timestamp::from_micros(self.since),
        })
    }
}

columns! {
    /// The columns of a rule for a tenant that has no event yet, in a store whose rules name tenants by their uuid.
    UnknownTenantRuleColumns<'a> key(kind, space, name, canvas_id) {
        kind: Cow<'a, str>,
        /// The kind of the rule's scope, as `scheduling_rules.event_space` stores it: `WORKER`, `SYNC`, `CRON` or `ORDER`.
        space: Cow<'a, str>,
        name: Cow<'a, str>,
        /// The tenant's uuid.
        canvas_id: Cow<'a, [u8]>,
        since: i64,
    }
}
