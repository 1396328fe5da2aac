//! Checks for a pooler in front of the server, and whether the server can send notifications.

use pointsman_store::finding::Finding;
use tokio_postgres::Error;

use super::{CheckResult, Doctor, query_read_only};
use crate::connect::Endpoint;
use crate::error::{OpenError, format_driver_error};
use crate::session::{Session, query};

/// Number of connections that are opened to detect a pooler: by chance, a busy one may give a session the same backend
/// process twice.
const MAX_POOLER_PROBES: usize = 3;

impl Doctor {
    pub(super) async fn check_pooler(&self) -> CheckResult<()> {
        let is_detected = self.detect_pooler().await?;
        let is_declared = self.endpoint.is_behind_pooler();
        let finding = match (is_detected, is_declared) {
            (true, false) => return Ok((vec![undeclared_pooler_finding(&self.endpoint)], ())),
            (true, true) => Finding::ok("pooler", "one in transaction mode, as declared in the URL"),
            (false, true) => Finding::ok("pooler", "none was detected, although the URL declares one")
                .with_advice(
                    "Without one, leave pooler=transaction out: statements are then prepared only once.",
                ),
            (false, false) => Finding::ok("pooler", "none"),
        };
        Ok((vec![finding, self.check_listening().await?], ()))
    }

    /// True if the server's backend process changes between two transactions of a session: then another session gets
    /// the process that this session had, or this session gets another process.
    async fn detect_pooler(&self) -> Result<bool, Error> {
        let own_pid = read_backend_pid(&self.session).await?;
        let pooled_endpoint = self.endpoint.without_prepared_statements();
        let mut others = Vec::new();
        for _ in 0..MAX_POOLER_PROBES {
            // Another check reports a server without free connections.
            let Ok(other) = pooled_endpoint.connect_with_timeout().await else { return Ok(false) };
            other.execute_batch("BEGIN READ ONLY").await?;
            if read_backend_pid(&other).await? == own_pid {
                return Ok(true);
            }
            // The open transaction keeps its backend process, so that the next probe gets another.
            others.push(other);
            if read_backend_pid(&self.session).await? != own_pid {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks whether other nodes can notify this one.
    async fn check_listening(&self) -> Result<Finding, Error> {
        let Some(direct) = self.endpoint.listen_endpoint() else {
            return Ok(Finding::warning(
                "listening",
                "not possible through a pooler: nodes find new work by polling twice a second",
            )
            .with_advice("Add listen= to the URL: a direct one, percent-encoded."));
        };
        let session = match direct.connect_with_timeout().await {
            Ok(session) => session,
            Err(error) => {
                return Ok(Finding::warning("listening", format!("cannot connect to {direct}: {error}"))
                    .with_advice("Until then nodes find new work by polling twice a second."));
            }
        };
        if read_database_identity(&session).await? != read_database_identity(&self.session).await? {
            return Ok(Finding::fault("listening", format!("listen={direct} is another database"))
                .with_advice("Name the same database there, without the pooler."));
        }
        Ok(match session.execute_batch("LISTEN pointsman; UNLISTEN pointsman").await {
            Ok(()) => Finding::ok("listening", "nodes can notify each other"),
            Err(error) => Finding::warning("listening", format_driver_error(&error))
                .with_advice("Until then nodes find new work by polling twice a second."),
        })
    }
}

/// The finding about a pooler that the URL does not declare.
pub(super) fn undeclared_pooler_finding(endpoint: &Endpoint) -> Finding {
    Finding::from_open_error("pooler", &OpenError::UndeclaredPooler { address: endpoint.address() })
}

async fn read_backend_pid(session: &Session) -> Result<i32, Error> {
    let rows = session.query(query!("server/read_backend_pid"), &[]).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0))
}

async fn read_database_identity(session: &Session) -> Result<String, Error> {
    let rows = query_read_only(session, query!("server/read_database_identity"), &[]).await?;
    rows.first().map_or(Ok(String::new()), |row| row.try_get(0))
}
