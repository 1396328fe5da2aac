//! The counters of the store as one row. The file stores some of them only implicitly, in other rows.

use pointsman_store::columns::CounterColumns;
use rusqlite::{Connection, OptionalExtension};

use crate::error::TableResult;
use crate::tables::meta::{self, StoredCounters};

pub(super) fn read_counter_row(conn: &Connection) -> TableResult<CounterColumns> {
    let counters = StoredCounters::default().read_counters(conn)?;
    let expired_up_to = counters.expired_up_to.as_i64();
    let sql = "SELECT count(*) FROM pointsman_journal WHERE id > ?1";
    let visible_count: i64 = conn.query_row(sql, [expired_up_to], |r| r.get(0))?;
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'pointsman_node'";
    let last_node: Option<i64> = conn.query_row(sql, [], |r| r.get(0)).optional()?;
    Ok(CounterColumns {
        task_id_namespace: read_named_number(conn, "task_id_namespace")?,
        salt: read_named_number(conn, "salt")?,
        last_event: counters.last_event.as_i64(),
        expired_up_to,
        expired_events: counters.journaled_event_count - visible_count,
        journaled_events: counters.journaled_event_count,
        last_task: counters.last_task,
        last_fence: counters.last_fence,
        last_object: counters.last_object,
        archived_tasks: counters.archived_task_count,
        last_node: last_node.unwrap_or(0),
    })
}

/// Writes the counters. The last event and the number of events follow from the journal itself.
pub(super) fn write_counter_row(conn: &Connection, counters: &CounterColumns) -> TableResult<()> {
    for (name, number) in [
        ("task_id_namespace", counters.task_id_namespace),
        ("salt", counters.salt),
        ("expired_up_to", counters.expired_up_to),
        ("last_task", counters.last_task),
        ("last_fence", counters.last_fence),
        ("last_object", counters.last_object),
        ("archived_tasks", counters.archived_tasks),
    ] {
        meta::write_meta_value(conn, name, number)?;
    }
    // The journal may still contain expired events, even if it has no visible ones.
    conn.execute_batch("DELETE FROM pointsman_journal; DELETE FROM pointsman_journal_sparse_index")?;
    if counters.expired_events > 0 {
        conn.execute(
            "INSERT INTO pointsman_journal_sparse_index (number, id) VALUES (?1, ?2)",
            [counters.expired_events, counters.expired_up_to],
        )?;
    }
    conn.execute("DELETE FROM sqlite_sequence WHERE name = 'pointsman_node'", [])?;
    conn.execute(
        "INSERT INTO sqlite_sequence (name, seq) VALUES ('pointsman_node', ?1)",
        [counters.last_node],
    )?;
    Ok(())
}

/// Reads a named number; 0 if there is none.
pub(super) fn read_named_number(conn: &Connection, name: &str) -> TableResult<i64> {
    Ok(meta::read_meta_value(conn, name)?.unwrap_or(0))
}
