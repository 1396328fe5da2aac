//! Counts the response memory permits of each connection.
//!
//! Responses are built and written by the future that serves their connection, so that a permit finds its connection in
//! a task-local variable. Clients of connections that use response memory must read at a minimum rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

tokio::task_local! {
    static CURRENT_CONNECTION_MEMORY_PERMITS: ConnectionMemoryPermits;
}

/// Counts the response memory permits that a connection has.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionMemoryPermits(Arc<AtomicUsize>);

/// Counts a response memory permit for its connection until this is dropped.
#[derive(Debug)]
pub(super) struct CountedPermit(ConnectionMemoryPermits);

impl ConnectionMemoryPermits {
    /// Runs the future that serves a connection. Response memory permits that it takes are counted for the connection.
    pub(crate) async fn run_and_count_permits<F: Future>(&self, connection: F) -> F::Output {
        CURRENT_CONNECTION_MEMORY_PERMITS.scope(self.clone(), connection).await
    }

    pub(crate) fn has_permits(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Counts a permit for the connection that the current future serves; `None` if it serves no connection.
    pub(super) fn count_permit_of_current_connection() -> Option<CountedPermit> {
        CURRENT_CONNECTION_MEMORY_PERMITS.try_with(ConnectionMemoryPermits::clone).ok().map(|memory| {
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
