//! The baseline on SQLite: the same rows in transactions of the same size.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, params};

use super::{BaselineResult, MeasuredStoreRun};
use crate::fixtures::{self, event_payload};

/// The rows that are written for an event.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RowsToWritePerEvent {
    /// The event, its object and its waiting task.
    WaitingTask,
    /// All rows of an event with one handler: its task is created locked, ends, and moves to the history. Besides these
    /// five writes a task may be updated (claimed after it waited, promoted to the head of its lane): `updates` times
    /// on average.
    FullLifecycle { updates: f64 },
}

/// The minimum number of row writes in an event's full lifecycle.
const MIN_LIFECYCLE_WRITES_PER_EVENT: f64 = 5.0;

/// Opens the database with the store's own settings.
pub(super) fn open_connection(path: &Path) -> anyhow::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768;")?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

pub(super) fn measure_emits(conn: &Connection, run: MeasuredStoreRun) -> anyhow::Result<BaselineResult> {
    let description = format!("bare SQLite, same rows, {} events per commit", run.events_per_commit);
    Ok(BaselineResult {
        events_per_second: measure_events_per_second(conn, run, RowsToWritePerEvent::WaitingTask)?,
        description,
    })
}

pub(super) fn measure_full_lifecycle(
    conn: &Connection,
    run: MeasuredStoreRun,
) -> anyhow::Result<BaselineResult> {
    let MeasuredStoreRun { events_per_commit, written_rows_per_event: rows_per_event, .. } = run;
    let description =
        format!("bare SQLite, {rows_per_event:.1} rows per event, {events_per_commit} events per commit");
    let updates = (rows_per_event - MIN_LIFECYCLE_WRITES_PER_EVENT).max(0.0);
    Ok(BaselineResult {
        events_per_second: measure_events_per_second(
            conn,
            run,
            RowsToWritePerEvent::FullLifecycle { updates },
        )?,
        description,
    })
}

/// Writes the rows of as many events as the run had, in transactions of the same size; returns events per second.
fn measure_events_per_second(
    conn: &Connection,
    run: MeasuredStoreRun,
    rows: RowsToWritePerEvent,
) -> anyhow::Result<f64> {
    let MeasuredStoreRun { event_count: events, events_per_commit, .. } = run;
    let base = pointsman_engine::machine_clock_now().micros();
    let start = Instant::now();
    let mut done = 0;
    while done < events {
        let until = events.min(done + events_per_commit.max(1));
        conn.execute_batch("BEGIN IMMEDIATE")?;
        for n in done..until {
            insert_event_and_task(conn, base, n, rows)?;
        }
        if let RowsToWritePerEvent::FullLifecycle { updates } = rows {
            for n in done..until {
                update_task_repeatedly(conn, n, updates)?;
                archive_task(conn, base, n)?;
            }
        }
        conn.execute_batch("COMMIT")?;
        done = until;
    }
    Ok(events as f64 / start.elapsed().as_secs_f64())
}

fn insert_event_and_task(
    conn: &Connection,
    base: i64,
    n: usize,
    rows: RowsToWritePerEvent,
) -> rusqlite::Result<()> {
    let (id, seq, key) = (base + n as i64, n as i64 + 1, format!("object:{}", n % 10_000));
    conn.prepare_cached(
        "INSERT INTO pointsman_journal (id, prev, type, key, tenant, value, depth, first_task, tasks)
         VALUES (?1, ?1 - 1, ?2, ?3, 'default', ?4, 0, ?5, 1)",
    )?
    .execute(params![id, fixtures::EVENT_TYPE, key, event_payload(n), seq])?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO pointsman_object (tenant, key, last_event, last_sent) VALUES ('default', ?1, ?2, ?3)",
    )?
    .execute(params![key, id, [0u8; 12]])?;
    let lane = (n as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
    let (phase, fence) = match rows {
        RowsToWritePerEvent::WaitingTask => (3, None),
        RowsToWritePerEvent::FullLifecycle { .. } => (5, Some(seq)),
    };
    conn.prepare_cached(
        "INSERT INTO pointsman_task (seq, queue, event, phase, lane, lane_position, key_bucket, sync, stage, priority,
                                     score, rank,
                                     due, attempt, retries, crashes, late, node, fence, started, created)
         VALUES (?1, 1, ?2, ?3, ?4, ?1, ?7, 0, 0, 100, 100000000, ?8, ?5, 0, 0, 0, 0, ?6, ?6, ?6, ?5)",
    )?
    .execute(params![seq, id, phase, lane, base, fence, seq % 1024, seq / 1024])?;
    Ok(())
}

/// Updates the n-th task so often that each gets `updates` on average.
fn update_task_repeatedly(conn: &Connection, n: usize, updates: f64) -> rusqlite::Result<()> {
    let times = ((n + 1) as f64 * updates) as u64 - (n as f64 * updates) as u64;
    for _ in 0..times {
        conn.prepare_cached("UPDATE pointsman_task SET phase = 5, attempt = attempt + 1 WHERE seq = ?1")?
            .execute([n as i64 + 1])?;
    }
    Ok(())
}

fn archive_task(conn: &Connection, base: i64, n: usize) -> rusqlite::Result<()> {
    let (id, seq) = (base + n as i64, n as i64 + 1);
    conn.prepare_cached("DELETE FROM pointsman_task WHERE seq = ?1")?.execute([seq])?;
    conn.prepare_cached(
        "INSERT INTO pointsman_history (seq, queue, event, type, key, status, sync, stage, priority, attempt, retries,
                                        crashes, late, has_lane, created, started, finished)
         VALUES (?1, 1, ?2, ?3, ?4, 0, 0, 0, 100, 1, 0, 0, 0, 1, ?5, ?5, ?5)",
    )?
    .execute(params![seq, id, fixtures::EVENT_TYPE, format!("object:{}", n % 10_000), base])?;
    Ok(())
}

/// Measures one durable commit of one small row, in milliseconds.
pub(super) fn measure_commit_ms(conn: &Connection, n: i64) -> anyhow::Result<f64> {
    let start = Instant::now();
    conn.prepare_cached(
        "INSERT INTO pointsman_log (task, n, time, level, message) VALUES (1, ?1, 0, 0, ?2)",
    )?
    .execute(params![n, event_payload(n as usize)])?;
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}
