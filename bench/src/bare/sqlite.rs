//! The limit on SQLite: the same rows in transactions of the same size.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, params};

use super::{Limit, Ran};
use crate::rig::{self, payload};

/// Which of a task's rows are written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rows {
    /// The event, its object and its task, which waits.
    Emitted,
    /// All that one event with one handler leaves behind: its task is born locked, ends, and goes to the history.
    /// Beside those five rows a task may be changed on its way (claimed after it waited, brought to the head of
    /// its lane): so many times on average.
    WholeLife { changes: f64 },
}

/// How many rows an event's whole life writes at the least.
const LEAST_ROWS: f64 = 5.0;

/// With the store's own settings.
pub(super) fn open(path: &Path) -> anyhow::Result<Connection> {
    let conn = Connection::open(path)?;
    conn.execute_batch("PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768;")?;
    conn.set_prepared_statement_cache_capacity(32);
    Ok(conn)
}

pub(super) fn emitted(conn: &Connection, ran: Ran) -> anyhow::Result<Limit> {
    let how = format!("bare SQLite, same rows, {} events a commit", ran.per_commit);
    Ok(Limit { rate: rate(conn, ran, Rows::Emitted)?, how })
}

pub(super) fn whole_life(conn: &Connection, ran: Ran) -> anyhow::Result<Limit> {
    let Ran { per_commit, rows_per_event, .. } = ran;
    let how = format!("bare SQLite, {rows_per_event:.1} rows an event, {per_commit} events a commit");
    let changes = (rows_per_event - LEAST_ROWS).max(0.0);
    Ok(Limit { rate: rate(conn, ran, Rows::WholeLife { changes })?, how })
}

/// Writes the rows of as many events in transactions of the same size; answers events per second.
fn rate(conn: &Connection, ran: Ran, rows: Rows) -> anyhow::Result<f64> {
    let Ran { events, per_commit, .. } = ran;
    let base = pointsman_engine::now().micros();
    let start = Instant::now();
    let mut done = 0;
    while done < events {
        let until = events.min(done + per_commit.max(1));
        conn.execute_batch("BEGIN IMMEDIATE")?;
        for n in done..until {
            emit(conn, base, n, rows)?;
        }
        if let Rows::WholeLife { changes } = rows {
            for n in done..until {
                change(conn, n, changes)?;
                end(conn, base, n)?;
            }
        }
        conn.execute_batch("COMMIT")?;
        done = until;
    }
    Ok(events as f64 / start.elapsed().as_secs_f64())
}

fn emit(conn: &Connection, base: i64, n: usize, rows: Rows) -> rusqlite::Result<()> {
    let (id, seq, key) = (base + n as i64, n as i64 + 1, format!("object:{}", n % 10_000));
    conn.prepare_cached(
        "INSERT INTO pointsman_journal (id, prev, type, key, tenant, value, depth, first_task, tasks)
         VALUES (?1, ?1 - 1, ?2, ?3, 'default', ?4, 0, ?5, 1)",
    )?
    .execute(params![id, rig::TYPE, key, payload(n), seq])?;
    conn.prepare_cached(
        "INSERT OR REPLACE INTO pointsman_object (tenant, key, last, sent) VALUES ('default', ?1, ?2, ?3)",
    )?
    .execute(params![key, id, [0u8; 12]])?;
    let lane = (n as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
    let (phase, fence) = match rows {
        Rows::Emitted => (3, None),
        Rows::WholeLife { .. } => (5, Some(seq)),
    };
    conn.prepare_cached(
        "INSERT INTO pointsman_task (seq, queue, event, phase, lane, place, bucket, sync, stage, priority, score, rank,
                                     due, attempt, retries, crashes, late, node, fence, started, created)
         VALUES (?1, 1, ?2, ?3, ?4, ?1, ?7, 0, 0, 100, 100000000, ?8, ?5, 0, 0, 0, 0, ?6, ?6, ?6, ?5)",
    )?
    .execute(params![seq, id, phase, lane, base, fence, seq % 1024, seq / 1024])?;
    Ok(())
}

/// As many changes of the task as fall to the n-th event when `changes` fall to each on average.
fn change(conn: &Connection, n: usize, changes: f64) -> rusqlite::Result<()> {
    let times = ((n + 1) as f64 * changes) as u64 - (n as f64 * changes) as u64;
    for _ in 0..times {
        conn.prepare_cached("UPDATE pointsman_task SET phase = 5, attempt = attempt + 1 WHERE seq = ?1")?
            .execute([n as i64 + 1])?;
    }
    Ok(())
}

fn end(conn: &Connection, base: i64, n: usize) -> rusqlite::Result<()> {
    let (id, seq) = (base + n as i64, n as i64 + 1);
    conn.prepare_cached("DELETE FROM pointsman_task WHERE seq = ?1")?.execute([seq])?;
    conn.prepare_cached(
        "INSERT INTO pointsman_history (seq, queue, event, type, key, status, sync, stage, priority, attempt, retries,
                                        crashes, late, laned, created, started, finished)
         VALUES (?1, 1, ?2, ?3, ?4, 0, 0, 0, 100, 1, 0, 0, 0, 1, ?5, ?5, ?5)",
    )?
    .execute(params![seq, id, rig::TYPE, format!("object:{}", n % 10_000), base])?;
    Ok(())
}

/// How long one durable commit of one small row takes, in milliseconds.
pub(super) fn commit(conn: &Connection, n: i64) -> anyhow::Result<f64> {
    let start = Instant::now();
    conn.prepare_cached(
        "INSERT INTO pointsman_log (task, n, time, level, message) VALUES (1, ?1, 0, 0, ?2)",
    )?
    .execute(params![n, payload(n as usize)])?;
    Ok(start.elapsed().as_secs_f64() * 1000.0)
}
