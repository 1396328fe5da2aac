//! Requests of actions. Their bodies are optional.

use axum::extract::{FromRequest, Request};
use pointsman_core::Tenant;
use pointsman_core::wire::{Fault, string};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::app::App;
use crate::body::Received;
use crate::media;
use crate::problem::Problem;
use crate::query::Query;

/// The longest reason.
const MAX_REASON: usize = 1024;

/// The request of an action that takes nothing: no parameters, and no body or an empty object.
pub(crate) struct Nothing;

impl FromRequest<App> for Nothing {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Members {}
        let Members {} = read(request, app).await?;
        Ok(Self)
    }
}

/// What a pause or a block says.
pub(crate) struct Hold {
    pub(crate) tenant: Option<Tenant>,
    pub(crate) reason: String,
}

impl FromRequest<App> for Hold {
    type Rejection = Problem;
    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        #[derive(Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Members {
            tenant: Option<Box<RawValue>>,
            reason: Option<Box<RawValue>>,
        }
        let members: Members = read(request, app).await?;
        let tenant = members.tenant.map(|raw| string("/tenant", &raw)).transpose()?;
        let tenant = tenant.map(Tenant::new).transpose().map_err(|e| Fault::new("/tenant", e))?;
        let reason = members.reason.map(|raw| string("/reason", &raw)).transpose()?.unwrap_or_default();
        if reason.len() > MAX_REASON {
            return Err(Fault::new("/reason", format!("a reason has at most {MAX_REASON} bytes")).into());
        }
        Ok(Self { tenant, reason })
    }
}

async fn read<T: Default + DeserializeOwned>(request: Request, app: &App) -> Result<T, Problem> {
    Query::of(request.uri(), &[])?;
    let headers = request.headers().clone();
    let body = Received::from_request(request, app).await?;
    if body.bytes.is_empty() {
        return Ok(T::default());
    }
    media::require_json(&headers)?;
    serde_json::from_str(media::text(&body.bytes)?)
        .map_err(|e| Problem::malformed(format!("the body is not what was expected: {e}")).pointer(""))
}
