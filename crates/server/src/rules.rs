//! Setting and lifting rules (pause, block) of handlers, collections, schedules and chains.

use pointsman_api::RuleBody;
use pointsman_core::{Rule, RuleKind, RuleScope, Tenant};

use crate::app_state::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// Sets a rule; replaces an existing one of the same kind and target.
pub(crate) async fn set_rule(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    scope: RuleScope,
    tenant: Option<Tenant>,
    reason: String,
) -> Result<(), Problem> {
    let (inner, caller) = (app.clone(), caller.clone());
    app.run_change_to_completion(async move {
        let target = describe_rule_target(&scope, tenant.as_ref());
        let set_by = caller.token_name.clone();
        inner
            .engine
            .set_rule(Rule { kind, scope, tenant, set_by, reason: reason.clone(), since: inner.now() })
            .await?;
        inner.record_audit_entry(&caller, kind.as_str(), target, reason).await;
        Ok(())
    })
    .await
}

/// Lifts a rule. Succeeds if there is none.
pub(crate) async fn lift_rule(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    scope: RuleScope,
    tenant: Option<Tenant>,
    reason: String,
) -> Result<(), Problem> {
    let (inner, caller) = (app.clone(), caller.clone());
    app.run_change_to_completion(async move {
        if inner.engine.lift_rule(kind, &scope, tenant.as_ref()).await? {
            let action = match kind {
                RuleKind::Pause => "unpause",
                RuleKind::Block => "unblock",
            };
            inner
                .record_audit_entry(&caller, action, describe_rule_target(&scope, tenant.as_ref()), reason)
                .await;
        }
        Ok(())
    })
    .await
}

/// The body of a rule as the caller may see it. A caller bound to a tenant does not see who set a rule for all tenants.
pub(crate) fn rule_body_visible_to(caller: &Caller, rule: &Rule) -> RuleBody {
    let mut body = RuleBody::from(rule);
    if is_rule_author_hidden(caller, rule) {
        body.set_by.clear();
    }
    body
}

/// Whether the setter of a rule is hidden from the caller. A schedule has no tenants, so its rules are shown in full.
pub(crate) fn is_rule_author_hidden(caller: &Caller, rule: &Rule) -> bool {
    let is_for_all_tenants = rule.tenant.is_none() && !matches!(rule.scope, RuleScope::Schedule(_));
    caller.bound_tenant.is_some() && is_for_all_tenants
}

/// Describes the target of a rule for the audit.
fn describe_rule_target(scope: &RuleScope, tenant: Option<&Tenant>) -> String {
    let (scope_kind, name) = (scope.kind_name(), scope.name());
    match tenant {
        Some(tenant) => format!("{scope_kind} {name} for {tenant}"),
        None => format!("{scope_kind} {name}"),
    }
}
