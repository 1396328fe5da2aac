//! Drops what is forgotten: whole slices, beside the writer.
//!
//! What a slice holds and somebody still needs is moved first: events of unfinished tasks, attempts and logs of tasks
//! that outlive them. A slice that somebody is just reading stays until the next time.

use std::sync::Arc;
use std::time::Duration;

use pointsman_store::error::Result;
use tokio_postgres::error::SqlState;

use crate::connect::Endpoint;
use crate::rows::get;
use crate::session::{Query, Session, query};

/// How often somebody looks.
const EVERY: Duration = Duration::from_secs(10);
/// Nodes that sweep at the same time would be in each other's way.
const ALONE: &str = "BEGIN; SET LOCAL lock_timeout = '100ms'; SET LOCAL statement_timeout = '60s'";

/// A table that is cut into slices, and what is done with those that are dropped.
struct Sliced {
    name: &'static str,
    keep: Option<&'static Query>,
    let_go: Option<&'static Query>,
}

/// How far the journal and the history are forgotten: the number of the last event, that of the last ended task.
#[derive(Clone, Copy, Debug)]
struct Marks {
    events: i64,
    ended: i64,
}

fn tables() -> [Sliced; 4] {
    [
        Sliced {
            name: "journal",
            keep: Some(query!("sweep/keep_events", INT8)),
            let_go: Some(query!("sweep/let_events_go")),
        },
        Sliced {
            name: "attempt",
            keep: Some(query!("sweep/keep_attempt", INT8, INT8)),
            let_go: Some(query!("sweep/let_attempt_go", INT8)),
        },
        Sliced {
            name: "log",
            keep: Some(query!("sweep/keep_log", INT8, INT8)),
            let_go: Some(query!("sweep/let_log_go", INT8)),
        },
        Sliced { name: "history", keep: None, let_go: None },
    ]
}

/// Sweeps now and then, as long as the store is open.
pub(crate) async fn run(endpoint: Arc<Endpoint>) {
    loop {
        tokio::time::sleep(EVERY).await;
        match sweep(&endpoint).await {
            Ok(0) => {}
            Ok(slices) => tracing::info!(slices, "dropped what was forgotten"),
            Err(error) => tracing::debug!(%error, "could not sweep"),
        }
    }
}

/// Drops all slices that nobody reads; answers how many. On a connection of its own, which ends with it.
pub(crate) async fn sweep(endpoint: &Endpoint) -> Result<u64> {
    let session = endpoint.connect_in_time().await?;
    sweep_with(&session).await
}

async fn sweep_with(session: &Session) -> Result<u64> {
    let rows = session.query(query!("sweep/marks"), &[]).await?;
    let Some(row) = rows.first() else { return Ok(0) };
    let marks = Marks { events: get(row, 0)?, ended: get(row, 1)? };
    let slices = session.query(query!("sweep/slices"), &[]).await?;
    let mut dropped = 0;
    for table in tables() {
        let mark = if table.name == "journal" { marks.events } else { marks.ended };
        for row in &slices {
            let (parent, slice, end): (&str, &str, i64) = (get(row, 0)?, get(row, 1)?, get(row, 2)?);
            if parent == table.name && end <= mark {
                // Where one is read, so are the others: everybody waits behind each that is tried in vain.
                if !drop_slice(session, &table, slice, end, marks).await? {
                    break;
                }
                dropped += 1;
            }
        }
        let_go(session, &table, marks).await?;
    }
    tidy_up(session).await?;
    Ok(dropped)
}

/// Lets the tables that change all the time use the room of rows that are gone.
async fn tidy_up(session: &Session) -> Result<()> {
    for row in session.query(query!("sweep/littered"), &[]).await? {
        session.batch(&format!("VACUUM (SKIP_LOCKED) pointsman.{}", get::<&str>(&row, 0)?)).await?;
    }
    Ok(())
}

/// Whether it could be dropped.
async fn drop_slice(session: &Session, table: &Sliced, slice: &str, end: i64, marks: Marks) -> Result<bool> {
    session.batch(ALONE).await?;
    let dropped = async {
        match (table.keep, table.name) {
            (Some(keep), "journal") => drop(session.execute(keep, &[&end]).await?),
            (Some(keep), _) => drop(session.execute(keep, &[&end, &marks.ended]).await?),
            (None, _) => {}
        }
        // The name is one that the store itself has given, and quoted all the same.
        session.batch(&format!("DROP TABLE pointsman.\"{}\"", slice.replace('"', "\"\""))).await
    };
    match dropped.await {
        Ok(()) => {
            session.batch("COMMIT").await?;
            Ok(true)
        }
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            session.batch("ROLLBACK").await?;
            Ok(false)
        }
        // Another node was quicker.
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            session.batch("ROLLBACK").await?;
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

async fn let_go(session: &Session, table: &Sliced, marks: Marks) -> Result<()> {
    match (table.let_go, table.name) {
        (Some(let_go), "journal") => drop(session.execute(let_go, &[]).await?),
        (Some(let_go), _) => drop(session.execute(let_go, &[&marks.ended]).await?),
        (None, _) => {}
    }
    Ok(())
}
