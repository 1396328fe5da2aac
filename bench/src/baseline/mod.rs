//! The baseline that the store is compared with: the same rows written by plain SQL or plain commands, with the same
//! durability, and nothing else.

mod postgres;
mod redis;
mod sqlite;

use std::path::Path;

use rusqlite::Connection;
use tokio_postgres::Client;

use postgres::PostgresBaseline;
pub(crate) use postgres::create_missing_partitions;

/// A database with the store's own tables or keys, which the baseline writes with plain statements.
pub(crate) enum Baseline {
    Sqlite(Connection),
    Postgres(PostgresBaseline),
    Redis(redis::RedisBaseline),
}

/// The result of a baseline measurement.
pub(crate) struct BaselineResult {
    pub(crate) events_per_second: f64,
    /// How the rows were written, as the report prints it.
    pub(crate) description: String,
}

/// A measurement of the store, which a baseline is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredStoreRun {
    pub(crate) event_count: usize,
    pub(crate) events_per_second: f64,
    pub(crate) events_per_commit: usize,
    pub(crate) written_rows_per_event: f64,
}

impl Baseline {
    pub(crate) fn open_sqlite(path: &Path) -> anyhow::Result<Self> {
        Ok(Self::Sqlite(sqlite::open_connection(path)?))
    }

    pub(crate) async fn open_postgres(client: Client) -> anyhow::Result<Self> {
        Ok(Self::Postgres(PostgresBaseline::new(client).await?))
    }

    pub(crate) fn open_redis(connection: ::redis::Connection, prefix: String) -> Self {
        Self::Redis(redis::RedisBaseline::new(connection, prefix))
    }

    /// Measures writing the rows of events and of their waiting tasks.
    pub(crate) async fn measure_emits(&mut self, run: MeasuredStoreRun) -> anyhow::Result<BaselineResult> {
        match self {
            Self::Sqlite(conn) => sqlite::measure_emits(conn, run),
            Self::Postgres(baseline) => baseline.measure_emits(run.event_count).await,
            Self::Redis(baseline) => baseline.measure_emits(run.event_count),
        }
    }

    /// Measures writing all rows of events with one handler, until its tasks have ended.
    pub(crate) async fn measure_full_lifecycle(
        &mut self,
        run: MeasuredStoreRun,
    ) -> anyhow::Result<BaselineResult> {
        match self {
            Self::Sqlite(conn) => sqlite::measure_full_lifecycle(conn, run),
            Self::Postgres(baseline) => baseline.measure_full_lifecycle(run.event_count).await,
            Self::Redis(baseline) => baseline.measure_full_lifecycle(run.event_count),
        }
    }

    /// Measures one durable commit of one small row, in milliseconds.
    pub(crate) async fn measure_commit_ms(&mut self, n: i64) -> anyhow::Result<f64> {
        match self {
            Self::Sqlite(conn) => sqlite::measure_commit_ms(conn, n),
            Self::Postgres(baseline) => baseline.measure_commit_ms(n).await,
            Self::Redis(baseline) => baseline.measure_commit_ms(n),
        }
    }
}
