//! Counts the response memory permits of each connection.
//!
//! Responses are built and written by the future that serves their connection, so that a permit finds its connection in
//! a task-local variable. Clients of connections that use response memory must read at a minimum rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

tokio::task_local! {
    static CURRENT_CONNECTION_PERMITS: ConnectionPermits;
}

/// Counts the permits that a connection has.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionPermits(Arc<AtomicUsize>);

/// A permit that is counted for its connection, until this is dropped.
#[derive(Debug)]
pub(super) struct CountedPermit(ConnectionPermits);

impl ConnectionPermits {
    /// Runs a connection. Permits taken meanwhile are counted for it.
    pub(crate) async fn run_and_count_permits<F: Future>(&self, connection: F) -> F::Output {
        CURRENT_CONNECTION_PERMITS.scope(self.clone(), connection).await
    }

    pub(crate) fn has_permits(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Counts a permit for the connection that is being served; none outside of connections.
    pub(super) fn count_permit_of_current_connection() -> Option<CountedPermit> {
        CURRENT_CONNECTION_PERMITS.try_with(ConnectionPermits::clone).ok().map(|memory| {
            memory.0.fetch_add(1, Ordering::Relaxed);
            CountedPermit(memory)
        })
    }
}

impl Drop for CountedPermit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
