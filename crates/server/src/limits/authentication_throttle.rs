//! Failed authentications: counted, throttled and logged per address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::metrics::HttpMetrics;
use crate::problem::Problem;

/// The number of failures that an address may have in a burst. After the burst, it may have one more in each
/// [`FAILURE_REFILL_INTERVAL`].
const MAX_FAILURE_BURST: u32 = 100;
/// The interval after which an address may fail once more.
const FAILURE_REFILL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of addresses in each of the two generations.
const MAX_ADDRESSES_PER_GENERATION: usize = 4096;
/// Minimum interval between two reports of failures in the log.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of addresses that a report of failures names.
const MAX_REPORTED_ADDRESSES: usize = 10;

/// Counts failed authentications per address, and throttles addresses that fail too often. Only requests that fail are
/// throttled: a valid token is accepted from any address.
#[derive(Debug)]
pub(crate) struct AuthenticationThrottle {
    failing_addresses: Mutex<FailingAddresses>,
    failure_recorded: Notify,
    metrics: Arc<HttpMetrics>,
}

/// Two generations of addresses. When the recent one is full it replaces the older one, so that memory is bounded and
/// addresses that fail often stay.
#[derive(Debug, Default)]
struct FailingAddresses {
    recent_generation: HashMap<IpAddr, AddressFailures>,
    older_generation: HashMap<IpAddr, AddressFailures>,
    /// Failures of addresses that were evicted before they were logged.
    unlogged_count_of_evicted_addresses: u64,
}

#[derive(Clone, Copy, Debug)]
struct AddressFailures {
    /// The time at which this address may again have a whole burst of failures, unless it fails before.
    budget_refilled_at: Instant,
    /// Failures that have not been logged yet.
    unlogged_failure_count: u64,
}

/// Failures since the last report.
#[derive(Debug, Default, PartialEq, Eq)]
struct FailureReport {
    /// The addresses with the most failures.
    failures_by_address: Vec<(IpAddr, u64)>,
    /// Number of failures of all other addresses.
    other_failure_count: u64,
}

impl AuthenticationThrottle {
    pub(crate) fn new(metrics: Arc<HttpMetrics>) -> Self {
        Self { failing_addresses: Mutex::default(), failure_recorded: Notify::new(), metrics }
    }

    /// The response to a request with an unknown token: 401, or 429 if its address has failed too often.
    pub(crate) fn refuse_unknown_token(&self, address: IpAddr) -> Problem {
        let wait = self.record_failure(address, Instant::now());
        self.metrics.count_failed_authentication();
        self.failure_recorded.notify_one();
        match wait {
            None => Problem::unauthorized("this token is not known"),
            Some(wait) => {
                self.metrics.count_throttled_authentication();
                let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
                let detail = "too many requests with unknown tokens from this address; a valid token is \
                              accepted at any time";
                Problem::too_many_requests(detail, seconds)
            }
        }
    }

    /// Counts a failure. Returns how long the address has to wait, if it failed too often.
    fn record_failure(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let mut addresses = self.lock_addresses();
        let failures = addresses.get_or_insert_address(address, now);
        failures.unlogged_failure_count += 1;
        let budget_refilled_at = failures.budget_refilled_at.max(now) + FAILURE_REFILL_INTERVAL;
        let wait = budget_refilled_at
            .duration_since(now)
            .checked_sub(FAILURE_REFILL_INTERVAL * MAX_FAILURE_BURST)
            .filter(|wait| !wait.is_zero());
        if wait.is_none() {
            failures.budget_refilled_at = budget_refilled_at;
        }
        wait
    }

    /// Logs failures as they occur, at intervals.
    pub(crate) async fn log_failures_periodically(&self) {
        loop {
            self.failure_recorded.notified().await;
            let FailureReport { failures_by_address: addresses, other_failure_count: other_failures } =
                self.lock_addresses().take_report();
            for (address, failures) in addresses {
                tracing::warn!(
                    %address,
                    refused_requests = failures,
                    "requests with unknown tokens were refused; if the client is yours, give it a valid token"
                );
            }
            if other_failures > 0 {
                tracing::warn!(
                    refused_requests = other_failures,
                    "requests with unknown tokens were refused, from more addresses than are logged one by one; if this \
                     persists, let only known networks reach the server"
                );
            }
            sleep(REPORT_INTERVAL).await;
        }
    }

