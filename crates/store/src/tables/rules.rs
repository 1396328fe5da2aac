//! The table of rules.

use pointsman_core::{Rule, RuleKind, RuleScope, Tenant};

use crate::error::TableResult;

/// Pause and block rules.
pub trait RuleTable {
    /// Lists all rules by scope, tenant and kind.
    fn list_rules(&mut self) -> TableResult<Vec<Rule>>;

    fn write_rule(&mut self, rule: &Rule) -> TableResult<()>;

    fn delete_rule(&mut self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> TableResult<()>;
}
