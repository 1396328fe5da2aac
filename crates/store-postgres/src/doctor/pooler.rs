//! What stands between us and the server, and whether the server can tell us things unasked.

use pointsman_store::finding::Finding;
use tokio_postgres::Error;

use super::{Checked, Doctor, ask, refused};
use crate::connect::Endpoint;
use crate::error::{OpenError, reason};
use crate::session::{Session, query};

/// How often it is tried. A pooler whose connections are busy may hand out the same one twice.
const TRIES: usize = 3;

impl Doctor {
    pub(super) async fn pooler(&self) -> Checked<()> {
        let found = self.is_handed_on().await?;
        let said = self.endpoint.is_pooled();
        let finding = match (found, said) {
            (true, false) => return Ok((vec![undeclared(&self.endpoint)], ())),
            (true, true) => Finding::ok("pooler", "one in transaction mode, as the URL says"),
            (false, true) => Finding::ok("pooler", "none was noticed, although the URL says so")
                .advise("Without one, leave pooler=transaction out: statements are then prepared only once."),
            (false, false) => Finding::ok("pooler", "none"),
        };
        Ok((vec![finding, self.listening().await?], ()))
    }

    /// Whether our connection is another one's between two transactions: then somebody else has meanwhile the process
    /// of the server that we had, or we have another.
    async fn is_handed_on(&self) -> Result<bool, Error> {
        let mine = process(&self.session).await?;
        let cautious = self.endpoint.cautious();
        let mut others = Vec::new();
        for _ in 0..TRIES {
            // A server without room for another connection is told of elsewhere.
            let Ok(other) = cautious.connect_in_time().await else { return Ok(false) };
            other.batch("BEGIN READ ONLY").await?;
            if process(&other).await? == mine {
                return Ok(true);
            }
            // It keeps its process, so that the next one meets another.
            others.push(other);
            if process(&self.session).await? != mine {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether other nodes can wake this one.
    async fn listening(&self) -> Result<Finding, Error> {
        let Some(direct) = self.endpoint.for_listening() else {
            return Ok(Finding::warning(
                "listening",
                "not through a pooler: nodes find new work by looking twice a second",
            )
            .advise("Add listen= to the URL: a direct one, percent-encoded."));
        };
        let session = match direct.connect_in_time().await {
            Ok(session) => session,
            Err(error) => {
                return Ok(Finding::warning("listening", format!("cannot connect to {direct}: {error}"))
                    .advise("Nodes find new work by looking twice a second meanwhile."));
            }
        };
        if identity(&session).await? != identity(&self.session).await? {
            return Ok(Finding::fault("listening", format!("listen={direct} is another database"))
                .advise("Name the same one, on the way around the pooler."));
        }
        Ok(match session.batch("LISTEN pointsman; UNLISTEN pointsman").await {
            Ok(()) => Finding::ok("listening", "nodes can wake each other"),
            Err(error) => Finding::warning("listening", reason(&error))
                .advise("Nodes find new work by looking twice a second meanwhile."),
        })
    }
}

/// A pooler that the URL does not tell of.
pub(super) fn undeclared(endpoint: &Endpoint) -> Finding {
    refused("pooler", &OpenError::Pooler { at: endpoint.place() })
}

async fn process(session: &Session) -> Result<i32, Error> {
    let rows = session.query(query!("doctor/process"), &[]).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0))
}

async fn identity(session: &Session) -> Result<String, Error> {
    let rows = ask(session, query!("doctor/identity"), &[]).await?;
    rows.first().map_or(Ok(String::new()), |row| row.try_get(0))
}
