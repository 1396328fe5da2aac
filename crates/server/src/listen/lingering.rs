//! Connections that are about to be closed, while their clients read the last response.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How long a client has to read the response.
const MAX_LINGER_TIME: Duration = Duration::from_secs(5);
/// Maximum number of lingering connections. Another one closes the oldest.
pub(super) const MAX_LINGERING_CONNECTIONS: usize = 128;

/// The lingering connections, oldest first. Some of them may have ended already.
#[derive(Debug, Default)]
pub(super) struct LingeringConnections(Mutex<VecDeque<CancellationToken>>);

impl LingeringConnections {
    /// Runs a connection until it ends, for a limited time.
    pub(super) async fn run_for_linger_time<T>(&self, connection: impl Future<Output = T>) -> Option<T> {
        let end_signal = self.register_connection();
        let ended = timeout(MAX_LINGER_TIME, end_signal.run_until_cancelled(connection)).await;
        ended.ok().flatten()
    }

    fn register_connection(&self) -> CancellationToken {
        let mut lingering = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lingering.len() >= MAX_LINGERING_CONNECTIONS
            && let Some(oldest) = lingering.pop_front()
        {
            oldest.cancel();
        }
        let end_signal = CancellationToken::new();
        lingering.push_back(end_signal.clone());
        end_signal
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn the_oldest_lingering_connection_ends_when_the_limit_is_reached() {
        let lingering = Arc::new(LingeringConnections::default());
        let first = tokio::spawn({
            let lingering = lingering.clone();
            async move { lingering.run_for_linger_time(pending::<()>()).await }
        });
        while lingering.0.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        for _ in 0..MAX_LINGERING_CONNECTIONS {
            assert_eq!(lingering.run_for_linger_time(ready(1)).await, Some(1));
        }
        assert_eq!(first.await.unwrap(), None);
    }
}
