//! Looks at a database, and at what may keep a store from working well there, without changing anything.
//!
//! Every question is asked in a transaction that may not write, and is sent whole, because what answers may be a pooler.
//! What cannot be looked at is told, and the rest is looked at all the same.

mod load;
mod pooler;
mod schema;
mod server;
mod settings;
mod tables;

use std::future::Future;
use std::time::Duration;

use pointsman_store::finding::Finding;
use tokio_postgres::{Error, Row};

use crate::connect::Endpoint;
use crate::error::{ConnectError, OpenError, reason};
use crate::session::{Params, Query, Session};

/// Nothing here takes long, unless something is wrong.
const BEGIN: &str = "BEGIN READ ONLY; SET LOCAL statement_timeout = '20s'; SET LOCAL lock_timeout = '5s'";
/// How long the whole of a check may take, if its connection is dead or a pooler has no room for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whoever examines, with a connection.
struct Doctor {
    endpoint: Endpoint,
    session: Session,
    /// Transactions that are open for longer are named.
    long: Duration,
}

/// Examines the database at a URL, and all that it can see of its server. Transactions of others that are open for longer
/// than `long` are named.
pub async fn examine(url: &str, long: Duration) -> Vec<Finding> {
    let endpoint = match Endpoint::parse(url) {
        Ok(endpoint) => endpoint,
        Err(error) => return vec![refused("connection", &error)],
    };
    match endpoint.cautious().connect_in_time().await {
        Ok(session) => Doctor { endpoint, session, long }.examine().await,
        Err(error) => vec![unconnected(&endpoint, &error)],
    }
}

impl Doctor {
    async fn examine(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let server = checked("connection", &mut findings, self.server()).await;
        checked("clock", &mut findings, self.clock()).await;
        checked("pooler", &mut findings, self.pooler()).await;
        checked("settings", &mut findings, self.settings()).await;
        // A server that is too old knows other tables and functions than are asked for below.
        if server != Some(true) {
            return findings;
        }
        let ours = checked("schema", &mut findings, self.schema()).await == Some(true);
        let mut nodes = None;
        if ours {
            nodes = checked("nodes", &mut findings, self.nodes()).await;
            checked("outbox", &mut findings, self.outbox(nodes)).await;
            checked("tables", &mut findings, self.tables()).await;
        }
        checked("connections", &mut findings, self.connections(nodes)).await;
        checked("transactions", &mut findings, self.transactions()).await;
        checked("prepared transactions", &mut findings, self.prepared()).await;
        checked("replication slots", &mut findings, self.slots()).await;
        findings
    }

    /// Asks one question, in a transaction that changes nothing.
    async fn ask(&self, query: &'static Query, params: Params<'_>) -> Result<Vec<Row>, Error> {
        ask(&self.session, query, params).await
    }
}

async fn ask(session: &Session, query: &'static Query, params: Params<'_>) -> Result<Vec<Row>, Error> {
    session.batch(BEGIN).await?;
    let answer = session.query(query, params).await;
    session.batch("ROLLBACK").await?;
    answer
}

/// What a check found, and what it has to tell the others.
type Checked<T> = Result<(Vec<Finding>, T), Error>;

/// Adds what a check finds; one that fails or hangs finds that.
async fn checked<T>(
    name: &'static str,
    findings: &mut Vec<Finding>,
    check: impl Future<Output = Checked<T>>,
) -> Option<T> {
    match tokio::time::timeout(PATIENCE, check).await {
        Ok(Ok((found, answer))) => {
            findings.extend(found);
            Some(answer)
        }
        Ok(Err(error)) => {
            findings.push(Finding::warning(name, format!("could not be looked at: {}", reason(&error))));
            None
        }
        Err(_) => {
            let found = format!("could not be looked at: no answer within {} s", PATIENCE.as_secs());
            findings.push(Finding::fault(name, found).advise("See whether the server answers others."));
            None
        }
    }
}

/// What keeps a store from being opened. What is wrong and what to do stand in one sentence, with `; ` between them.
fn refused(name: &'static str, error: &OpenError) -> Finding {
    let told = error.to_string();
    match told.rsplit_once("; ") {
        Some((wrong, advice)) => Finding::fault(name, wrong).advise(sentence(advice)),
        None => Finding::fault(name, told),
    }
}

/// A half of a sentence, as a whole one.
fn sentence(half: &str) -> String {
    let mut letters = half.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn unconnected(endpoint: &Endpoint, error: &ConnectError) -> Finding {
    match OpenError::unconnected(endpoint, error) {
        error @ OpenError::Pooler { .. } => refused("pooler", &error),
        error => refused("connection", &error),
    }
}

/// So many, of things that are listed; the rest is counted.
const LISTED: usize = 5;

/// A list for people, of which only the first are told.
fn listed(things: &[String]) -> String {
    let told = things.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join("; ");
    match things.len() {
        n if n > LISTED => format!("{told}; and {} more", n - LISTED),
        _ => told,
    }
}
