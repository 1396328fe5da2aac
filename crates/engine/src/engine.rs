//! The engine: all rooms of one node, started and stopped together.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::store::{Emission, Receipt, Refused, Store, StoreError};
use tokio::sync::broadcast;

use crate::metrics::Metrics;
use crate::observer::Observer;
use crate::{Settings, Setup, TaskChange};

/// Why an emit did not happen. Nothing of it was stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum EmitError {
    #[error(transparent)]
    Refused(#[from] Refused),
    /// More is waiting to be journaled than the node holds in memory.
    #[error("too many events are waiting to be journaled")]
    Overloaded,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// All rooms of one node. Cheap to clone; the rooms end with [`Engine::stop`].
#[derive(Clone)]
pub struct Engine {
    _private: (),
}

impl Engine {
    /// Joins the store as a node, registers the handlers and routes, and starts the rooms.
    pub async fn start(store: Arc<dyn Store>, settings: Settings, setup: Setup) -> Result<Self, StoreError> {
        let _ = (store, settings, setup);
        unimplemented!()
    }

    /// Journals events; answers when they are durable.
    pub async fn emit(&self, emission: Emission) -> Result<Receipt, EmitError> {
        let _ = emission;
        unimplemented!()
    }

    /// Replaces handlers, routes and schedules. Running attempts end as they began.
    pub async fn reconfigure(&self, setup: Setup) -> Result<(), StoreError> {
        let _ = setup;
        unimplemented!()
    }

    /// What is set up now.
    pub fn setup(&self) -> Arc<Setup> {
        unimplemented!()
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        unimplemented!()
    }

    /// Reads the journal and waits for its growth.
    pub fn observer(&self) -> &Observer {
        unimplemented!()
    }

    /// Task changes of this node from now on. A slow receiver misses some.
    pub fn changes(&self) -> broadcast::Receiver<TaskChange> {
        unimplemented!()
    }

    pub fn metrics(&self) -> &Metrics {
        unimplemented!()
    }

    /// Tells the rooms that a task was steered from outside (cancelled, retried, adopted), so that a running
    /// attempt that lost its task is ended and new work is looked for.
    pub fn nudge(&self) {
        unimplemented!()
    }

    /// Stops claiming, lets running attempts end for up to `drain`, gives the rest back without cost, leaves
    /// the store's list of nodes, and ends the rooms.
    pub async fn stop(&self, drain: Duration) {
        let _ = drain;
        unimplemented!()
    }
}
