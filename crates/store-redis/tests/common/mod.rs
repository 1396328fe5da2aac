//! Helpers shared by the tests of this store.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub(crate) mod command_proxy;
pub(crate) mod invariants;
pub(crate) mod journal_checks;
pub(crate) mod load;
pub(crate) mod mixed_producer;
pub(crate) mod redis_location;
pub(crate) mod test_node;

use std::time::{Duration, SystemTime};

use pointsman_core::Timestamp;
use tokio::time::{sleep, timeout};

/// Timeout for a hanging test.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(120);
/// Interval of polling.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) fn now() -> Timestamp {
    Timestamp::MIN.plus(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap())
}

/// Polls until a condition is true; `what` describes it for the panic message.
pub(crate) async fn wait_until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let polling = async {
        while !condition().await {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TEST_TIMEOUT, polling).await.unwrap_or_else(|_| panic!("timed out waiting until {what}"));
}
