//! Extractors of callers: the first argument of a request handler is a caller with the required role.

use axum::extract::FromRequestParts;
use http::request::Parts;
use pointsman_core::Tenant;

use super::{Caller, Identity, Role};
use crate::app_state::App;
use crate::listen::ConnectionHandle;
use crate::problem::Problem;

/// Defines an extractor for each role: it extracts a caller whose role includes that role, and refuses others with 403.
macro_rules! define_caller_extractors {
    ($($name:ident),+) => {$(
        pub(crate) struct $name(pub(crate) Caller);

        impl FromRequestParts<App> for $name {
            type Rejection = Problem;
            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
                authenticate_caller(parts, app)?.require_role(Role::$name).map(Self)
            }
        }
    )+};
}
define_caller_extractors!(Viewer, Producer, Worker, Operator, Admin);

/// Extracts an authenticated caller of any role.
pub(crate) struct AnyCaller(pub(crate) Caller);

impl FromRequestParts<App> for AnyCaller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        authenticate_caller(parts, app).map(Self)
    }
}

/// Authenticates the sender of a request. Requests with unknown tokens are throttled per address.
fn authenticate_caller(parts: &Parts, app: &App) -> Result<Caller, Problem> {
    match parts.extensions.get::<Identity>() {
        Some(Identity::Authenticated(caller)) => Ok(caller.clone()),
        Some(Identity::UnknownToken) => Err(match parts.extensions.get::<ConnectionHandle>() {
            Some(connection) => app.authentication_throttle.refuse_unknown_token(connection.address()),
            None => Problem::unauthorized("this token is not known"),
        }),
        Some(Identity::Anonymous) | None => {
            Err(Problem::unauthorized("send a token: `Authorization: Bearer …` or `X-Admin-Token: …`"))
        }
    }
}

impl Caller {
    /// Returns the caller if its role includes `required`, else 403.
    pub(crate) fn require_role(self, required: Role) -> Result<Self, Problem> {
        if self.role.includes(required) {
            return Ok(self);
        }
        let Self { token_name: name, role, .. } = self;
        Err(Problem::forbidden(format!(
            "this needs the role {required}; the token {name:?} has the role {role}"
        )))
    }

    /// Returns the tenant that a request with the tenant `named` is for. A caller bound to a tenant gets that tenant,
    /// and may not name another one. Other callers get `named`.
    pub(crate) fn resolve_requested_tenant(&self, named: Option<Tenant>) -> Result<Option<Tenant>, Problem> {
        match (&self.bound_tenant, named) {
            (Some(own), Some(named)) if *own != named => Err(self.tenant_forbidden_problem(&named)),
            (Some(own), _) => Ok(Some(own.clone())),
            (None, named) => Ok(named),
        }
    }

    /// Refuses a caller that is bound to a tenant. `why` says what concerns all tenants.
    pub(crate) fn require_access_to_all_tenants(&self, why: &str) -> Result<(), Problem> {
        match self.bound_tenant {
            None => Ok(()),
            Some(_) => Err(Problem::forbidden(format!("{why}; use a token that is not bound to a tenant"))),
        }
    }

    pub(crate) fn tenant_forbidden_problem(&self, tenant: &Tenant) -> Problem {
        Problem::forbidden(format!(
            "the token {:?} may not name the tenant {:?}",
            self.token_name,
            tenant.as_str()
        ))
    }

    /// Whether the caller may see data of a tenant.
    pub(crate) fn can_see_tenant(&self, tenant: &Tenant) -> bool {
        self.bound_tenant.as_ref().is_none_or(|own| own == tenant)
    }
}
