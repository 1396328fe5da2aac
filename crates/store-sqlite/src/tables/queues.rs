//! Queues and handlers.

use pointsman_core::limit::LimiterAndBreakerState;
use pointsman_core::task::QueueSubject;
use pointsman_core::{HandlerDef, TaskSeq, Tenant};
use pointsman_store::row::{HandlerId, HandlerRow, QueueCounts, QueueId, QueueRow, RankRange};
use rusqlite::Connection;

use super::row::{query_all, query_first, read_text};
use crate::error::{Fault, TableResult};

pub(super) fn list_queues(conn: &Connection) -> TableResult<Vec<QueueRow>> {
    let sql = "SELECT id, handler, tenant, collection, ready, waiting, scheduled, running, halted, missing
               FROM pointsman_queue ORDER BY id";
    query_all(conn, sql, [], |row| {
        Ok(QueueRow {
            id: row.get(0)?,
            handler: row.get(1)?,
            tenant: Tenant::new(read_text(row, 2)?).map_err(Fault::damaged)?,
            subject: QueueSubject::from_text(read_text(row, 3)?).map_err(Fault::damaged)?,
            counts: QueueCounts {
                ready: row.get(4)?,
                waiting: row.get(5)?,
                scheduled: row.get(6)?,
                running: row.get(7)?,
                halted: row.get(8)?,
                missing: row.get(9)?,
            },
        })
    })
}

pub(super) fn insert_queue(
    conn: &Connection,
    handler: HandlerId,
    tenant: &Tenant,
    subject: &QueueSubject,
) -> TableResult<QueueId> {
    let sql = "INSERT INTO pointsman_queue
                 (handler, tenant, collection, ready, waiting, scheduled, running, halted, missing)
               VALUES (?1, ?2, ?3, 0, 0, 0, 0, 0, 0)";
    conn.prepare_cached(sql)?.execute((handler, tenant.as_str(), subject.to_text()))?;
    Ok(conn.last_insert_rowid())
}

pub(super) fn write_queue_counts(conn: &Connection, counts: &[(QueueId, QueueCounts)]) -> TableResult<()> {
    let sql = "UPDATE pointsman_queue
               SET ready = ?2, waiting = ?3, scheduled = ?4, running = ?5, halted = ?6, missing = ?7
               WHERE id = ?1";
    let mut update = conn.prepare_cached(sql)?;
    for (id, counts) in counts {
        let QueueCounts { ready, waiting, scheduled, running, halted, missing } = counts;
        update.execute((id, ready, waiting, scheduled, running, halted, missing))?;
    }
    Ok(())
}

pub(super) fn read_queue_head(conn: &Connection, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>> {
    let sql =
        "SELECT score, seq FROM pointsman_task WHERE queue = ?1 AND phase = 3 ORDER BY score DESC, rank, seq";
    query_first(conn, sql, [queue], |row| Ok((row.get(0)?, TaskSeq(row.get(1)?))))
}

pub(super) fn list_rank_ranges(conn: &Connection, queue: QueueId) -> TableResult<Vec<RankRange>> {
    let sql = "SELECT score, key_bucket, min(rank), max(rank) FROM pointsman_task
               WHERE queue = ?1 AND phase = 3 GROUP BY score, key_bucket";
    query_all(conn, sql, [queue], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
}

pub(super) fn list_handlers(conn: &Connection) -> TableResult<Vec<HandlerRow>> {
    let sql = "SELECT id, def, defined, limiter_state FROM pointsman_handler ORDER BY id";
    query_all(conn, sql, [], |row| {
        let def = serde_json::from_str(read_text(row, 1)?);
        let limiter_state = match read_text(row, 3)? {
            "" => Ok(LimiterAndBreakerState::default()),
            json => serde_json::from_str(json),
        };
        Ok(HandlerRow {
            id: row.get(0)?,
            def: def.map_err(|e| Fault::undecodable("the definition of a handler", e))?,
            is_defined: row.get(2)?,
            limiter_state: limiter_state
                .map_err(|e| Fault::undecodable("the limiter state of a handler", e))?,
        })
    })
}

pub(super) fn set_defined_handlers(conn: &Connection, handlers: &[HandlerDef]) -> TableResult<()> {
    conn.execute("UPDATE pointsman_handler SET defined = 0", [])?;
    let sql = "INSERT INTO pointsman_handler (name, def, defined) VALUES (?1, ?2, 1)
               ON CONFLICT (name) DO UPDATE SET def = ?2, defined = 1";
    for def in handlers {
        let json = serde_json::to_string(def).map_err(Fault::damaged)?;
        conn.prepare_cached(sql)?.execute((def.name.as_str(), json))?;
    }
    Ok(())
}

pub(super) fn write_limiter_state(
    conn: &Connection,
    handler: HandlerId,
    limiter_state: &LimiterAndBreakerState,
) -> TableResult<()> {
    let json = serde_json::to_string(limiter_state).map_err(Fault::damaged)?;
    conn.prepare_cached("UPDATE pointsman_handler SET limiter_state = ?2 WHERE id = ?1")?
        .execute((handler, json))?;
    Ok(())
}

pub(super) fn read_missed_event_ranges_json(conn: &Connection, handler: HandlerId) -> TableResult<String> {
    let mut statement = conn.prepare_cached("SELECT gaps FROM pointsman_handler WHERE id = ?1")?;
    Ok(statement.query_row([handler], |r| r.get(0))?)
}

pub(super) fn write_missed_event_ranges_json(
    conn: &Connection,
    handler: HandlerId,
    gaps: &str,
) -> TableResult<()> {
    conn.prepare_cached("UPDATE pointsman_handler SET gaps = ?2 WHERE id = ?1")?.execute((handler, gaps))?;
    Ok(())
}
