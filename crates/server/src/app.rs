//! What every request can reach.

use std::sync::Arc;

use pointsman_core::Timestamp;
use pointsman_core::store::Store;
use pointsman_engine::Engine;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::{Caller, Tokens};
use crate::configured::Configured;
use crate::jobscheduler::Tallies;

/// How many bytes of request bodies are held at a time, over all connections.
const BODY_BUDGET: usize = 256 << 20;

pub(crate) type App = Arc<Shared>;

pub(crate) struct Shared {
    pub(crate) engine: Engine,
    /// What kind of store it is.
    pub(crate) store_kind: &'static str,
    /// Replaced when the configuration is.
    pub(crate) tokens: watch::Sender<Tokens>,
    /// Cancelled when the server stops: streams and long polls end.
    pub(crate) stopping: CancellationToken,
    /// One permit a byte.
    pub(crate) body_budget: Arc<Semaphore>,
    /// What has been begun and must not be cut short.
    pub(crate) deeds: TaskTracker,
    pub(crate) tallies: Tallies,
    pub(crate) configured: Configured,
}

impl Shared {
    pub(crate) fn new(
        engine: Engine,
        store_kind: &'static str,
        tokens: Tokens,
        stopping: CancellationToken,
    ) -> App {
        let body_budget = Arc::new(Semaphore::new(BODY_BUDGET));
        let (tokens, deeds) = (watch::Sender::new(tokens), TaskTracker::new());
        let (tallies, configured) = (Tallies::default(), Configured::default());
        Arc::new(Self { engine, store_kind, tokens, stopping, body_budget, deeds, tallies, configured })
    }

    /// Waits until a caller's token is no longer accepted. Whoever answers for long asks this all the while: who
    /// takes a token back means also what was begun with it.
    pub(crate) async fn revoked(&self, caller: &Caller) {
        // The sender is here, so the wait cannot end otherwise.
        let _ = self.tokens.subscribe().wait_for(|tokens| !tokens.knows(caller)).await;
    }

    /// What time it is, by the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.now()
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.engine.store()
    }
}
