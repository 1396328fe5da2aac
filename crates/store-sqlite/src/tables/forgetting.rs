//! Removing what is old, a piece at a time.

use pointsman_core::{EventId, Timestamp};
use rusqlite::Connection;

use super::row::{all, event_if_any, time};
use crate::error::Result;

/// So many rows at most are looked at in one transaction: whoever emits meanwhile waits for it.
const PIECE: i64 = 500;
/// Beyond so many rows no further task goes in the same transaction: a task may have a long log.
const ROWS: usize = 5_000;

pub(super) fn drop_events(
    conn: &Connection,
    after: EventId,
    forgotten: EventId,
) -> Result<(u64, Option<EventId>)> {
    let sql = "SELECT id, EXISTS (SELECT 1 FROM pointsman_task
                                  WHERE seq >= first_task AND seq < first_task + tasks)
                          OR EXISTS (SELECT 1 FROM pointsman_task WHERE late = 1 AND event = pointsman_journal.id)
               FROM pointsman_journal WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3";
    let range = (after.as_i64(), forgotten.as_i64(), PIECE);
    let rows: Vec<(i64, bool)> = all(conn, sql, range, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let full = rows.len() as i64 == PIECE;
    let go_on = rows.last().filter(|_| full).map(|(id, _)| EventId::from_i64(*id));
    let mut dropped = 0;
    let mut delete = conn.prepare_cached("DELETE FROM pointsman_journal WHERE id = ?1")?;
    for (id, _) in rows.iter().filter(|(_, needed)| !needed) {
        dropped += delete.execute([id])? as u64;
    }
    // One mark stays behind: it says how many events there were before it.
    let sql = "DELETE FROM pointsman_mark WHERE n < (SELECT max(n) FROM pointsman_mark WHERE id <= ?1)";
    conn.prepare_cached(sql)?.execute([forgotten.as_i64()])?;
    Ok((dropped, go_on))
}

pub(super) fn drop_ended(conn: &Connection, surplus: i64, before: Timestamp) -> Result<(u64, bool)> {
    let mut seqs = Vec::new();
    if surplus > 0 {
        let sql = "SELECT seq FROM pointsman_history ORDER BY seq LIMIT ?1";
        seqs = all(conn, sql, [surplus.min(PIECE)], |row| Ok(row.get(0)?))?;
    }
    if (seqs.len() as i64) < PIECE {
        ended_before(conn, before, &mut seqs)?;
    }
    let more = seqs.len() as i64 >= PIECE;
    let (gone, cut_short) = drop_tasks(conn, &seqs)?;
    Ok((gone, more || cut_short))
}

/// Removes these, and stops where their logs make it too many rows; answers how many went.
fn drop_tasks(conn: &Connection, seqs: &[i64]) -> Result<(u64, bool)> {
    let (mut gone, mut rows) = (0, 0);
    for seq in seqs {
        if rows >= ROWS {
            return Ok((gone, true));
        }
        for sql in [
            "DELETE FROM pointsman_attempt WHERE task = ?1",
            "DELETE FROM pointsman_log WHERE task = ?1",
            "DELETE FROM pointsman_history WHERE seq = ?1",
        ] {
            rows += conn.prepare_cached(sql)?.execute([seq])?;
        }
        gone += 1;
    }
    Ok((gone, false))
}

/// Adds the tasks that ended before `cutoff`. Their events were journaled before it too, so that only the
/// oldest rows need to be looked at. Ids tell when, and not the clock: they ascend even if it ran ahead once.
fn ended_before(conn: &Connection, cutoff: Timestamp, seqs: &mut Vec<i64>) -> Result<()> {
    let after = seqs.last().copied().unwrap_or(0);
    let sql = "SELECT seq, event, finished, created FROM pointsman_history WHERE seq > ?1 ORDER BY seq";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([after])?;
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        looked_at += 1;
        let journaled = match event_if_any(row, 1)? {
            Some(event) => event.timestamp(),
            None => time(row, 3)?,
        };
        if journaled >= cutoff || seqs.len() as i64 >= PIECE || looked_at > ROWS {
            break;
        }
        if time(row, 2)? < cutoff {
            seqs.push(row.get(0)?);
        }
    }
    Ok(())
}

pub(super) fn drop_answers(conn: &Connection, before: Timestamp) -> Result<bool> {
    let sql = "DELETE FROM pointsman_idempotency WHERE n IN
                 (SELECT n FROM pointsman_idempotency ORDER BY n LIMIT ?2) AND at < ?1";
    let gone = conn.prepare_cached(sql)?.execute((before.micros(), PIECE))?;
    Ok(gone as i64 == PIECE)
}

pub(super) fn drop_ended_orders(conn: &Connection, before: Timestamp) -> Result<bool> {
    let sql = "DELETE FROM pointsman_ended_order WHERE (key, tenant) IN
                 (SELECT key, tenant FROM pointsman_ended_order WHERE ended < ?1 ORDER BY ended LIMIT ?2)";
    let gone = conn.prepare_cached(sql)?.execute((before.micros(), PIECE))?;
    Ok(gone as i64 == PIECE)
}

/// All of these are written in the order of time.
pub(super) fn drop_records(conn: &Connection, before: Timestamp) -> Result<bool> {
    let mut more = false;
    for sql in [
        "DELETE FROM pointsman_fire WHERE n IN (SELECT n FROM pointsman_fire ORDER BY n LIMIT ?2) AND at < ?1",
        "DELETE FROM pointsman_node WHERE gone = 1 AND heard < ?1 AND id IN
           (SELECT id FROM pointsman_node ORDER BY id LIMIT ?2)",
        "DELETE FROM pointsman_deed WHERE n IN (SELECT n FROM pointsman_deed ORDER BY n LIMIT ?2) AND at < ?1",
    ] {
        let gone = conn.prepare_cached(sql)?.execute((before.micros(), PIECE))?;
        more |= gone as i64 == PIECE;
    }
    Ok(more)
}
