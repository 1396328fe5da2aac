//! Rules.

use pointsman_core::{Rule, RuleKind, RuleScope, Tenant};
use pointsman_store::columns::RuleColumns;
use pointsman_store::expand_sql;
use pointsman_store::tables::RuleTable;
use rusqlite::Connection;

use super::SqliteTables;
use super::queries::{query_all, read_columns, write_columns};
use crate::error::TableResult;

impl RuleTable for SqliteTables {
    fn list_rules(&mut self) -> TableResult<Vec<Rule>> {
        list_rules(&self.conn)
    }

    fn write_rule(&mut self, rule: &Rule) -> TableResult<()> {
        let sql =
            expand_sql!("INSERT OR REPLACE INTO pointsman_rule (:rule_columns) VALUES (:rule_parameters)");
        write_columns(&self.conn, sql, &RuleColumns::from_rule(rule))
    }

    fn delete_rule(&mut self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> TableResult<()> {
        let sql = "DELETE FROM pointsman_rule WHERE kind = ?1 AND space = ?2 AND name = ?3 AND tenant = ?4";
        let tenant = tenant.map_or("", |t| t.as_str());
        self.conn.prepare_cached(sql)?.execute((kind.as_str(), scope.kind_name(), scope.name(), tenant))?;
        Ok(())
    }
}

pub(crate) fn list_rules(conn: &Connection) -> TableResult<Vec<Rule>> {
    let sql = expand_sql!("SELECT :rule_columns FROM pointsman_rule ORDER BY space, name, tenant, kind");
    query_all(conn, sql, [], |row| read_columns::<RuleColumns>(row)?.into_rule())
}
