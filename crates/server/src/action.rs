//! Bodies of actions. All of them are optional.

use http::HeaderMap;
use pointsman_core::Tenant;
use pointsman_core::wire::{Fault, string};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::media;
use crate::problem::Problem;

/// The longest reason.
const MAX_REASON: usize = 1024;

/// The body of an action that takes nothing: none, or an empty object.
pub(crate) fn nothing(headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    let Nothing {} = read(headers, body)?;
    Ok(())
}

/// What a pause or a block says.
pub(crate) struct Hold {
    pub(crate) tenant: Option<Tenant>,
    pub(crate) reason: String,
}

pub(crate) fn hold(headers: &HeaderMap, body: &[u8]) -> Result<Hold, Problem> {
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Members {
        tenant: Option<Box<RawValue>>,
        reason: Option<Box<RawValue>>,
    }
    let members: Members = read(headers, body)?;
    let tenant = members.tenant.map(|raw| string("/tenant", &raw)).transpose()?;
    let tenant = tenant.map(Tenant::new).transpose().map_err(|e| Fault::new("/tenant", e))?;
    let reason = members.reason.map(|raw| string("/reason", &raw)).transpose()?.unwrap_or_default();
    if reason.len() > MAX_REASON {
        return Err(Fault::new("/reason", format!("a reason has at most {MAX_REASON} bytes")).into());
    }
    Ok(Hold { tenant, reason })
}

fn read<T: Default + for<'de> Deserialize<'de>>(headers: &HeaderMap, body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Ok(T::default());
    }
    media::require_json(headers)?;
    let text = media::text(body)?;
    serde_json::from_str(text)
        .map_err(|e| Problem::malformed(format!("the body is not what was expected: {e}")).pointer(""))
}
