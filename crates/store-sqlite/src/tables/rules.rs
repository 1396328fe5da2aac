//! Rules.

use pointsman_core::{Rule, RuleKind, RuleScope, Tenant};
use pointsman_store::tables::RuleTable;
use rusqlite::Connection;

use super::SqliteTables;
use super::row::{query_all, read_text, read_time};
use crate::error::{Fault, TableResult};

impl RuleTable for SqliteTables {
    fn list_rules(&mut self) -> TableResult<Vec<Rule>> {
        list_rules(&self.conn)
    }

    fn write_rule(&mut self, rule: &Rule) -> TableResult<()> {
        let sql = "INSERT OR REPLACE INTO pointsman_rule (kind, space, name, tenant, by, reason, since)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        self.conn.prepare_cached(sql)?.execute((
            rule.kind.as_str(),
            rule.scope.kind_name(),
            rule.scope.name(),
            rule.tenant.as_ref().map_or("", |t| t.as_str()),
            &rule.set_by,
            &rule.reason,
            rule.since.micros(),
        ))?;
        Ok(())
    }

    fn delete_rule(&mut self, kind: RuleKind, scope: &RuleScope, tenant: Option<&Tenant>) -> TableResult<()> {
        let sql = "DELETE FROM pointsman_rule WHERE kind = ?1 AND space = ?2 AND name = ?3 AND tenant = ?4";
        let tenant = tenant.map_or("", |t| t.as_str());
        self.conn.prepare_cached(sql)?.execute((kind.as_str(), scope.kind_name(), scope.name(), tenant))?;
        Ok(())
    }
}

pub(crate) fn list_rules(conn: &Connection) -> TableResult<Vec<Rule>> {
    let sql = "SELECT kind, space, name, tenant, by, reason, since FROM pointsman_rule
               ORDER BY space, name, tenant, kind";
    query_all(conn, sql, [], |row| {
        let tenant = match read_text(row, 3)? {
            "" => None,
            name => Some(Tenant::new(name).map_err(Fault::damaged)?),
        };
        let scope = RuleScope::parse(read_text(row, 1)?, read_text(row, 2)?);
        Ok(Rule {
            kind: if read_text(row, 0)? == RuleKind::Block.as_str() {
                RuleKind::Block
            } else {
                RuleKind::Pause
            },
            scope: scope.ok_or_else(|| Fault::damaged("a rule has an unknown target"))?,
            tenant,
            set_by: row.get(4)?,
            reason: row.get(5)?,
            since: read_time(row, 6)?,
        })
    })
}
