//! Checks of the server: latency, version, hosts of the URL and clock.

use std::time::{Duration, Instant, SystemTime};

use pointsman_store::finding::{Finding, check_clock_offset};
use redis::RedisResult;

use super::{CheckResult, Doctor};
use crate::connect::info_line;

/// A slower round trip is a warning: each commit takes several.
const SLOW_ROUND_TRIP: Duration = Duration::from_millis(20);
const PROBES: u32 = 5;

impl Doctor {
    pub(super) async fn check_server(&self) -> CheckResult {
        let mut connection = self.connection();
        let way = self.measure_round_trip().await?;
        let info: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
        let client: String = redis::cmd("CLIENT").arg("INFO").query_async(&mut connection).await?;
        let version = info_line(&info, "redis_version").unwrap_or_default();
        Ok(vec![
            self.connection_latency_finding(way, is_same_machine(&client)),
            Finding::ok("version", format!("Redis {version}, {}", self.endpoint.describe_mode())),
        ])
    }

    fn connection_latency_finding(&self, way: Duration, near: bool) -> Finding {
        let encrypted = if self.endpoint.is_encrypted() { "encrypted" } else { "not encrypted" };
        let way_ms = way.as_secs_f64() * 1000.0;
        let found = format!("{}, {encrypted}, {way_ms:.1} ms round trip", self.endpoint);
        if !self.endpoint.is_encrypted() && !near {
            return Finding::warning("connection", found).with_advice(
                "Whoever is on the way can read it. Give the server a certificate (tls-port), and let the URL begin with \
                 rediss.",
            );
        }
        if way > SLOW_ROUND_TRIP {
            return Finding::warning("connection", found)
                .with_advice("Every commit takes that long a few times. Run the nodes near the server.");
        }
        Finding::ok("connection", found)
    }

    /// Measures the shortest of several round trips.
    async fn measure_round_trip(&self) -> RedisResult<Duration> {
        let mut connection = self.connection();
        let mut shortest = Duration::MAX;
        for _ in 0..PROBES {
            let begun = Instant::now();
            redis::cmd("ECHO").arg("").exec_async(&mut connection).await?;
            shortest = shortest.min(begun.elapsed());
        }
        Ok(shortest)
    }

    /// Checks that all hosts of the URL lead to the same server.
    pub(super) async fn check_hosts(&self) -> CheckResult {
        let endpoint = self.endpoint.clone();
        let Some(leads) = endpoint.resolve_each_host().await else { return Ok(vec![]) };
        let astray: Vec<String> =
            leads.iter().filter_map(|lead| lead.as_ref().err()).map(ToString::to_string).collect();
        let mut places: Vec<String> = leads.iter().flatten().map(ToString::to_string).collect();
        places.sort();
        places.dedup();
        let found = format!("{} in the URL, which lead to {}", leads.len(), places.join(" and to "));
        let finding = match (astray.is_empty(), places.len(), leads.len()) {
            (false, ..) => Finding::warning("hosts", astray.join("; "))
                .with_advice("Others are asked instead. See to it, or take it out of the URL."),
            (true, 0 | 1, 1) => Finding::warning("hosts", "the URL names only one")
                .with_advice("While that one is gone, the server cannot be found: name the others, too."),
            (true, 0 | 1, _) => Finding::ok("hosts", found),
            (true, ..) => Finding::warning("hosts", found)
                .with_advice("They do not agree; after a failover that lasts a moment. Look again."),
        };
        Ok(vec![finding])
    }

    pub(super) async fn check_clock(&self) -> CheckResult {
        let (before, begun) = (SystemTime::now(), Instant::now());
        let (seconds, micros): (f64, f64) = redis::cmd("TIME").query_async(&mut self.connection()).await?;
        let took = begun.elapsed().as_secs_f64();
        let before = before.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        Ok(vec![check_clock_offset(seconds + micros / 1e6 - before, took)])
    }
}

/// Returns whether client and server are on one machine: then both ends have the same address.
fn is_same_machine(client: &str) -> bool {
    let ip = |name: &str| {
        let address = client.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        address.and_then(|address| address.rsplit_once(':')).map(|(ip, _)| ip)
    };
    ip("addr").is_some_and(|there| ip("laddr") == Some(there))
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
