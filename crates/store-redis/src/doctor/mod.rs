//! Looks at a Redis, and at what may keep a store from working well there.
//!
//! Nothing of a store is touched: what is written to see how long that takes is a key of its own, which is removed at once
//! and would go by itself. What cannot be looked at is told, and the rest is looked at all the same.

mod keys;
mod server;
mod strays;
mod work;
mod writing;

use std::future::Future;
use std::time::Duration;

use pointsman_store::finding::Finding;
use redis::RedisResult;
use redis::aio::MultiplexedConnection;

use crate::connect::Endpoint;
use crate::error::{OpenError, reason};
use crate::server_settings::ServerSettings;

/// How long the whole of a check may take, if nothing answers any more.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whoever examines, with a connection.
struct Doctor {
    endpoint: Endpoint,
    connection: MultiplexedConnection,
}

/// Examines the Redis at a URL.
pub async fn examine(url: &str) -> Vec<Finding> {
    let endpoint = match Endpoint::parse(url) {
        Ok(endpoint) => endpoint,
        Err(error) => return vec![refused("connection", &error)],
    };
    match endpoint.connect().await {
        Ok(connection) => Doctor { endpoint, connection }.examine().await,
        Err(error) => vec![refused("connection", &error)],
    }
}

impl Doctor {
    async fn examine(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        checked("connection", &mut findings, self.server()).await;
        checked("hosts", &mut findings, self.hosts()).await;
        checked("clock", &mut findings, self.clock()).await;
        checked("settings", &mut findings, self.settings()).await;
        checked("keys", &mut findings, self.keys()).await;
        self.at_work(&mut findings).await;
        checked("writing", &mut findings, self.writing()).await;
        checked("listening", &mut findings, self.listening()).await;
        findings
    }

    async fn settings(&self) -> Checked {
        let settings = ServerSettings::read(&mut self.connection(), self.endpoint.fails_over()).await?;
        Ok(settings.findings())
    }

    /// All checks share it.
    fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }
}

/// A text of which no sign has a meaning of its own in a pattern.
fn escaped(text: &str) -> String {
    let signs = text.chars().flat_map(|c| {
        let special = ['*', '?', '[', ']', '\\', '^', '-'].contains(&c);
        special.then_some('\\').into_iter().chain([c])
    });
    signs.collect()
}

type Checked = RedisResult<Vec<Finding>>;

/// Adds what a check finds; one that fails or hangs finds that.
async fn checked(name: &'static str, findings: &mut Vec<Finding>, check: impl Future<Output = Checked>) {
    match tokio::time::timeout(PATIENCE, check).await {
        Ok(Ok(found)) => findings.extend(found),
        Ok(Err(error)) => {
            findings.push(Finding::warning(name, format!("could not be looked at: {}", reason(&error))));
        }
        Err(_) => {
            let found = format!("could not be looked at: no answer within {} s", PATIENCE.as_secs());
            findings.push(Finding::fault(name, found).advise("See whether the server answers others."));
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
