//! Setting and lifting rules, wherever they stand.

use pointsman_core::{Place, Rule, RuleKind, Tenant};
use pointsman_engine::now;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;

/// Sets a rule in the place of one that stands there already.
pub(crate) async fn set(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    place: Place,
    tenant: Option<Tenant>,
    reason: String,
) -> Result<(), Problem> {
    let what = what(&place, tenant.as_ref());
    let by = caller.name.clone();
    app.engine.hold(Rule { kind, place, tenant, by, reason: reason.clone(), since: now() }).await?;
    app.note(caller, kind.as_str(), what, reason).await;
    Ok(())
}

/// Lifts a rule. If there is none, all is as wished.
pub(crate) async fn lift(
    app: &App,
    caller: &Caller,
    kind: RuleKind,
    place: &Place,
    tenant: Option<Tenant>,
    reason: String,
) -> Result<(), Problem> {
    if app.engine.release(kind, place, tenant.as_ref()).await? {
        let action = match kind {
            RuleKind::Pause => "unpause",
            RuleKind::Block => "unblock",
        };
        app.note(caller, action, what(place, tenant.as_ref()), reason).await;
    }
    Ok(())
}

/// What a rule speaks of, in words.
fn what(place: &Place, tenant: Option<&Tenant>) -> String {
    let (space, name) = (place.space(), place.name());
    match tenant {
        Some(tenant) => format!("{space} {name} for {tenant}"),
        None => format!("{space} {name}"),
    }
}
