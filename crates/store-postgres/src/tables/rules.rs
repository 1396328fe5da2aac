//! Rules.

use pointsman_core::{Rule, RuleKind, RuleScope, Tenant};
use pointsman_store::error::TableResult;
use pointsman_store::tables::RuleTable;

use super::PgTables;
use crate::documented_tables::{build_write_rule_query, canvas_id_of_tenant, event_space_of_rule};
use crate::session::query;
use crate::writer_connection::{SqlCommand, params};

impl RuleTable for PgTables {
    fn list_rules(&mut self) -> TableResult<Vec<Rule>> {
        let rows = self.query_rows(query!("rule/list_rules"), vec![])?;
        crate::documented_tables::decode_rules(&rows)
    }

    fn write_rule(&mut self, rule: &Rule) -> TableResult<()> {
        self.mark_registry_changed();
        let (query, params) = build_write_rule_query(rule);
        self.add_to_batch(SqlCommand::Query(query, params));
        Ok(())
    }

    fn delete_rule(&mut self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> TableResult<()> {
        self.mark_registry_changed();
        let params =
            params![kind.as_str(), canvas_id_of_tenant(tenant), scope.name(), event_space_of_rule(scope)];
        self.add_to_batch(SqlCommand::Query(query!("rule/delete_rule", TEXT, UUID, TEXT, TEXT), params));
        Ok(())
    }
}
