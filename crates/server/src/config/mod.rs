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

mod chains;
mod check;
mod decode;
mod digest;
mod doubts;
mod fault;
mod handlers;
mod json;
mod limits;
mod lookup;
mod merge;
pub mod nearest;
mod network;
mod place;
mod read;
mod redact;
mod retention;
mod retry;
mod rooms;
mod routes;
mod run;
mod schedules;
mod schema;
mod secret;
mod server;
mod server_limits;
mod setup;
mod show;
mod snapshot;
mod sources;
mod store;
pub(crate) mod surprises;
mod tenants;
mod timing;
mod tokens;
mod variables;
mod watch;
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

pub use chains::Charted;
pub use check::{ChainTold, CollectionTold, HandlerTold, Report, ScheduleTold, SourceTold, Summary, check};
pub use fault::{Fault, Faults, Warning};
pub use handlers::Handler;
pub use lookup::{Flag, Sources};
pub use run::{CommandRun, HttpRun, Run};
pub use schedules::Planned;
pub use secret::Env;
pub use server_limits::ServerLimits;
pub use store::StoreUrl;
pub use tokens::TokenDef;
pub use watch::{Watch, watch};

/// A configuration without faults.
#[derive(Clone, Debug)]
pub struct Config {
    pub store: StoreUrl,
    /// By which name the nodes that share it know each other.
    pub name: String,
    pub listen: SocketAddr,
    pub max_connections: usize,
    /// How connections and the memory of answers are shared.
    pub limits: ServerLimits,
    /// How long running attempts and requests may go on when the process is told to stop.
    pub drain: Duration,
    /// How many tasks run at a time.
    pub workers: usize,
    pub rooms: Rooms,
    /// Whether this process answers HTTP: the room that is not the engine's.
    pub http: bool,
    pub journal: Retention,
    pub history: Retention,
    /// How long an unused object is kept.
    pub objects: Duration,
    pub tokens: Vec<TokenDef>,
    /// The shares of tenants; 1 for those not named.
    pub tenants: BTreeMap<Tenant, Weight>,
    pub handlers: Vec<Handler>,
    pub routes: Routes,
    /// Handlers that get no events and have collections.
    pub sources: Vec<Handler>,
    /// Those of the section of that name, and those of the sources' collections.
    pub schedules: Vec<Planned>,
    pub chains: Vec<Charted>,
    /// Which chains events make orders for.
    pub chain_routes: ChainRoutes,
    /// The files it was read from, in their order.
    pub files: Vec<PathBuf>,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Warning>,
    /// Where HTTP handlers may go.
    pub network: NetworkAccess,
    /// The merged tree it was read from.
    tree: yaml::Node,
    /// What it was read from, so that a change since then is noticed.
    print: snapshot::Print,
}

impl Config {
    /// Which files were read, in words.
    pub fn read_from(&self) -> String {
        lookup::read_from(&self.files)
    }

    /// The settings that differ from `running` and cannot be changed in a running process.
    pub fn fixed_since(&self, running: &Self) -> Vec<&'static str> {
        let compared = [
            ("store", self.store == running.store),
            ("name", self.name == running.name),
            ("server.listen", self.listen == running.listen),
            ("server.max_connections", self.max_connections == running.max_connections),
            ("server.limits", self.limits == running.limits),
            ("server.drain", self.drain == running.drain),
            ("workers", self.workers == running.workers),
            ("rooms", (self.rooms, self.http) == (running.rooms, running.http)),
            ("journal", self.journal == running.journal),
            ("history", self.history == running.history),
            ("objects", self.objects == running.objects),
        ];
        compared.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }
}
