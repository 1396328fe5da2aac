//! Rules.

use pointsman_core::{Rule, RuleKind, RuleScope, Tenant};
use pointsman_store::columns::RuleColumns;
use pointsman_store::error::TableResult;
use pointsman_store::tables::RuleTable;

use super::RedisTables;
use crate::cells::encode_row;
use crate::keys::Table;
use crate::rows;

impl RuleTable for RedisTables {
    fn list_rules(&mut self) -> TableResult<Vec<Rule>> {
        self.overlay.read_rules()
    }

    fn write_rule(&mut self, rule: &Rule) -> TableResult<()> {
        let field = rule_field(rule.kind, &rule.scope, rule.tenant.as_ref());
        self.overlay.write_row(Table::Rules, field, encode_row(&RuleColumns::from_rule(rule)));
        self.mark_registry_changed();
        Ok(())
    }

    fn delete_rule(&mut self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> TableResult<()> {
        self.overlay.delete_row(Table::Rules, rule_field(kind, scope, tenant));
        self.mark_registry_changed();
        Ok(())
    }
}

/// Returns the field of a rule: kind, scope and tenant are unique together.
fn rule_field(kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> Vec<u8> {
    let tenant = tenant.map_or("", |tenant| tenant.as_str());
    rows::encode_key_field(&[kind.as_str(), scope.kind_name(), &scope.name(), tenant])
}
