//! Pausing and blocking handlers, collections, schedules and chains.

pub(crate) mod openapi;

use std::fmt::Display;
use std::future::Future;
use std::str::FromStr;

use axum::Json;
use axum::extract::State;
use axum::routing::put;
use pointsman_api::RuleBody;
use pointsman_core::{Rule, RuleKind, RuleScope, Tenant};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;

use crate::app_state::App;
use crate::auth::{Admin, Caller, Operator};
use crate::json_body::RuleRequest;
use crate::path_segment::PathSegment;
use crate::problem::Problem;
use openapi::RuleCallOpenApiTexts;

/// A thing that a rule can be set on, as the API names it.
pub(crate) trait RuleTarget: FromStr<Err: Display> + Send + Sync + 'static {
    /// The response of a call: the target after the change.
    type Detail: Serialize + ToSchema + Send;

    const OPENAPI_TEXTS: RuleCallOpenApiTexts;

    fn scope(&self) -> RuleScope;

    /// The only tenant that the rule applies to; `None` if it applies to all.
    fn select_tenant(caller: &Caller, requested: Option<Tenant>) -> Result<Option<Tenant>, Problem> {
        caller.resolve_requested_tenant(requested)
    }

    fn find_target_detail(
        &self,
        app: &App,
        caller: &Caller,
    ) -> impl Future<Output = Result<Self::Detail, Problem>> + Send;

    /// Removes the rules from a response that was built before the last rule was lifted.
    fn clear_rules_in_body(detail: &mut Self::Detail);
}

/// The calls `…/{name}/pause` and `…/{name}/block` of a kind of target.
pub(crate) fn http_routes<T: RuleTarget>() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::build_document::<T>())
        .route(&T::OPENAPI_TEXTS.url_path(RuleKind::Pause), put(pause::<T>).delete(unpause::<T>))
        .route(&T::OPENAPI_TEXTS.url_path(RuleKind::Block), put(block::<T>).delete(unblock::<T>))
}

async fn pause<T: RuleTarget>(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(target): PathSegment<T>,
    request: RuleRequest,
) -> Result<Json<T::Detail>, Problem> {
    set_rule(&app, &caller, RuleKind::Pause, &target, request).await
}

async fn unpause<T: RuleTarget>(
    Operator(caller): Operator,
    State(app): State<App>,
    PathSegment(target): PathSegment<T>,
    request: RuleRequest,
) -> Result<Json<T::Detail>, Problem> {
    lift_rule(&app, &caller, RuleKind::Pause, &target, request).await
}

async fn block<T: RuleTarget>(
    Admin(caller): Admin,
    State(app): State<App>,
    PathSegment(target): PathSegment<T>,
    request: RuleRequest,
) -> Result<Json<T::Detail>, Problem> {
    set_rule(&app, &caller, RuleKind::Block, &target, request).await
}

async fn unblock<T: RuleTarget>(
    Admin(caller): Admin,
    State(app): State<App>,
    PathSegment(target): PathSegment<T>,
    request: RuleRequest,
) -> Result<Json<T::Detail>, Problem> {
    lift_rule(&app, &caller, RuleKind::Block, &target, request).await
}

/// Sets a rule; replaces an existing one of the same kind and target.
pub(crate) async fn set_rule<T: RuleTarget>(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    target: &T,
    RuleRequest { tenant, reason }: RuleRequest,
) -> Result<Json<T::Detail>, Problem> {
    let tenant = T::select_tenant(caller, tenant)?;
    target.find_target_detail(app, caller).await?;
    let (inner, author, scope) = (app.clone(), caller.clone(), target.scope());
    app.run_change_to_completion(async move {
        let audit_target = describe_rule_target(&scope, tenant.as_ref());
        let set_by = author.token_name.clone();
        inner
            .engine
            .set_rule(Rule { kind, scope, tenant, set_by, reason: reason.clone(), since: inner.now() })
            .await?;
        inner.record_audit_entry(&author, kind.as_str(), audit_target, reason).await;
        Ok::<_, Problem>(())
    })
    .await?;
    target.find_target_detail(app, caller).await.map(Json)
}

/// Lifts a rule. Succeeds if there is none.
pub(crate) async fn lift_rule<T: RuleTarget>(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    target: &T,
    RuleRequest { tenant, reason }: RuleRequest,
) -> Result<Json<T::Detail>, Problem> {
    let tenant = T::select_tenant(caller, tenant)?;
    // Read before the rule is lifted: a target without definition and tasks disappears with its last rule.
    let mut before = target.find_target_detail(app, caller).await?;
    let (inner, author, scope) = (app.clone(), caller.clone(), target.scope());
    app.run_change_to_completion(async move {
        if inner.engine.lift_rule(kind, &scope, tenant.as_ref()).await? {
            let action = format!("un{}", kind.as_str());
            let audit_target = describe_rule_target(&scope, tenant.as_ref());
            inner.record_audit_entry(&author, &action, audit_target, reason).await;
        }
        Ok::<_, Problem>(())
    })
    .await?;
    Ok(Json(target.find_target_detail(app, caller).await.unwrap_or_else(|_| {
        T::clear_rules_in_body(&mut before);
        before
    })))
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
