//! The whole server: store, engine, HTTP and configuration, started and stopped together.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pointsman_core::ErrorChain;
use pointsman_core::store::{Store, StoreError};
use pointsman_engine::{Engine, ServiceFailure, Settings, Setup, TimeSource};
use pointsman_store::store_kind::MissingStoreFeature;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app_state::{App, AppState};
use crate::auth::{AcceptedTokens, FirstToken};
use crate::config::{self, Config, ConfigFaults, ConfigInputs, StoreUrl, TokenDef};
use crate::open_store::OpenedStore;
use crate::{http_router, listen};

/// Maximum time for running requests to finish when the server stops. Streams and long polls end at once.
const REQUEST_DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The error of a server that did not start, or of a changed configuration that was rejected.
#[derive(Debug, thiserror::Error)]
pub enum StartOrReloadError {
    #[error(
        "the server would listen on {0}, where others can reach it, but no token is configured; \
         add one under `auth: tokens:` or listen on 127.0.0.1"
    )]
    NoTokenConfigured(SocketAddr),
    #[cfg(feature = "sqlite")]
    #[error("cannot open the store")]
    Sqlite(#[source] pointsman_store_sqlite::OpenError),
    #[cfg(feature = "postgres")]
    #[error("cannot open the store")]
    Postgres(#[source] pointsman_store_postgres::OpenError),
    #[cfg(feature = "redis")]
    #[error("cannot open the store")]
    Redis(#[source] pointsman_store_redis::OpenError),
    #[error(transparent)]
    MissingStoreFeature(#[from] MissingStoreFeature),
    #[error("cannot read or store the first token")]
    FirstToken(#[source] io::Error),
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("the configuration has faults")]
    Config(#[source] ConfigFaults),
    #[error("the handler {0} is defined both by the program and by the configuration")]
    DuplicateHandler(String),
    #[error(
        "the new configuration has no tokens, so that no client could be authenticated; add one under `auth: tokens:`"
    )]
    NoTokenAfterReload,
    #[error("cannot start the engine")]
    Engine(#[source] StoreError),
}

/// A running server.
pub struct Server {
    engine: Engine,
    address: Option<SocketAddr>,
    first_token: Option<String>,
    stop_signal: CancellationToken,
    http_server: Option<JoinHandle<()>>,
    changes_in_flight: TaskTracker,
    config_watcher: Option<config::ConfigWatcher>,
    reload_counts: watch::Sender<ReloadCounts>,
    drain_timeout: Duration,
}

/// Counts of configuration reloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReloadCounts {
    pub applied: u64,
    /// The new configuration had faults, and the old one stayed active.
    pub rejected: u64,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the store, starts the engine and listens. With `config_inputs`, the configuration is reloaded whenever it
    /// changes. `program` has the in-process handlers and routes that the program adds to the configuration.
    pub async fn start(
        config: Config,
        config_inputs: Option<ConfigInputs>,
        program: Setup,
    ) -> Result<Self, StartOrReloadError> {
        let has_token_or_is_loopback = !config.tokens.is_empty() || config.listen_address.ip().is_loopback();
        if config.serves_http && !has_token_or_is_loopback {
            return Err(StartOrReloadError::NoTokenConfigured(config.listen_address));
        }
        let listener = match config.serves_http {
            true => Some(bind_listener(config.listen_address).await?),
            false => None,
        };
        let setup = merge_setups(&program, config.build_setup().map_err(StartOrReloadError::Config)?)?;
        let settings = engine_settings(&config);
        let opened = OpenedStore::open(&config.store_url, &settings.time_source).await?;
        let started = Engine::start(opened.store(), settings, setup).await;
        let engine = started.map_err(StartOrReloadError::Engine)?;
        // The token is created last: if a later step failed, the token would be stored but never shown.
        let first = match find_or_create_first_token(&config, &opened).await {
            Ok(first) => first,
            Err(error) => {
                engine.stop(Duration::ZERO).await;
                engine.store().close();
                return Err(error);
            }
        };

        let stop_signal = CancellationToken::new();
        let tokens = build_accepted_tokens(&config.tokens, first.as_ref());
        let app = AppState::new(engine.clone(), &config, tokens, stop_signal.clone());
        app.config_status.record_initial_config(build_node_name(), &config, app.now());
        let address = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        let http_server = listener.map(|listener| {
            let drain_timeout = REQUEST_DRAIN_TIMEOUT.min(config.drain_timeout);
            tokio::spawn(serve_http(listener, app.clone(), drain_timeout))
        });
        let changes_in_flight = app.changes_in_flight.clone();
        let first_token = first.as_ref().and_then(|first| first.newly_generated_plain_text.clone());
        let reload_counts = watch::Sender::new(ReloadCounts::default());
        let reloader = ConfigReloader {
            app: app.clone(),
            program_setup: program,
            first_token: first,
            reload_counts: reload_counts.clone(),
        };
        let config_watcher =
            config_inputs.and_then(|config_inputs| reloader.watch_config(config_inputs, &config));
        if config_watcher.is_some() {
            app.config_status.mark_files_watched();
        }
        let drain_timeout = config.drain_timeout;
        Ok(Self {
            engine,
            address,
            first_token,
            stop_signal,
            http_server,
            changes_in_flight,
            config_watcher,
            reload_counts,
            drain_timeout,
        })
    }

    /// The address that the server listens on; `None` if this process does not serve HTTP.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The token that this start created because none was configured. It cannot be read again later.
    pub fn first_token(&self) -> Option<&str> {
        self.first_token.as_deref()
    }

    /// Subscribes to the counts of reloads.
    pub fn subscribe_reload_counts(&self) -> watch::Receiver<ReloadCounts> {
        self.reload_counts.subscribe()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Waits until a service has failed and is not restarted. Then stop the server and exit.
    pub async fn wait_for_service_failure(&mut self) -> ServiceFailure {
        let http_server_end = async {
            match &mut self.http_server {
                Some(http_server) => match http_server.await {
                    Ok(()) => "it ended although it was not stopped".to_owned(),
                    Err(error) => error.to_string(),
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            failure = self.engine.wait_for_service_failure() => failure,
            reason = http_server_end => {
                self.http_server = None;
                ServiceFailure { service: "http", reason }
            }
        }
    }

    /// Publishes that the server stops, ends streams and long polls after they have sent that event, lets requests and
    /// running attempts finish within limits, releases the remaining tasks at no cost of a retry, and closes the store.
    pub async fn stop(mut self) {
        if let Some(watch) = self.config_watcher.take() {
            // Its thread may be in the middle of a reload, which needs this runtime to finish.
            let _ = tokio::task::spawn_blocking(move || watch.stop()).await;
        }
        // This is published before streams end, because each still sends what has been journaled by then.
        self.engine.publish_stopping().await;
        self.stop_signal.cancel();
        if let Some(http_server) = self.http_server.take() {
            let _ = http_server.await;
        }
        // Waits for changes whose clients have disconnected. A change that takes too long finds the store closed.
        self.changes_in_flight.close();
        let _ = timeout(REQUEST_DRAIN_TIMEOUT, self.changes_in_flight.wait()).await;
        self.engine.stop(self.drain_timeout).await;
        self.engine.store().close();
    }
}

/// Serves HTTP until the server stops.
async fn serve_http(listener: TcpListener, app: App, drain_timeout: Duration) {
    let (router, connections) =
        (http_router::build_http_router(app.clone()), app.connection_admission.clone());
    let http_server =
        listen::serve_connections(listener, router, connections, app.stop_signal.clone(), drain_timeout);
    let logging =
        app.stop_signal.run_until_cancelled(app.authentication_throttle.log_failures_periodically());
    tokio::join!(http_server, logging);
}

async fn bind_listener(address: SocketAddr) -> Result<TcpListener, StartOrReloadError> {
    TcpListener::bind(address).await.map_err(|source| StartOrReloadError::Listen { address, source })
}

/// Opens the store of a configuration, with the time of its database server.
pub async fn open_store(url: &StoreUrl) -> Result<Arc<dyn Store>, StartOrReloadError> {
    Ok(OpenedStore::open(url, &TimeSource::with_system_clocks()).await?.store())
}

/// The engine settings that a configuration describes.
pub fn engine_settings(config: &Config) -> Settings {
    Settings {
        node_name: build_node_name(),
        registration_name: config.registration_name.clone(),
        slot_count: config.max_running_tasks,
        journal_retention: config.journal_retention,
        history_retention: config.history_retention,
        object_retention: config.object_retention,
        enabled_services: config.engine_services,
        ..Settings::default()
    }
}

/// A name that is unique to this process, also among machines.
fn build_node_name() -> String {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    format!("pointsman-{}-{}", host.as_deref().unwrap_or("unnamed"), std::process::id())
}

/// The first token, if no token is configured and the server serves HTTP.
async fn find_or_create_first_token(
    config: &Config,
    opened: &OpenedStore,
) -> Result<Option<FirstToken>, StartOrReloadError> {
    if !config.tokens.is_empty() || !config.serves_http {
        return Ok(None);
    }
    opened.find_or_create_first_token(&config.store_url).await.map(Some)
}

fn build_accepted_tokens(configured: &[TokenDef], first: Option<&FirstToken>) -> AcceptedTokens {
    match first {
        Some(first) if configured.is_empty() => AcceptedTokens::new(vec![first.token_def.clone()]),
        _ => AcceptedTokens::new(configured.to_vec()),
    }
}

/// Merges the setup of the program with that of the configuration.
fn merge_setups(program: &Setup, configured: Setup) -> Result<Setup, StartOrReloadError> {
    let mut setup = program.clone();
    for spec in configured.handlers {
        if program.handlers.iter().any(|own| own.def.name == spec.def.name) {
            return Err(StartOrReloadError::DuplicateHandler(spec.def.name.to_string()));
        }
        setup.handlers.push(spec);
    }
    for (key, list) in configured.routes.iter() {
        for binding in list {
            setup.routes.bind(key.clone(), binding.clone());
        }
    }
    setup.tenant_weights.extend(configured.tenant_weights);
    setup.schedules.extend(configured.schedules);
    setup.chains.extend(configured.chains);
    for (key, list) in configured.chain_routes.iter() {
        for chain in list {
            setup.chain_routes.bind(key.clone(), chain.clone());
        }
    }
    setup.file_digests.extend(configured.file_digests);
    Ok(setup)
}

/// Applies a changed configuration, completely or not at all.
struct ConfigReloader {
    app: App,
    program_setup: Setup,
    first_token: Option<FirstToken>,
    reload_counts: watch::Sender<ReloadCounts>,
}

impl ConfigReloader {
    /// Watches the files of the configuration. If they cannot be watched, the server runs without reloads.
    fn watch_config(self, config_inputs: ConfigInputs, config: &Config) -> Option<config::ConfigWatcher> {
        let runtime = tokio::runtime::Handle::current();
        let watcher = config::watch_config(config_inputs, config, move |changed| {
            let applied = match changed {
                Ok(config) => runtime.block_on(self.apply_config(&config)),
                Err(faults) => Err(StartOrReloadError::Config(faults)),
            };
            match applied {
                Ok(()) => tracing::info!(
                    "configuration reloaded; its changes are active, except those of settings that a warning names as \
                     needing a restart"
                ),
                Err(ref error) => {
                    self.app.config_status.record_rejected_reload(error, self.app.now());
                    tracing::error!(
                        "configuration reload rejected; the previous configuration stays active until the \
                         files are corrected: {}",
                        ErrorChain(error)
                    );
                }
            }
            self.reload_counts.send_modify(|count| match applied {
                Ok(()) => count.applied += 1,
                Err(_) => count.rejected += 1,
            });
        });
        let warn = |error: &io::Error| {
            tracing::warn!(%error, "cannot watch the configuration files; changes take effect only after a restart");
        };
        watcher.inspect_err(warn).ok()
    }

    async fn apply_config(&self, config: &Config) -> Result<(), StartOrReloadError> {
        for warning in &config.warnings {
            tracing::warn!("configuration warning; it does not prevent the reload: {warning}");
        }
        let setup =
            merge_setups(&self.program_setup, config.build_setup().map_err(StartOrReloadError::Config)?)?;
        if config.tokens.is_empty() && self.first_token.is_none() {
            return Err(StartOrReloadError::NoTokenAfterReload);
        }
        self.app.engine.reconfigure(setup).await.map_err(StartOrReloadError::Engine)?;
        self.app
            .accepted_tokens
            .send_replace(build_accepted_tokens(&config.tokens, self.first_token.as_ref()));
        self.app.config_status.record_applied_reload(config, self.app.now());
        Ok(())
    }
}
