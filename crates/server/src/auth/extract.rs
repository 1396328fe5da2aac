//! Callers as handlers ask for them: a handler's first argument says which role it needs.

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use pointsman_core::Tenant;

use super::{Caller, Role};
use crate::app::App;
use crate::problem::Problem;

/// A caller with the role that its name says.
macro_rules! caller_with_role {
    ($($name:ident),+) => {$(
        pub(crate) struct $name(pub(crate) Caller);

        impl FromRequestParts<App> for $name {
            type Rejection = Problem;
            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
                caller(parts, app)?.with(Role::$name).map(Self)
            }
        }
    )+};
}
caller_with_role!(Viewer, Producer, Worker, Operator, Admin);

/// A caller of any role.
pub(crate) struct Anyone(pub(crate) Caller);

impl FromRequestParts<App> for Anyone {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        caller(parts, app).map(Self)
    }
}

fn caller(parts: &Parts, app: &App) -> Result<Caller, Problem> {
    let presented = presented(parts).ok_or_else(|| {
        Problem::unauthorized("send a token: `Authorization: Bearer …` or `X-Admin-Token: …`")
    })?;
    app.tokens.borrow().caller(presented).ok_or_else(|| Problem::unauthorized("this token is not known"))
}

fn presented(parts: &Parts) -> Option<&str> {
    if let Some(value) = parts.headers.get(AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
    }
    parts.headers.get("x-admin-token")?.to_str().ok()
}

impl Caller {
    /// The same caller, if it may do what this role may do.
    pub(crate) fn with(self, needed: Role) -> Result<Self, Problem> {
        if self.role.includes(needed) {
            return Ok(self);
        }
        let Self { name, role, .. } = self;
        Err(Problem::forbidden(format!(
            "this needs the role {needed}; the token {name:?} has the role {role}"
        )))
    }

    /// The tenant to look at when the request names this one: a bound caller sees its own and may name no
    /// other.
    pub(crate) fn tenant(&self, named: Option<Tenant>) -> Result<Option<Tenant>, Problem> {
        match (&self.tenant, named) {
            (Some(own), Some(named)) if *own != named => Err(self.may_not_name(&named)),
            (Some(own), _) => Ok(Some(own.clone())),
            (None, named) => Ok(named),
        }
    }

    /// Refuses a caller that is bound to a tenant what concerns all of them.
    pub(crate) fn unbound(&self, why: &str) -> Result<(), Problem> {
        match self.tenant {
            None => Ok(()),
            Some(_) => Err(Problem::forbidden(format!("{why}; this needs a token that is bound to none"))),
        }
    }

    pub(crate) fn may_not_name(&self, tenant: &Tenant) -> Problem {
        Problem::forbidden(format!("the token {:?} may not name the tenant {:?}", self.name, tenant.as_str()))
    }

    /// Whether it may see what belongs to this tenant.
    pub(crate) fn sees(&self, tenant: &Tenant) -> bool {
        self.tenant.as_ref().is_none_or(|own| own == tenant)
    }
}
