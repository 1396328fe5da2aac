//! `/api/v1/config`: what this process was set up with, from where, and what became of the changes since.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::Json;
use axum::extract::State;
use http::Uri;
use pointsman_api::{ConfigBody, FaultBody, ReloadBody};
use pointsman_engine::now;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::auth::Admin;
use crate::config::{Config, Fault};
use crate::problem::Problem;
use crate::query::Query;
use crate::server::{Chain, StartError};

/// How many reloads are remembered, and how many faults of each.
const REMEMBERED: usize = 50;
const SHOWN: usize = 200;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show))
}

/// The configuration of the process that answers, without secrets, URLs beyond their first path segment and arguments of
/// commands; and its reloads with their faults.
#[utoipa::path(
    get,
    path = "/api/v1/config",
    operation_id = "show_config",
    tag = "house",
    responses((status = 200, description = "What it is set up with", body = ConfigBody)),
)]
pub(crate) async fn show(
    Admin(caller): Admin,
    State(app): State<App>,
    uri: Uri,
) -> Result<Json<ConfigBody>, Problem> {
    Query::of(&uri, &[])?;
    caller.unbound("the configuration is everybody's")?;
    app.configured.told().map(Json).ok_or_else(|| Problem::unavailable("the server is starting"))
}

/// What is in force, and the last reloads.
#[derive(Debug, Default)]
pub(crate) struct Configured(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    in_force: Option<ConfigBody>,
    /// The newest first.
    reloads: VecDeque<ReloadBody>,
}

impl Configured {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the process started with.
    pub(crate) fn started(&self, node: String, config: &Config) {
        self.known().in_force = Some(body(node, config));
    }

    pub(crate) fn is_watched(&self) {
        if let Some(in_force) = &mut self.known().in_force {
            in_force.watched = true;
        }
    }

    /// A change was taken up.
    pub(crate) fn applied(&self, config: &Config) {
        let mut known = self.known();
        if let Some(before) = &mut known.in_force {
            *before =
                ConfigBody { watched: before.watched, ..body(std::mem::take(&mut before.node), config) };
        }
        known.remember(ReloadBody {
            at: now().to_string(),
            applied: true,
            error: None,
            faults: vec![],
            more_faults: 0,
        });
    }

    /// A change was not taken up.
    pub(crate) fn refused(&self, error: &StartError) {
        let (why, faults) = match error {
            StartError::Config(faults) => (error.to_string(), Some(faults)),
            other => (Chain(other).to_string(), None),
        };
        let all = faults.map_or(0, |faults| faults.len());
        let shown = faults.into_iter().flat_map(|faults| faults.iter()).take(SHOWN).map(fault);
        self.known().remember(ReloadBody {
            at: now().to_string(),
            applied: false,
            error: Some(why),
            faults: shown.collect(),
            more_faults: all.saturating_sub(SHOWN) as u64,
        });
    }

    fn told(&self) -> Option<ConfigBody> {
        let known = self.known();
        let in_force = known.in_force.clone()?;
        Some(ConfigBody { reloads: known.reloads.iter().cloned().collect(), ..in_force })
    }
}

impl Known {
    fn remember(&mut self, reload: ReloadBody) {
        self.reloads.push_front(reload);
        self.reloads.truncate(REMEMBERED);
    }
}

fn body(node: String, config: &Config) -> ConfigBody {
    let now = now();
    ConfigBody {
        node,
        files: config.files.iter().map(|file| file.display().to_string()).collect(),
        loaded_at: now.to_string(),
        watched: false,
        settings: config.to_api_yaml(),
        warnings: config.warnings_at(now).iter().map(ToString::to_string).collect(),
        reloads: vec![],
    }
}

fn fault(fault: &Fault) -> FaultBody {
    FaultBody { place: fault.place(), message: fault.message().into(), excerpt: fault.excerpt_for_api() }
}
