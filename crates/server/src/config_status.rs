//! `/api/v1/config`: the configuration of this process, its files, and its reloads.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{ConfigBody, ConfigFaultBody, ConfigReloadBody};
use pointsman_core::{ErrorChain, Timestamp};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app_state::App;
use crate::auth::Admin;
use crate::config::{Config, ConfigFault};
use crate::problem::Problem;
use crate::request_query::RequestQuery;
use crate::server::StartOrReloadError;

/// Maximum number of reloads that are kept.
const MAX_KEPT_RELOADS: usize = 50;
/// Maximum number of faults that are kept for each reload.
const MAX_KEPT_FAULTS: usize = 200;

pub(crate) fn http_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_config))
}

/// The configuration of the process that responds, and its reloads with their faults. Secrets, URLs beyond their first
/// path segment and arguments of commands are left out.
#[utoipa::path(
    get,
    path = "/api/v1/config",
    operation_id = "show_config",
    tag = "administration",
    responses((status = 200, description = "The configuration", body = ConfigBody)),
)]
pub(crate) async fn show_config(
    Admin(caller): Admin,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ConfigBody>, Problem> {
    RequestQuery::from_uri(&uri, &[])?;
    caller.require_access_to_all_tenants("the configuration covers every tenant")?;
    app.config_status.to_body().map(Json).ok_or_else(|| Problem::unavailable("the server is starting"))
}

/// The active configuration and the latest reloads.
#[derive(Debug, Default)]
pub(crate) struct ConfigStatus(Mutex<ActiveConfigAndReloads>);

/// The active configuration, and the reloads that were applied or rejected.
#[derive(Debug, Default)]
struct ActiveConfigAndReloads {
    active_config: Option<ConfigBody>,
    /// Newest first.
    reloads: VecDeque<ConfigReloadBody>,
}

impl ConfigStatus {
    fn lock_record(&self) -> MutexGuard<'_, ActiveConfigAndReloads> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the configuration that the process started with.
    pub(crate) fn record_initial_config(&self, node: String, config: &Config, now: Timestamp) {
        self.lock_record().active_config = Some(config_body(node, config, now));
    }

    pub(crate) fn mark_files_watched(&self) {
        if let Some(active) = &mut self.lock_record().active_config {
            active.watched = true;
        }
    }

    /// Records a reload that was applied.
    pub(crate) fn record_applied_reload(&self, config: &Config, now: Timestamp) {
        let mut record = self.lock_record();
        if let Some(before) = &mut record.active_config {
            *before = ConfigBody {
                watched: before.watched,
                ..config_body(std::mem::take(&mut before.node_name), config, now)
            };
        }
        record.push_reload(ConfigReloadBody {
            at: now.to_string(),
            applied: true,
            error: None,
            faults: vec![],
            omitted_fault_count: 0,
        });
    }

    /// Records a reload that was rejected.
    pub(crate) fn record_rejected_reload(&self, error: &StartOrReloadError, now: Timestamp) {
        let (message, faults) = match error {
            StartOrReloadError::Config(faults) => (error.to_string(), Some(faults)),
            other => (ErrorChain(other).to_string(), None),
        };
        let fault_count = faults.map_or(0, |faults| faults.len());
        let listed =
            faults.into_iter().flat_map(|faults| faults.iter()).take(MAX_KEPT_FAULTS).map(fault_body);
        self.lock_record().push_reload(ConfigReloadBody {
            at: now.to_string(),
            applied: false,
            error: Some(message),
            faults: listed.collect(),
            omitted_fault_count: fault_count.saturating_sub(MAX_KEPT_FAULTS) as u64,
        });
    }

    fn to_body(&self) -> Option<ConfigBody> {
        let record = self.lock_record();
        let active = record.active_config.clone()?;
        Some(ConfigBody { reloads: record.reloads.iter().cloned().collect(), ..active })
    }
}

impl ActiveConfigAndReloads {
    fn push_reload(&mut self, reload: ConfigReloadBody) {
        self.reloads.push_front(reload);
        self.reloads.truncate(MAX_KEPT_RELOADS);
    }
}

fn config_body(node_name: String, config: &Config, now: Timestamp) -> ConfigBody {
    ConfigBody {
        node_name,
        files: config.files.iter().map(|file| file.display().to_string()).collect(),
        loaded_at: now.to_string(),
        watched: false,
        settings: config.to_api_yaml(),
        warnings: config.all_warnings(now).iter().map(ToString::to_string).collect(),
        reloads: vec![],
    }
}

fn fault_body(fault: &ConfigFault) -> ConfigFaultBody {
    ConfigFaultBody {
        location: fault.location(),
        message: fault.message().into(),
        excerpt: fault.excerpt_for_api(),
    }
}
