//! Reads the configuration from files, environment variables and flags, and builds the engine's setup.
//!
//! ```text
//!  default.yml ─┐
//!  files ───────┤ yaml: trees with locations    ┌─ one module per section (store, server, handlers, …)
//!  POINTSMAN_… ─┼─▶ merge: one tree ─▶ build ───┤
//!  flags ───────┘                               └─▶ Config, or all faults
//! ```
//!
//! Later layers override earlier ones: flags, environment variables, files, defaults. Files have equal precedence, and a
//! setting in two files is a fault. Every value of the merged tree has its location, for faults and `config show`.
//!
//! Relative paths: the path of the store starts from the working folder, since the store belongs to the process. The
//! program of a command (if it is a path), its folder and secret files start from the folder of the file that names
//! them; a command runs in that folder unless `dir` is set.
//!
//! A configuration is applied completely or not at all: if it has a fault, nothing changes.

mod build;
mod chains;
mod check;
mod command_user;
mod decode;
mod digest;
mod engine_setup;
mod fault;
mod file_contents;
mod handler_limits;
mod handler_run;
mod handlers;
mod inputs;
mod json_value;
mod lints;
mod location;
mod merge;
mod network;
mod overrides;
mod redact;
mod retention;
mod retry;
mod routes;
pub(crate) mod schedule_lints;
mod schedule_timing;
mod schedules;
mod schema;
mod secrets;
mod server;
mod server_limits;
mod services;
mod show;
mod sources;
mod store_url;
mod tenants;
mod tokens;
mod watcher;
mod yaml;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use pointsman_core::journal::Retention;
use pointsman_core::route::ChainRoutes;
use pointsman_core::{Routes, Tenant, Weight};
use pointsman_engine::EnabledServices;
use pointsman_engine::handlers::http::NetworkAccess;

pub use chains::ChainConfig;
pub use check::{
    ChainSummary, CheckReport, CollectionSummary, ConfigSummary, HandlerSummary, ScheduleSummary,
    SourceSummary, check_config,
};
pub use fault::{ConfigFault, ConfigFaults, ConfigWarning};
pub use handler_run::{CommandRunConfig, HandlerRunConfig, HttpRunConfig};
pub use handlers::HandlerConfig;
pub use inputs::{ConfigFlag, ConfigInputs};
pub use schedules::ScheduleConfig;
pub use secrets::Environment;
pub use server_limits::ServerLimits;
pub use store_url::{DatabaseUrl, StoreUrl};
pub use tokens::TokenDef;
pub use watcher::{ConfigWatcher, watch_config};

/// A configuration without faults.
#[derive(Clone, Debug)]
pub struct Config {
    pub store_url: StoreUrl,
    /// The name of the configuration. Nodes with the same name on one store are set up alike.
    pub registration_name: String,
    pub listen_address: SocketAddr,
    pub max_connections: usize,
    /// The limits of connections, streams and response memory.
    pub server_limits: ServerLimits,
    /// How long running attempts and requests may continue when the process stops.
    pub drain_timeout: Duration,
    /// The setting `workers`: the maximum number of tasks that this process runs at a time.
    pub max_running_tasks: usize,
    pub engine_services: EnabledServices,
    /// Whether this process serves HTTP, the service that is not part of the engine.
    pub serves_http: bool,
    pub journal_retention: Retention,
    pub history_retention: Retention,
    /// How long an unused object is kept before it is deleted.
    pub object_retention: Duration,
    pub tokens: Vec<TokenDef>,
    /// The weights of tenants; 1 for tenants that are not named.
    pub tenant_weights: BTreeMap<Tenant, Weight>,
    pub handlers: Vec<HandlerConfig>,
    pub routes: Routes,
    /// The sources: handlers that have collections and get no events.
    pub sources: Vec<HandlerConfig>,
    /// The schedules of the section `schedules` and of the sources' collections.
    pub schedules: Vec<ScheduleConfig>,
    pub chains: Vec<ChainConfig>,
    /// The chains to which events add orders.
    pub chain_routes: ChainRoutes,
    /// The files that the configuration was read from, in the order of reading.
    pub files: Vec<PathBuf>,
    /// Settings that are valid but probably not intended.
    pub warnings: Vec<ConfigWarning>,
    /// The addresses that HTTP handlers may call.
    pub network_access: NetworkAccess,
    /// The merged tree that the configuration was read from.
    merged_tree: yaml::YamlNode,
    /// The fingerprint of the configuration files, used to detect changes.
    fingerprint: file_contents::ConfigFingerprint,
}

impl Config {
    /// A sentence without a full stop that names the files that were read.
    pub fn describe_config_files(&self) -> String {
        inputs::describe_config_files(&self.files)
    }

    /// The settings that differ from `running` and cannot change while the process runs.
    pub fn changed_settings_needing_restart(&self, running: &Self) -> Vec<&'static str> {
        let compared = [
            ("store", self.store_url == running.store_url),
            ("name", self.registration_name == running.registration_name),
            ("server.listen", self.listen_address == running.listen_address),
            ("server.max_connections", self.max_connections == running.max_connections),
            ("server.limits", self.server_limits == running.server_limits),
            ("server.drain", self.drain_timeout == running.drain_timeout),
            ("workers", self.max_running_tasks == running.max_running_tasks),
            (
                "services",
                (self.engine_services, self.serves_http) == (running.engine_services, running.serves_http),
            ),
            ("journal", self.journal_retention == running.journal_retention),
            ("history", self.history_retention == running.history_retention),
            ("objects", self.object_retention == running.object_retention),
        ];
        compared.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }
}
