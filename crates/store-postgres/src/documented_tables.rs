//! Converts rules and tenants to the columns of the documented tables.

use pointsman_core::{Rule, RuleKind, RuleScope, Tenant};
use pointsman_store::error::TableResult;
use pointsman_store::store_copy::replace_nul;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::rows::{read_column, read_time};
use crate::session::{Query, query};
use crate::writer_connection::{BoxedParam, params};

/// The namespace of the version 5 uuids of tenants.
const TENANT_UUID_NAMESPACE: Uuid = Uuid::from_u128(0x6e1f_7a54_2c0b_5d0e_9d55_8c1a_40b7_13f2);

/// Returns the `canvas_id` of a tenant: a uuid made of its name; nil means all tenants.
pub(crate) fn canvas_id_of_tenant(tenant: Option<&Tenant>) -> Uuid {
    match tenant {
        Some(tenant) => Uuid::new_v5(&TENANT_UUID_NAMESPACE, tenant.as_str().as_bytes()),
        None => Uuid::nil(),
    }
}

/// Returns the `event_space` of a rule with this scope.
pub(crate) fn event_space_of_rule(scope: &RuleScope) -> &'static str {
    match scope {
        RuleScope::Handler(_) => "WORKER",
        RuleScope::Collection(_) => "SYNC",
        RuleScope::Schedule(_) => "CRON",
        RuleScope::Chain(_) => "ORDER",
    }
}

fn decode_rule_scope(event_space: &str, name: &str) -> Option<RuleScope> {
    let scope_kind = match event_space {
        "WORKER" => "handler",
        "SYNC" => "collection",
        "CRON" => "schedule",
        "ORDER" => "chain",
        _ => return None,
    };
    RuleScope::parse(scope_kind, name)
}

/// Returns the query that writes a rule, and its parameters.
pub(crate) fn build_write_rule_query(rule: &Rule) -> (&'static Query, Vec<BoxedParam>) {
    let params = params![
        rule.kind.as_str(),
        canvas_id_of_tenant(rule.tenant.as_ref()),
        rule.tenant.as_ref().map(Tenant::to_string),
        rule.scope.name(),
        event_space_of_rule(&rule.scope),
        rule.since.micros(),
        replace_nul(&rule.set_by).into_owned(),
        replace_nul(&rule.reason).into_owned(),
    ];
    (query!("rule/write_rule", TEXT, UUID, TEXT, TEXT, TEXT, INT8, TEXT, TEXT), params)
}

/// True if a row of `rule/list_rules` is for a tenant that the store does not know yet.
pub(crate) fn is_rule_of_unknown_tenant(row: &Row) -> TableResult<bool> {
    Ok(read_column::<Option<&str>>(row, 3)?.is_none() && read_column::<Uuid>(row, 7)? != Uuid::nil())
}

/// Decodes rules from the columns rule_type, event_space, handler_name, tenant, by, reason, created_at, canvas_id. Rows
/// with an invalid name or an unknown tenant apply to nothing and are skipped.
pub(crate) fn decode_rules(rows: &[Row]) -> TableResult<Vec<Rule>> {
    let mut rules = Vec::new();
    for row in rows {
        let Some(scope) = decode_rule_scope(read_column(row, 1)?, read_column(row, 2)?) else { continue };
        let Ok(tenant) = read_column::<Option<&str>>(row, 3)?.map(Tenant::new).transpose() else { continue };
        if is_rule_of_unknown_tenant(row)? {
            continue;
        }
        rules.push(Rule {
            kind: match read_column::<&str>(row, 0)? {
                "block" => RuleKind::Block,
                _ => RuleKind::Pause,
            },
            scope,
            tenant,
            set_by: read_column(row, 4)?,
            reason: read_column(row, 5)?,
            since: read_time(row, 6)?,
        });
    }
    let sort_key =
        |rule: &Rule| (rule.scope.kind_name(), rule.scope.name(), rule.tenant.clone(), rule.kind.as_str());
    rules.sort_by_key(sort_key);
    Ok(rules)
}
