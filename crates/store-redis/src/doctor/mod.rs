//! Diagnoses a Redis and a store on it.
//!
//! The store is not changed: write latency is measured with a temporary key, which is deleted at once and would expire.
//! A check that fails is reported, and the others run all the same.

mod activity;
mod keys;
mod orphaned_objects;
mod server;
mod write_and_pubsub;

use std::future::Future;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_store::finding::Finding;
use redis::RedisResult;
use redis::aio::MultiplexedConnection;

use crate::connect::Endpoint;
use crate::error::error_reason;
use crate::server_settings::ServerSettings;

/// Timeout of each check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the checks over one connection.
struct Doctor {
    endpoint: Endpoint,
    connection: MultiplexedConnection,
    /// Reads the clock of this machine.
    machine_clock: fn() -> Timestamp,
}

/// Diagnoses the Redis at a URL. `machine_clock` reads the clock of this machine.
pub async fn examine(url: &str, machine_clock: fn() -> Timestamp) -> Vec<Finding> {
    let endpoint = match Endpoint::parse(url) {
        Ok(endpoint) => endpoint,
        Err(error) => return vec![Finding::from_open_error("connection", &error)],
    };
    match endpoint.connect().await {
        Ok(connection) => Doctor { endpoint, connection, machine_clock }.run_all_checks().await,
        Err(error) => vec![Finding::from_open_error("connection", &error)],
    }
}

impl Doctor {
    async fn run_all_checks(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        run_check("connection", &mut findings, self.check_server()).await;
        run_check("hosts", &mut findings, self.check_hosts()).await;
        run_check("clock", &mut findings, self.check_clock()).await;
        run_check("settings", &mut findings, self.check_settings()).await;
        run_check("keys", &mut findings, self.check_keys()).await;
        self.check_activity(&mut findings).await;
        run_check("writing", &mut findings, self.check_writes()).await;
        run_check("listening", &mut findings, self.check_notifications()).await;
        findings
    }

    async fn check_settings(&self) -> CheckResult {
        let settings = ServerSettings::read(&mut self.connection(), self.endpoint.has_failover()).await?;
        Ok(settings.findings())
    }

    /// Returns the connection that all checks share.
    fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }
}

/// Escapes a text for use in a SCAN pattern.
fn escape_pattern(text: &str) -> String {
    let escaped = text.chars().flat_map(|c| {
        let special = ['*', '?', '[', ']', '\\', '^', '-'].contains(&c);
        special.then_some('\\').into_iter().chain([c])
    });
    escaped.collect()
}

type CheckResult = RedisResult<Vec<Finding>>;

/// Runs a check with a timeout, and adds its findings, or a finding that the check itself failed.
async fn run_check(
    name: &'static str,
    findings: &mut Vec<Finding>,
    check: impl Future<Output = CheckResult>,
) {
    match tokio::time::timeout(CHECK_TIMEOUT, check).await {
        Ok(Ok(found)) => findings.extend(found),
        Ok(Err(error)) => {
            findings.push(Finding::warning(name, format!("check failed: {}", error_reason(&error))));
        }
        Err(_) => {
            let found = format!("check failed: no reply within {} s", CHECK_TIMEOUT.as_secs());
            findings.push(
                Finding::fault(name, found)
                    .with_advice("Check whether the server responds to other clients."),
            );
        }
    }
}
