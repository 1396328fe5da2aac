//! The counters of the store as one row. The file stores some of them only implicitly, in other rows.

use pointsman_store::transfer::{Cell, Row};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Fault, Result};
use crate::tables::counters::{self, StoredCounters};

/// Reads the counters as the one row of their table.
pub(super) fn read_counters(conn: &Connection) -> Result<Row> {
    let counters = StoredCounters::default().read_counters(conn)?;
    let forgotten = counters.forgotten.as_i64();
    let sql = "SELECT count(*) FROM pointsman_journal WHERE id > ?1";
    let visible_count: i64 = conn.query_row(sql, [forgotten], |r| r.get(0))?;
    let nodes = "SELECT seq FROM sqlite_sequence WHERE name = 'pointsman_node'";
    let nodes: Option<i64> = conn.query_row(nodes, [], |r| r.get(0)).optional()?;
    let numbers = [
        read_number(conn, "realm")?,
        read_number(conn, "salt")?,
        counters.last_event.as_i64(),
        forgotten,
        counters.journaled - visible_count,
        counters.journaled,
        counters.tasks,
        counters.fences,
        counters.objects,
        counters.ended,
        nodes.unwrap_or(0),
    ];
    Ok(numbers.into_iter().map(Cell::Number).collect())
}

pub(super) fn write_counters(conn: &Connection, row: &Row) -> Result<()> {
    let numbers: Option<Vec<i64>> = row.iter().map(Cell::number).collect();
    let numbers: Option<[i64; 11]> = numbers.and_then(|numbers| numbers.try_into().ok());
    // The last event and the number of events follow from the journal itself.
    let Some([realm, salt, _, forgotten, forgotten_count, _, tasks, fences, objects, ended, nodes]) = numbers
    else {
        return Err(Fault::damaged("the row of counters does not have 11 numbers"));
    };
    for (name, number) in [
        ("realm", realm),
        ("salt", salt),
        ("forgotten", forgotten),
        ("task_floor", tasks),
        ("fences", fences),
        ("objects", objects),
        ("ended", ended),
    ] {
        counters::write_meta(conn, name, number)?;
    }
    // The journal may still contain forgotten events, even without visible ones.
    conn.execute_batch("DELETE FROM pointsman_journal; DELETE FROM pointsman_mark")?;
    if forgotten_count > 0 {
        conn.execute("INSERT INTO pointsman_mark (n, id) VALUES (?1, ?2)", [forgotten_count, forgotten])?;
    }
    conn.execute("DELETE FROM sqlite_sequence WHERE name = 'pointsman_node'", [])?;
    conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('pointsman_node', ?1)", [nodes])?;
    Ok(())
}

/// Reads a named number; 0 if there is none.
pub(super) fn read_number(conn: &Connection, name: &str) -> Result<i64> {
    Ok(counters::read_meta(conn, name)?.unwrap_or(0))
}
