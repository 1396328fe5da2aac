//! The limit: the same rows written by plain SQL or plain commands, with the same durability, and nothing else.

mod postgres;
mod redis;
mod sqlite;

use std::path::Path;

use rusqlite::Connection;
use tokio_postgres::Client;

use postgres::Plain;
pub(crate) use postgres::make_slices;

/// A database with the store's own tables.
pub(crate) enum Bare {
    Sqlite(Connection),
    Postgres(Plain),
    Redis(redis::Plain),
}

/// What is reached so, and how.
pub(crate) struct Limit {
    /// Events in a second.
    pub(crate) rate: f64,
    pub(crate) how: String,
}

/// What is known of a run beside which the limit stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) events: usize,
    /// Events in a second.
    pub(crate) rate: f64,
    pub(crate) per_commit: usize,
    pub(crate) rows_per_event: f64,
}

impl Bare {
    pub(crate) fn sqlite(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::Sqlite(sqlite::open(path)?))
    }

    pub(crate) async fn postgres(client: Client) -> anyhow::Result<Self> {
        Ok(Self::Postgres(Plain::new(client).await?))
    }

    pub(crate) fn redis(connection: ::redis::Connection, prefix: String) -> Self {
        Self::Redis(redis::Plain::new(connection, prefix))
    }

    /// The rows of events and of their tasks, which wait.
    pub(crate) async fn emitted(&mut self, ran: Ran) -> anyhow::Result<Limit> {
        match self {
            Self::Sqlite(conn) => sqlite::emitted(conn, ran),
            Self::Postgres(plain) => plain.emitted(ran.events).await,
            Self::Redis(plain) => plain.emitted(ran.events),
        }
    }

    /// All that events with one handler leave behind when it has ended.
    pub(crate) async fn whole_life(&mut self, ran: Ran) -> anyhow::Result<Limit> {
        match self {
            Self::Sqlite(conn) => sqlite::whole_life(conn, ran),
            Self::Postgres(plain) => plain.whole_life(ran.events).await,
            Self::Redis(plain) => plain.whole_life(ran.events),
        }
    }

    /// How long one durable commit of one small row takes, in milliseconds.
    pub(crate) async fn commit(&mut self, n: i64) -> anyhow::Result<f64> {
        match self {
            Self::Sqlite(conn) => sqlite::commit(conn, n),
            Self::Postgres(plain) => plain.commit(n).await,
            Self::Redis(plain) => plain.commit(n),
        }
    }
}
