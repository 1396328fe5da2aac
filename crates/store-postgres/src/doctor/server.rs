//! Checks the server itself: its version, encoding, access mode, clock and round trip time.

use std::time::{Duration, Instant};

use pointsman_store::finding::{Finding, check_clock_offset};
use tokio_postgres::Error;

use super::{CheckResult, Doctor};
use crate::migrate::MIN_SERVER_VERSION;
use crate::session::query;

/// A longer round trip is reported, because every commit takes a few round trips.
const SLOW_ROUND_TRIP: Duration = Duration::from_millis(20);
const ROUND_TRIP_SAMPLES: u32 = 5;

impl Doctor {
    /// Checks connection, version, encoding and access mode; returns whether the version is supported.
    pub(super) async fn check_server(&self) -> CheckResult<bool> {
        let round_trip = self.measure_round_trip().await?;
        let rows = self.query_read_only(query!("doctor/read_server_properties"), &[]).await?;
        let Some(row) = rows.first() else { return Ok((vec![], false)) };
        let (tls, is_local): (&str, bool) = (row.try_get(5)?, row.try_get(6)?);
        let mut findings = vec![self.connection_finding(round_trip, tls, is_local)];
        let (number, version): (i32, &str) = (row.try_get(0)?, row.try_get(1)?);
        let is_supported = number / 10_000 >= MIN_SERVER_VERSION;
        findings.push(match is_supported {
            true => Finding::ok("version", format!("PostgreSQL {version}")),
            false => Finding::fault(
                "version",
                format!("PostgreSQL {version}, and {MIN_SERVER_VERSION} or newer is required"),
            )
            .with_advice("Upgrade it, or use another server."),
        });
        let encoding: &str = row.try_get(2)?;
        findings.push(match encoding {
            "UTF8" => Finding::ok("encoding", "UTF8"),
            _ => Finding::fault("encoding", format!("{encoding}, and UTF8 is required"))
                .with_advice("Create another: CREATE DATABASE … TEMPLATE template0 ENCODING UTF8"),
        });
        findings.push(writable_finding(row.try_get(3)?, row.try_get(4)?));
        Ok((findings, is_supported))
    }

    fn connection_finding(&self, round_trip: Duration, tls: &str, is_local: bool) -> Finding {
        let encrypted = if tls.is_empty() { "not encrypted".into() } else { format!("encrypted ({tls})") };
        let round_trip_ms = round_trip.as_secs_f64() * 1000.0;
        let found = format!("{}, {encrypted}, round trip {round_trip_ms:.1} ms", self.endpoint);
        // Behind a pooler the server sees only the pooler's connection.
        if tls.is_empty() && !is_local && !self.endpoint.is_behind_pooler() {
            return Finding::warning("connection", found).with_advice(
                "Anybody on the network path can read the traffic. Give the server a certificate, and add \
                 sslmode=verify-full and sslrootcert to the URL.",
            );
        }
        if round_trip > SLOW_ROUND_TRIP {
            return Finding::warning("connection", found)
                .with_advice("Every commit takes a few round trips. Run the nodes near the database.");
        }
        Finding::ok("connection", found)
    }

    /// Measures the shortest round trip time.
    async fn measure_round_trip(&self) -> Result<Duration, Error> {
        let mut shortest = Duration::MAX;
        for _ in 0..ROUND_TRIP_SAMPLES {
            let begun = Instant::now();
            self.session.execute_batch("SELECT").await?;
            shortest = shortest.min(begun.elapsed());
        }
        Ok(shortest)
    }

    pub(super) async fn check_clock(&self) -> CheckResult<()> {
        let (before, begun) = ((self.machine_clock)(), Instant::now());
        let rows = self.query_read_only(query!("server/read_clock"), &[]).await?;
        let Some(row) = rows.first() else { return Ok((vec![], ())) };
        let (server_micros, took) = (row.try_get::<_, i64>(0)?, begun.elapsed().as_secs_f64());
        let ahead_seconds = (server_micros - before.micros()) as f64 / 1e6;
        Ok((vec![check_clock_offset(ahead_seconds, took)], ()))
    }
}

fn writable_finding(is_standby: bool, is_read_only: bool) -> Finding {
    match (is_standby, is_read_only) {
        (true, _) => Finding::fault("writable", "this is a standby, which is read-only").with_advice(
            "Name the primary in the URL; with several hosts, add target_session_attrs=read-write.",
        ),
        (false, true) => Finding::fault("writable", "default_transaction_read_only is on for this role")
            .with_advice("Turn it off: ALTER ROLE … SET default_transaction_read_only = off"),
        (false, false) => Finding::ok("writable", "yes"),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_store::finding::FindingSeverity;

    use super::*;

    #[test]
    fn a_standby_or_read_only_role_is_not_writable() {
        assert_eq!(writable_finding(true, false).severity, FindingSeverity::Fault);
        assert_eq!(writable_finding(false, true).severity, FindingSeverity::Fault);
        assert_eq!(writable_finding(false, false).severity, FindingSeverity::Ok);
    }
}
