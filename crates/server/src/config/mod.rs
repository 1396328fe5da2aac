//! The configuration: from texts to what the engine is told.
//!
//! ```text
//!  default.yml ─┐
//!  files ───────┤ yaml: trees with places     ┌─ a file a section (store, server, handlers, …)
//!  POINTSMAN_… ─┼─▶ merge: one tree ─▶ read ──┤
//!  flags ───────┘                             └─▶ Config, or every fault at once
//! ```
//!
//! Later layers win: flags over environment variables over files over the defaults. Files are equals, and two
//! that set the same thing are at fault. Every value in the merged tree knows where it comes from, so that a
//! fault can point at it and `config show` can tell.
//!
//! Relative paths: that of the store starts from the working folder, for it is the process that owns it. A
//! command's program (if it is given by a path), its folder and the files of secrets start from the folder of
//! the file that names them; a command runs in that folder unless `dir` says otherwise.
//!
//! A configuration is applied whole or not at all: while there is a single fault, nothing changes.

mod build;
mod chains;
mod check;
mod command_user;
mod decode;
mod digest;
mod engine_setup;
mod fault;
mod file_snapshot;
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
mod store;
pub mod suggestion;
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
use pointsman_engine::Rooms;
use pointsman_engine::handlers::http::NetworkAccess;

pub use chains::ChainConfig;
pub use check::{
    ChainSummary, CheckReport, CollectionSummary, ConfigSummary, HandlerSummary, ScheduleSummary,
    SourceSummary, check_config,
};
pub use fault::{ConfigFault, ConfigFaults, ConfigWarning};
pub use handler_run::{CommandRun, HandlerRun, HttpRun};
pub use handlers::HandlerConfig;
pub use inputs::{ConfigFlag, ConfigInputs};
pub use schedules::ScheduleConfig;
pub use secrets::Environment;
pub use server_limits::ServerLimits;
pub use store::StoreUrl;
pub use tokens::TokenDef;
pub use watcher::{ConfigWatcher, watch_config};

/// A configuration without faults.
#[derive(Clone, Debug)]
pub struct Config {
    pub store: StoreUrl,
    /// By which name the nodes that share it know each other.
    pub name: String,
    pub listen_address: SocketAddr,
    pub max_connections: usize,
    /// How connections and the memory of answers are shared.
    pub limits: ServerLimits,
    /// How long running attempts and requests may go on when the process is told to stop.
    pub drain_timeout: Duration,
    /// How many tasks run at a time.
    pub workers: usize,
    pub services: Rooms,
    /// Whether this process answers HTTP: the room that is not the engine's.
    pub serves_http: bool,
    pub journal_retention: Retention,
    pub history_retention: Retention,
    /// How long an unused object is kept.
    pub object_retention: Duration,
    pub tokens: Vec<TokenDef>,
    /// The shares of tenants; 1 for those not named.
    pub tenants: BTreeMap<Tenant, Weight>,
    pub handlers: Vec<HandlerConfig>,
    pub routes: Routes,
    /// Handlers that get no events and have collections.
    pub sources: Vec<HandlerConfig>,
    /// Those of the section of that name, and those of the sources' collections.
    pub schedules: Vec<ScheduleConfig>,
    pub chains: Vec<ChainConfig>,
    /// Which chains events make orders for.
    pub chain_routes: ChainRoutes,
    /// The files it was read from, in their order.
    pub files: Vec<PathBuf>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<ConfigWarning>,
    /// Where HTTP handlers may go.
    pub network: NetworkAccess,
    /// The merged tree it was read from.
    merged_tree: yaml::YamlNode,
    /// What it was read from, so that a change since then is noticed.
    fingerprint: file_snapshot::ConfigFingerprint,
}

impl Config {
    /// Which files were read, in words.
    pub fn describe_files(&self) -> String {
        inputs::describe_files(&self.files)
    }

    /// The settings that differ from `running` and cannot be changed in a running process.
    pub fn changed_fixed_settings(&self, running: &Self) -> Vec<&'static str> {
        let compared = [
            ("store", self.store == running.store),
            ("name", self.name == running.name),
            ("server.listen", self.listen_address == running.listen_address),
            ("server.max_connections", self.max_connections == running.max_connections),
            ("server.limits", self.limits == running.limits),
            ("server.drain", self.drain_timeout == running.drain_timeout),
            ("workers", self.workers == running.workers),
            ("rooms", (self.services, self.serves_http) == (running.services, running.serves_http)),
            ("journal", self.journal_retention == running.journal_retention),
            ("history", self.history_retention == running.history_retention),
            ("objects", self.object_retention == running.object_retention),
        ];
        compared.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }
}
