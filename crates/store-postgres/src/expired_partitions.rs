//! Drops expired partitions of the journal and the history, outside of the writer.
//!
//! Rows that are still needed are moved out first: events of unfinished tasks, attempts and logs of tasks that outlive
//! their partition. A partition that is being read stays until the next run.

use std::sync::Arc;
use std::time::Duration;

use pointsman_store::error::TableResult;
use tokio_postgres::error::SqlState;

use crate::connect::Endpoint;
use crate::rows::read_column;
use crate::session::{Query, Session, query};

/// Interval between two runs that drop expired partitions.
const DROP_INTERVAL: Duration = Duration::from_secs(10);
/// The lock timeout is short, because nodes that drop partitions at the same time would block each other.
const BEGIN_DROP: &str = "BEGIN; SET LOCAL lock_timeout = '100ms'; SET LOCAL statement_timeout = '60s'";

/// A partitioned table, and the statements for rows that outlive their partition.
struct PartitionedTable {
    name: &'static str,
    /// Moves rows that are still needed out of an expired partition; none if no row is.
    move_needed_rows_query: Option<&'static Query>,
    /// Deletes moved rows that are no longer needed.
    delete_unneeded_rows_query: Option<&'static Query>,
}

/// Expiry positions: the number of the last expired event, and of the last expired archived task.
#[derive(Clone, Copy, Debug)]
struct ExpiryPositions {
    event_number: i64,
    archive_number: i64,
}

/// Returns the partitioned tables with their statements.
fn partitioned_tables() -> [PartitionedTable; 4] {
    [
        PartitionedTable {
            name: "journal",
            move_needed_rows_query: Some(query!("partition/move_needed_events", INT8)),
            delete_unneeded_rows_query: Some(query!("partition/delete_unneeded_events")),
        },
        PartitionedTable {
            name: "attempt",
            move_needed_rows_query: Some(query!("partition/move_needed_attempts", INT8, INT8)),
            delete_unneeded_rows_query: Some(query!("partition/delete_unneeded_attempts", INT8)),
        },
        PartitionedTable {
            name: "log",
            move_needed_rows_query: Some(query!("partition/move_needed_log_lines", INT8, INT8)),
            delete_unneeded_rows_query: Some(query!("partition/delete_unneeded_log_lines", INT8)),
        },
        PartitionedTable { name: "history", move_needed_rows_query: None, delete_unneeded_rows_query: None },
    ]
}

/// Drops expired partitions periodically, as long as the store is open.
pub(crate) async fn drop_expired_periodically(endpoint: Arc<Endpoint>) {
    loop {
        tokio::time::sleep(DROP_INTERVAL).await;
        match drop_expired(&endpoint).await {
            Ok(0) => {}
            Ok(partition_count) => {
                tracing::info!(partition_count, "dropped expired partitions of the journal and the history")
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "could not drop expired partitions; retrying in 10 s, disk usage grows meanwhile; run `pointsman \
                     doctor` if it persists"
                )
            }
        }
    }
}

/// Drops all expired partitions that nothing reads; returns their number. Uses a connection of its own.
pub(crate) async fn drop_expired(endpoint: &Endpoint) -> TableResult<u64> {
    let session = endpoint.connect_with_timeout().await?;
    drop_expired_in_session(&session).await
}

async fn drop_expired_in_session(session: &Session) -> TableResult<u64> {
    let rows = session.query(query!("partition/read_expired_numbers"), &[]).await?;
    let Some(row) = rows.first() else { return Ok(0) };
    let expired =
        ExpiryPositions { event_number: read_column(row, 0)?, archive_number: read_column(row, 1)? };
    let partitions = session.query(query!("partition/list_partitions"), &[]).await?;
    let mut dropped_count = 0;
    for table in partitioned_tables() {
        let limit = if table.name == "journal" { expired.event_number } else { expired.archive_number };
        for row in &partitions {
            let (parent, partition, end): (&str, &str, i64) =
                (read_column(row, 0)?, read_column(row, 1)?, read_column(row, 2)?);
            if parent == table.name && end <= limit {
                // If one partition is locked, so are the next ones: a reader reads all of them. And each try makes
                // other sessions wait.
                if !drop_partition(session, &table, partition, end, expired).await? {
                    break;
                }
                dropped_count += 1;
            }
        }
        delete_unneeded_rows(session, &table, expired).await?;
    }
    vacuum_bloated_tables(session).await?;
    Ok(dropped_count)
}

/// Vacuums tables with many dead rows, so that their space is reused.
async fn vacuum_bloated_tables(session: &Session) -> TableResult<()> {
    for row in session.query(query!("partition/list_bloated_tables"), &[]).await? {
        session
            .execute_batch(&format!("VACUUM (SKIP_LOCKED) pointsman.{}", read_column::<&str>(&row, 0)?))
            .await?;
    }
    Ok(())
}

/// Drops a partition after moving its needed rows out; returns false if it is locked or another node dropped it.
async fn drop_partition(
    session: &Session,
    table: &PartitionedTable,
    partition: &str,
    end: i64,
    expired: ExpiryPositions,
) -> TableResult<bool> {
    session.execute_batch(BEGIN_DROP).await?;
    let retain_rows_and_drop = async {
        match (table.move_needed_rows_query, table.name) {
            (Some(retain), "journal") => drop(session.execute(retain, &[&end]).await?),
            (Some(retain), _) => drop(session.execute(retain, &[&end, &expired.archive_number]).await?),
            (None, _) => {}
        }
        // The store chose this name, which needs no quotes; they are a precaution.
        session.execute_batch(&format!("DROP TABLE pointsman.\"{}\"", partition.replace('"', "\"\""))).await
    };
    match retain_rows_and_drop.await {
        Ok(()) => {
            session.execute_batch("COMMIT").await?;
            Ok(true)
        }
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            session.execute_batch("ROLLBACK").await?;
            Ok(false)
        }
        // Another node has dropped the partition.
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            session.execute_batch("ROLLBACK").await?;
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Deletes rows that were moved out of dropped partitions and are no longer needed.
async fn delete_unneeded_rows(
    session: &Session,
    table: &PartitionedTable,
    expired: ExpiryPositions,
) -> TableResult<()> {
    match (table.delete_unneeded_rows_query, table.name) {
        (Some(delete), "journal") => drop(session.execute(delete, &[]).await?),
        (Some(delete), _) => drop(session.execute(delete, &[&expired.archive_number]).await?),
        (None, _) => {}
    }
    Ok(())
}
