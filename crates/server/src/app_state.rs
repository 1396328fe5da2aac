//! The state that all requests share.

use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_engine::Engine;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{AcceptedTokens, Caller};
use crate::config::Config;
use crate::config_status::ConfigStatus;
use crate::jobscheduler::OrderStatisticsCache;
use crate::limits::{AuthenticationThrottle, ResponseMemoryBudget, StreamLimiter};
use crate::listen::{self, ConnectionAdmission};
use crate::metrics::HttpMetrics;

/// Maximum bytes of request bodies in memory at a time, over all connections.
const MAX_TOTAL_REQUEST_BODY_BYTES: usize = 256 << 20;

pub(crate) type App = Arc<AppState>;

pub(crate) struct AppState {
    pub(crate) engine: Engine,
    /// Kind of the store: `sqlite`, `postgres` or `redis`.
    pub(crate) store_kind: &'static str,
    pub(crate) http_metrics: Arc<HttpMetrics>,
    /// Admits connections and counts the open ones.
    pub(crate) connection_admission: Arc<ConnectionAdmission>,
    pub(crate) stream_limiter: Arc<StreamLimiter>,
    /// Memory for responses in flight.
    pub(crate) response_memory_budget: Arc<ResponseMemoryBudget>,
    pub(crate) authentication_throttle: AuthenticationThrottle,
    /// Accepted tokens; replaced when the configuration is reloaded.
    pub(crate) accepted_tokens: watch::Sender<AcceptedTokens>,
    /// Cancelled when the server stops; streams and long polls then end.
    pub(crate) stop_signal: CancellationToken,
    /// Budget for request bodies: one permit per byte.
    pub(crate) request_body_budget: Arc<Semaphore>,
    /// Requests that change something and have started. They finish even if their client disconnects.
    pub(crate) changes_in_flight: TaskTracker,
    pub(crate) order_statistics_cache: OrderStatisticsCache,
    pub(crate) config_status: ConfigStatus,
}

impl AppState {
    pub(crate) fn new(
        engine: Engine,
        config: &Config,
        tokens: AcceptedTokens,
        stop_signal: CancellationToken,
    ) -> App {
        let (limits, metrics) = (&config.server_limits, Arc::new(HttpMetrics::default()));
        let max_connections = match config.serves_http {
            true => listen::raise_open_file_limit_for_connections(
                config.max_connections,
                config.max_running_tasks,
            ),
            false => config.max_connections,
        };
        Arc::new(Self {
            engine,
            store_kind: config.store_url.kind().name(),
            connection_admission: ConnectionAdmission::new(max_connections, limits, metrics.clone()),
            stream_limiter: StreamLimiter::new(limits.streams_per_client, metrics.clone()),
            response_memory_budget: Arc::new(ResponseMemoryBudget::new(limits, metrics.clone())),
            authentication_throttle: AuthenticationThrottle::new(metrics.clone()),
            http_metrics: metrics,
            accepted_tokens: watch::Sender::new(tokens),
            stop_signal,
            request_body_budget: Arc::new(Semaphore::new(MAX_TOTAL_REQUEST_BODY_BYTES)),
            changes_in_flight: TaskTracker::new(),
            order_statistics_cache: OrderStatisticsCache::default(),
            config_status: ConfigStatus::default(),
        })
    }

    /// Waits until a caller's token is no longer accepted. Long-running responses select on this, because revoking a
    /// token must also end the streams that were opened with it.
    pub(crate) async fn wait_until_token_revoked(&self, caller: &Caller) {
        // `self` owns the sender, so the channel cannot close during the wait.
        let _ =
            self.accepted_tokens.subscribe().wait_for(|tokens| !tokens.is_token_still_accepted(caller)).await;
    }

    /// The current time by the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.engine.store()
    }
}
