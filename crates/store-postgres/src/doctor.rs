//! Examines a database for problems, without changing anything.
//!
//! Every query runs in a read-only transaction, unprepared, because the server may be a pooler. A check that fails is
//! reported, and the others run anyway.

mod pooler;
mod schema;
mod server;
mod server_activity;
mod settings;
mod table_contents;

use std::future::Future;
use std::time::Duration;

use pointsman_core::Timestamp;
use pointsman_store::finding::{Finding, format_first_items};
use tokio_postgres::{Error, Row};

use crate::connect::Endpoint;
use crate::error::{ConnectError, OpenError, format_driver_error};
use crate::migrate::{MIGRATIONS, Migration};
use crate::session::{Query, QueryParams, Session};

/// The timeouts are short: a query of the doctor takes long only if something is wrong.
const BEGIN_READ_ONLY: &str =
    "BEGIN READ ONLY; SET LOCAL statement_timeout = '20s'; SET LOCAL lock_timeout = '5s'";
/// Timeout of a check, for a dead connection or a pooler without free connections.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the checks of a database on a connection.
struct Doctor {
    endpoint: Endpoint,
    session: Session,
    /// The migrations of this version.
    migrations: &'static [Migration],
    /// Transactions that are open for longer are reported.
    long_transaction_threshold: Duration,
    /// Reads the clock of this machine.
    machine_clock: fn() -> Timestamp,
}

/// Examines the database at a URL and its server. Transactions of other sessions that are open for longer than
/// `long_transaction` are reported. `machine_clock` reads the clock of this machine.
pub async fn examine(
    url: &str,
    long_transaction: Duration,
    machine_clock: fn() -> Timestamp,
) -> Vec<Finding> {
    examine_with_migrations(url, MIGRATIONS, long_transaction, machine_clock).await
}

/// Examines the database with other migrations than those of this version. For tests.
#[doc(hidden)]
pub async fn examine_with_migrations(
    url: &str,
    migrations: &'static [Migration],
    long_transaction: Duration,
    machine_clock: fn() -> Timestamp,
) -> Vec<Finding> {
    let endpoint = match Endpoint::parse(url) {
        Ok(endpoint) => endpoint,
        Err(error) => return vec![Finding::from_open_error("connection", &error)],
    };
    match endpoint.without_prepared_statements().connect_with_timeout().await {
        Ok(session) => {
            let long_transaction_threshold = long_transaction;
            Doctor { endpoint, session, migrations, long_transaction_threshold, machine_clock }
                .examine()
                .await
        }
        Err(error) => vec![connect_error_finding(&endpoint, error)],
    }
}

impl Doctor {
    async fn examine(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let is_server_supported = run_check("connection", &mut findings, self.check_server()).await;
        run_check("clock", &mut findings, self.check_clock()).await;
        run_check("pooler", &mut findings, self.check_pooler()).await;
        run_check("settings", &mut findings, self.check_settings()).await;
        // A server that is too old lacks columns of the system catalog that the following checks read.
        if is_server_supported != Some(true) {
            return findings;
        }
        let is_schema_complete = run_check("schema", &mut findings, self.check_schema()).await == Some(true);
        let mut nodes = None;
        if is_schema_complete {
            nodes = run_check("nodes", &mut findings, self.check_nodes()).await;
            run_check("outbox", &mut findings, self.check_outbox(nodes)).await;
            run_check("tables", &mut findings, self.check_dead_rows()).await;
        }
        run_check("connections", &mut findings, self.check_connections(nodes)).await;
        run_check("transactions", &mut findings, self.check_long_transactions()).await;
        run_check("prepared transactions", &mut findings, self.check_prepared_transactions()).await;
        run_check("replication slots", &mut findings, self.check_replication_slots()).await;
        findings
    }

    /// Runs a query in a read-only transaction.
    async fn query_read_only(
        &self,
        query: &'static Query,
        params: QueryParams<'_>,
    ) -> Result<Vec<Row>, Error> {
        query_read_only(&self.session, query, params).await
    }
}

/// Runs a query in a read-only transaction on a connection.
async fn query_read_only(
    session: &Session,
    query: &'static Query,
    params: QueryParams<'_>,
) -> Result<Vec<Row>, Error> {
    session.execute_batch(BEGIN_READ_ONLY).await?;
    let result = session.query(query, params).await;
    session.execute_batch("ROLLBACK").await?;
    result
}

/// The findings of a check, and its result for other checks.
type CheckResult<T> = Result<(Vec<Finding>, T), Error>;

/// Runs a check and adds its findings; a failure or a timeout is a finding too.
async fn run_check<T>(
    name: &'static str,
    findings: &mut Vec<Finding>,
    check: impl Future<Output = CheckResult<T>>,
) -> Option<T> {
    match tokio::time::timeout(CHECK_TIMEOUT, check).await {
        Ok(Ok((found, result))) => {
            findings.extend(found);
            Some(result)
        }
        Ok(Err(error)) => {
            findings.push(Finding::warning(name, format!("check failed: {}", format_driver_error(&error))));
            None
        }
        Err(_) => {
            let found = format!("check failed: no response within {} s", CHECK_TIMEOUT.as_secs());
            findings.push(
                Finding::fault(name, found)
                    .with_advice("Check whether the server responds to other clients."),
            );
            None
        }
    }
}

/// Converts a connection error to a finding.
fn connect_error_finding(endpoint: &Endpoint, error: ConnectError) -> Finding {
    match OpenError::from_connect_error(endpoint, error) {
        error @ OpenError::UndeclaredPooler { .. } => Finding::from_open_error("pooler", &error),
        error => Finding::from_open_error("connection", &error),
    }
}

/// Limit of items that a finding lists.
const MAX_LISTED_ITEMS: usize = 5;

/// Formats a list of which a finding shows only the first items.
fn format_shortened_list(items: &[String]) -> String {
    format_first_items(items, MAX_LISTED_ITEMS)
}
