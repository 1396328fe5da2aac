//! The whole server: store, engine, HTTP and configuration, started and stopped together.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{Store, StoreError};
use pointsman_engine::{Engine, Settings, Setup};
use pointsman_store_sqlite::{OpenError, SqliteStore};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::app::{App, Shared, now};
use crate::auth::{self, FirstToken, Tokens};
use crate::config::{self, Config, Faults, Sources, StoreUrl, TokenDef};
use crate::{listen, router};

/// How long requests may go on when the server stops. They are short: streams and long polls end at once.
const DRAIN_REQUESTS: Duration = Duration::from_secs(5);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(
        "the server would listen on {0}, where others can reach it, but no token is configured; \
         add one under `auth: tokens:` or listen on 127.0.0.1"
    )]
    Unguarded(SocketAddr),
    #[error("cannot open the store")]
    Store(#[source] OpenError),
    #[error("cannot keep the first token beside the store")]
    Token(#[source] io::Error),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the configuration has faults")]
    Config(#[source] Faults),
    #[error("the handler {0} is defined both by the program and by the configuration")]
    HandlerTwice(String),
    #[error("cannot start the engine")]
    Engine(#[source] StoreError),
    #[error("cannot watch the configuration")]
    Watch(#[source] io::Error),
}

/// A running server.
pub struct Server {
    engine: Engine,
    address: Option<SocketAddr>,
    first_token: Option<String>,
    stopping: CancellationToken,
    listening: Option<JoinHandle<()>>,
    watch: Option<config::Watch>,
    drain: Duration,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the store, starts the engine and listens. With `sources` the configuration is reloaded whenever
    /// it changes. `program` is what the program brings along beside the configuration: its in-process
    /// handlers and their routes.
    pub async fn start(config: Config, sources: Option<Sources>, program: Setup) -> Result<Self, StartError> {
        let guarded = !config.tokens.is_empty() || config.listen.ip().is_loopback();
        if config.http && !guarded {
            return Err(StartError::Unguarded(config.listen));
        }
        let listener = match config.http {
            true => Some(bind(config.listen).await?),
            false => None,
        };
        let setup = together(&program, config.setup().map_err(StartError::Config)?)?;
        let store = open(config.store.clone()).await?;
        let first = match config.tokens.is_empty() && config.http {
            true => Some(first_token(&config.store).map_err(StartError::Token)?),
            false => None,
        };
        let engine = Engine::start(store, settings(&config), setup).await.map_err(StartError::Engine)?;

        let stopping = CancellationToken::new();
        let tokens = accepted(&config.tokens, first.as_ref());
        let app = Shared::new(engine.clone(), tokens, stopping.clone());
        let address = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        let listening = listener.map(|listener| {
            let router = router::router(app.clone());
            tokio::spawn(listen::run(
                listener,
                router,
                config.max_connections,
                stopping.clone(),
                DRAIN_REQUESTS.min(config.drain),
            ))
        });
        let first_token = first.as_ref().and_then(|first| first.plain.clone());
        let reload = Reload { app, program, first };
        let watch = sources.map(|sources| watch(sources, &config, reload)).transpose();
        let watch = watch.map_err(StartError::Watch)?;
        Ok(Self { engine, address, first_token, stopping, listening, watch, drain: config.drain })
    }

    /// Where it listens; nothing if this process does not answer HTTP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The token that was made because there was none. It is told this once.
    pub fn first_token(&self) -> Option<&str> {
        self.first_token.as_deref()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Runs until `shutdown` completes, then stops.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        self.stop().await;
    }

    /// Ends streams and long polls, lets requests and running attempts end within bounds, gives back what is
    /// left without cost, and closes the store.
    pub async fn stop(mut self) {
        if let Some(watch) = self.watch.take() {
            // Its thread may be in the middle of a reload, which needs this runtime to go on.
            let _ = tokio::task::spawn_blocking(move || watch.stop()).await;
        }
        self.stopping.cancel();
        if let Some(listening) = self.listening.take() {
            let _ = listening.await;
        }
        self.engine.stop(self.drain).await;
        self.engine.store().close();
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })
}

async fn open(url: StoreUrl) -> Result<Arc<dyn Store>, StartError> {
    let opened = tokio::task::spawn_blocking(move || match url {
        StoreUrl::Sqlite { path } => SqliteStore::open(path, now()),
        StoreUrl::SqliteMemory => SqliteStore::in_memory(now()),
    });
    let opened = opened.await.map_err(|e| StartError::Engine(StoreError::Damaged(e.to_string())))?;
    Ok(Arc::new(opened.map_err(StartError::Store)?))
}

fn settings(config: &Config) -> Settings {
    Settings {
        node_name: format!("pointsman-{}", std::process::id()),
        slots: config.workers,
        journal: config.journal,
        history: config.history,
        rooms: config.rooms,
        ..Settings::default()
    }
}

fn first_token(store: &StoreUrl) -> io::Result<FirstToken> {
    match store {
        StoreUrl::Sqlite { path } => auth::beside(path),
        StoreUrl::SqliteMemory => Ok(auth::fresh()),
    }
}

fn accepted(configured: &[TokenDef], first: Option<&FirstToken>) -> Tokens {
    match first {
        Some(first) if configured.is_empty() => Tokens::new(vec![first.def.clone()]),
        _ => Tokens::new(configured.to_vec()),
    }
}

/// What the program brings along and what the configuration says, as one.
fn together(program: &Setup, configured: Setup) -> Result<Setup, StartError> {
    let mut setup = program.clone();
    for spec in configured.handlers {
        if program.handlers.iter().any(|own| own.def.name == spec.def.name) {
            return Err(StartError::HandlerTwice(spec.def.name.to_string()));
        }
        setup.handlers.push(spec);
    }
    for (key, list) in configured.routes.iter() {
        for binding in list {
            setup.routes.bind(key.clone(), binding.clone());
        }
    }
    setup.schedules.extend(configured.schedules);
    Ok(setup)
}

/// What a reload needs.
struct Reload {
    app: App,
    program: Setup,
    first: Option<FirstToken>,
}

fn watch(sources: Sources, config: &Config, reload: Reload) -> io::Result<config::Watch> {
    let runtime = tokio::runtime::Handle::current();
    config::watch(sources, config, move |changed| match changed {
        Ok(config) => runtime.block_on(reload.apply(&config)),
        Err(faults) => tracing::error!("the configuration was not taken up; all stays as it is\n{faults}"),
    })
}

impl Reload {
    async fn apply(&self, config: &Config) {
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let setup = config.setup().map_err(StartError::Config);
        let setup = match setup.and_then(|setup| together(&self.program, setup)) {
            Ok(setup) => setup,
            Err(error) => {
                tracing::error!(error = %Chain(&error), "the configuration was not taken up; all stays as it is");
                return;
            }
        };
        if config.tokens.is_empty() && self.first.is_none() {
            tracing::error!(
                "the configuration was not taken up: it has no tokens any more, and nobody could log in"
            );
            return;
        }
        if let Err(error) = self.app.engine.reconfigure(setup).await {
            tracing::error!(%error, "the configuration could not be taken up");
            return;
        }
        self.app.tokens.store(Arc::new(accepted(&config.tokens, self.first.as_ref())));
        tracing::info!("the configuration was reloaded");
    }
}

/// An error with all that caused it.
struct Chain<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}
