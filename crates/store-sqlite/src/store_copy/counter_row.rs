//! The counters of the store as one row. The file stores some of them only implicitly, in other rows.

use pointsman_store::store_copy::{CopyRow, CopyValue};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Fault, TableResult};
use crate::tables::meta::{self, StoredCounters};

/// Reads the counters as the one row of their table.
pub(super) fn read_counter_row(conn: &Connection) -> TableResult<CopyRow> {
    let counters = StoredCounters::default().read_counters(conn)?;
    let expired_up_to = counters.expired_up_to.as_i64();
    let sql = "SELECT count(*) FROM pointsman_journal WHERE id > ?1";
    let visible_count: i64 = conn.query_row(sql, [expired_up_to], |r| r.get(0))?;
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'pointsman_node'";
    let last_node: Option<i64> = conn.query_row(sql, [], |r| r.get(0)).optional()?;
    let numbers = [
        read_named_number(conn, "task_id_namespace")?,
        read_named_number(conn, "salt")?,
        counters.last_event.as_i64(),
        expired_up_to,
        counters.journaled_event_count - visible_count,
        counters.journaled_event_count,
        counters.last_task,
        counters.last_fence,
        counters.last_object,
        counters.archived_task_count,
        last_node.unwrap_or(0),
    ];
    Ok(numbers.into_iter().map(CopyValue::Number).collect())
}

pub(super) fn write_counter_row(conn: &Connection, row: &CopyRow) -> TableResult<()> {
    let numbers: Option<Vec<i64>> = row.iter().map(CopyValue::as_number).collect();
    let numbers: Option<[i64; 11]> = numbers.and_then(|numbers| numbers.try_into().ok());
    // The last event and the number of events follow from the journal itself.
    let Some(
        [
            namespace,
            salt,
            _,
            expired_up_to,
            expired_count,
            _,
            last_task,
            last_fence,
            last_object,
            archived_task_count,
            last_node,
        ],
    ) = numbers
    else {
        return Err(Fault::damaged("the row of counters does not have 11 numbers"));
    };
    for (name, number) in [
        ("task_id_namespace", namespace),
        ("salt", salt),
        ("expired_up_to", expired_up_to),
        ("last_task", last_task),
        ("last_fence", last_fence),
        ("last_object", last_object),
        ("archived_tasks", archived_task_count),
    ] {
        meta::write_meta_value(conn, name, number)?;
    }
    // The journal may still contain expired events, even if it has no visible ones.
    conn.execute_batch("DELETE FROM pointsman_journal; DELETE FROM pointsman_journal_sparse_index")?;
    if expired_count > 0 {
        conn.execute(
            "INSERT INTO pointsman_journal_sparse_index (number, id) VALUES (?1, ?2)",
            [expired_count, expired_up_to],
        )?;
    }
    conn.execute("DELETE FROM sqlite_sequence WHERE name = 'pointsman_node'", [])?;
    conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('pointsman_node', ?1)", [last_node])?;
    Ok(())
}

/// Reads a named number; 0 if there is none.
pub(super) fn read_named_number(conn: &Connection, name: &str) -> TableResult<i64> {
    Ok(meta::read_meta_value(conn, name)?.unwrap_or(0))
}
