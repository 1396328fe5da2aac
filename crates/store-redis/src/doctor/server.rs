//! Checks of the server: latency, version, hosts of the URL and clock.

use std::time::{Duration, Instant};

use pointsman_store::finding::{Finding, check_clock_offset};
use redis::RedisResult;

use super::{CheckResult, Doctor};
use crate::connect::info_value;

/// A slower round trip is a warning: each commit takes several.
const SLOW_ROUND_TRIP: Duration = Duration::from_millis(20);
const PROBE_COUNT: u32 = 5;

impl Doctor {
    pub(super) async fn check_server(&self) -> CheckResult {
        let mut connection = self.connection();
        let round_trip = self.measure_round_trip().await?;
        let info: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
        let client_info: String = redis::cmd("CLIENT").arg("INFO").query_async(&mut connection).await?;
        let version = info_value(&info, "redis_version").unwrap_or_default();
        Ok(vec![
            self.connection_latency_finding(round_trip, is_same_machine(&client_info)),
            Finding::ok("version", format!("Redis {version}, {}", self.endpoint.describe_discovery_mode())),
        ])
    }

    fn connection_latency_finding(&self, round_trip: Duration, is_local: bool) -> Finding {
        let encrypted = if self.endpoint.is_encrypted() { "encrypted" } else { "not encrypted" };
        let round_trip_ms = round_trip.as_secs_f64() * 1000.0;
        let found = format!("{}, {encrypted}, {round_trip_ms:.1} ms round trip", self.endpoint);
        if !self.endpoint.is_encrypted() && !is_local {
            return Finding::warning("connection", found).with_advice(
                "The network can read the traffic. Give the server a certificate (tls-port), and begin the URL with \
                 rediss.",
            );
        }
        if round_trip > SLOW_ROUND_TRIP {
            return Finding::warning("connection", found)
                .with_advice("Each commit takes several round trips. Run the nodes close to the server.");
        }
        Finding::ok("connection", found)
    }

    /// Measures the shortest of several round trips.
    async fn measure_round_trip(&self) -> RedisResult<Duration> {
        let mut connection = self.connection();
        let mut shortest = Duration::MAX;
        for _ in 0..PROBE_COUNT {
            let begun = Instant::now();
            redis::cmd("ECHO").arg("").exec_async(&mut connection).await?;
            shortest = shortest.min(begun.elapsed());
        }
        Ok(shortest)
    }

    /// Checks that all hosts of the URL lead to the same server.
    pub(super) async fn check_hosts(&self) -> CheckResult {
        let endpoint = self.endpoint.clone();
        let Some(resolved) = endpoint.resolve_each_host().await else { return Ok(vec![]) };
        let failures: Vec<String> =
            resolved.iter().filter_map(|host| host.as_ref().err()).map(ToString::to_string).collect();
        let mut servers: Vec<String> = resolved.iter().flatten().map(ToString::to_string).collect();
        servers.sort();
        servers.dedup();
        let found = format!("{} in the URL, which lead to {}", resolved.len(), servers.join(" and to "));
        let finding = match (failures.is_empty(), servers.len(), resolved.len()) {
            (false, ..) => Finding::warning("hosts", failures.join("; "))
                .with_advice("The other hosts are used instead. Repair it, or remove it from the URL."),
            (true, 0 | 1, 1) => Finding::warning("hosts", "the URL names only one")
                .with_advice("While that host is down, the server cannot be found. Name the others too."),
            (true, 0 | 1, _) => Finding::ok("hosts", found),
            (true, ..) => Finding::warning("hosts", found).with_advice(
                "The hosts disagree, which is normal shortly after a failover. Run doctor again.",
            ),
        };
        Ok(vec![finding])
    }

    pub(super) async fn check_clock(&self) -> CheckResult {
        let (before, begun) = ((self.machine_clock)(), Instant::now());
        let (seconds, micros): (i64, i64) = redis::cmd("TIME").query_async(&mut self.connection()).await?;
        let round_trip = begun.elapsed().as_secs_f64();
        let ahead_seconds = (seconds * 1_000_000 + micros - before.micros()) as f64 / 1e6;
        Ok(vec![check_clock_offset(ahead_seconds, round_trip)])
    }
}

/// Returns whether client and server are on one machine: then both ends of the connection in `CLIENT INFO` have the same
/// address.
fn is_same_machine(client_info: &str) -> bool {
    let ip = |name: &str| {
        let address = client_info.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        address.and_then(|address| address.rsplit_once(':')).map(|(ip, _)| ip)
    };
    ip("addr").is_some_and(|client_ip| ip("laddr") == Some(client_ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_machine_is_detected_from_client_addresses() {
        assert!(is_same_machine("id=3 addr=127.0.0.1:5000 laddr=127.0.0.1:6379 fd=8"));
        assert!(is_same_machine("id=3 addr=[::1]:5000 laddr=[::1]:6379 fd=8"));
        assert!(!is_same_machine("id=3 addr=10.0.0.2:5000 laddr=10.0.0.1:6379 fd=8"));
        assert!(!is_same_machine(""));
    }
}
