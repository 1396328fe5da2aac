//! What every request can reach.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_engine::Engine;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::auth::Tokens;

/// How many bytes of request bodies are held at a time, over all connections.
const BODY_BUDGET: usize = 256 << 20;

pub(crate) type App = Arc<Shared>;

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    /// Replaced when the configuration is.
    pub(crate) tokens: ArcSwap<Tokens>,
    /// Cancelled when the server stops: streams and long polls end.
    pub(crate) stopping: CancellationToken,
    /// One permit a byte.
    pub(crate) body_budget: Arc<Semaphore>,
}

impl Shared {
    pub(crate) fn new(engine: Engine, tokens: Tokens, stopping: CancellationToken) -> App {
        let body_budget = Arc::new(Semaphore::new(BODY_BUDGET));
        Arc::new(Self { engine, tokens: ArcSwap::from_pointee(tokens), stopping, body_budget })
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.engine.store()
    }
}

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)).min(Timestamp::MAX)
}