    fn lock_addresses(&self) -> MutexGuard<'_, FailingAddresses> {
        self.failing_addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FailingAddresses {
    fn get_or_insert_address(&mut self, address: IpAddr, now: Instant) -> &mut AddressFailures {
        let is_recent = self.recent_generation.contains_key(&address);
        if !is_recent && self.recent_generation.len() >= MAX_ADDRESSES_PER_GENERATION {
            let evicted =
                std::mem::replace(&mut self.older_generation, std::mem::take(&mut self.recent_generation));
            self.unlogged_count_of_evicted_addresses +=
                evicted.values().map(|failures| failures.unlogged_failure_count).sum::<u64>();
        }
        let older = self.older_generation.remove(&address);
        let new = AddressFailures { budget_refilled_at: now, unlogged_failure_count: 0 };
        self.recent_generation.entry(address).or_insert_with(|| older.unwrap_or(new))
    }

    fn take_report(&mut self) -> FailureReport {
        let all = self.recent_generation.iter_mut().chain(&mut self.older_generation);
        let mut addresses: Vec<(IpAddr, u64)> = all
            .filter(|(_, failures)| failures.unlogged_failure_count > 0)
            .map(|(address, failures)| (*address, std::mem::take(&mut failures.unlogged_failure_count)))
            .collect();
        addresses.sort_by_key(|(address, failures)| (std::cmp::Reverse(*failures), *address));
        let rest: u64 = addresses.iter().skip(MAX_REPORTED_ADDRESSES).map(|(_, failures)| failures).sum();
        addresses.truncate(MAX_REPORTED_ADDRESSES);
        FailureReport {
            failures_by_address: addresses,
            other_failure_count: rest + std::mem::take(&mut self.unlogged_count_of_evicted_addresses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_authentication_throttle() -> AuthenticationThrottle {
        AuthenticationThrottle::new(Arc::default())
    }

    fn test_address(number: u32) -> IpAddr {
        std::net::Ipv4Addr::from(number).into()
    }

    #[test]
    fn an_address_that_fails_too_often_has_to_wait() {
        let (failures, now) = (new_authentication_throttle(), Instant::now());
        for _ in 0..MAX_FAILURE_BURST {
            assert_eq!(failures.record_failure(test_address(1), now), None);
        }
        assert_eq!(failures.record_failure(test_address(1), now), Some(FAILURE_REFILL_INTERVAL));
        assert_eq!(
            failures.record_failure(test_address(1), now),
            Some(FAILURE_REFILL_INTERVAL),
            "waiting does not become longer"
        );
        assert_eq!(failures.record_failure(test_address(2), now), None);
        assert_eq!(failures.record_failure(test_address(1), now + FAILURE_REFILL_INTERVAL), None);
        assert!(failures.record_failure(test_address(1), now + FAILURE_REFILL_INTERVAL).is_some());
    }

    #[test]
    fn the_number_of_addresses_in_memory_is_bounded() {
        let (failures, now) = (new_authentication_throttle(), Instant::now());
        for _ in 0..=MAX_FAILURE_BURST {
            failures.record_failure(test_address(0), now);
        }
        for number in 1..=3 * MAX_ADDRESSES_PER_GENERATION as u32 {
            failures.record_failure(test_address(number), now);
            // An address that keeps failing is not evicted by others.
            if number.is_multiple_of(1000) {
                assert!(failures.record_failure(test_address(0), now).is_some());
            }
        }
        let addresses = failures.lock_addresses();
        assert!(
            addresses.recent_generation.len() <= MAX_ADDRESSES_PER_GENERATION
                && addresses.older_generation.len() <= MAX_ADDRESSES_PER_GENERATION
        );
    }

    #[test]
    fn failure_reports_count_every_failure_by_address() {
        let (failures, now) = (new_authentication_throttle(), Instant::now());
        for number in 0..12 {
            for _ in 0..=number {
                failures.record_failure(test_address(number), now);
            }
        }
        let report = failures.lock_addresses().take_report();
        assert_eq!(report.failures_by_address.len(), MAX_REPORTED_ADDRESSES);
        assert_eq!(report.failures_by_address[0], (test_address(11), 12));
        assert_eq!(report.other_failure_count, 1 + 2);
        assert_eq!(failures.lock_addresses().take_report(), FailureReport::default());

        for number in 0..3 * MAX_ADDRESSES_PER_GENERATION as u32 {
            failures.record_failure(test_address(number), now);
        }
        let report = failures.lock_addresses().take_report();
        let named: u64 = report.failures_by_address.iter().map(|(_, failures)| failures).sum();
        assert_eq!(named + report.other_failure_count, 3 * MAX_ADDRESSES_PER_GENERATION as u64);
    }
}
