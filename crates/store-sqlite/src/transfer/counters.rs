//! How far everything has come. Some of it the file tells only by what it holds.

use pointsman_store::transfer::{Cell, Row};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Fault, Result};
use crate::tables::numbers::{self, Written};

/// The one row of the section.
pub(super) fn read(conn: &Connection) -> Result<Row> {
    let counters = Written::default().counters(conn)?;
    let forgotten = counters.forgotten.as_i64();
    let seen = "SELECT count(*) FROM pointsman_journal WHERE id > ?1";
    let seen: i64 = conn.query_row(seen, [forgotten], |r| r.get(0))?;
    let nodes = "SELECT seq FROM sqlite_sequence WHERE name = 'pointsman_node'";
    let nodes: Option<i64> = conn.query_row(nodes, [], |r| r.get(0)).optional()?;
    let numbers = [
        number(conn, "realm")?,
        number(conn, "salt")?,
        counters.last_event.as_i64(),
        forgotten,
        counters.journaled - seen,
        counters.journaled,
        counters.tasks,
        counters.fences,
        counters.objects,
        counters.ended,
        nodes.unwrap_or(0),
    ];
    Ok(numbers.into_iter().map(Cell::Number).collect())
}

pub(super) fn write(conn: &Connection, row: &Row) -> Result<()> {
    let numbers: Option<Vec<i64>> = row.iter().map(Cell::number).collect();
    let numbers: Option<[i64; 11]> = numbers.and_then(|numbers| numbers.try_into().ok());
    // The last event and how many there were will be told by the journal itself.
    let Some([realm, salt, _, forgotten, unseen, _, tasks, fences, objects, ended, nodes]) = numbers else {
        return Err(Fault::damaged("the counters"));
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
        numbers::put_meta(conn, name, number)?;
    }
    // Where nothing is remembered, forgotten events may lie all the same.
    conn.execute_batch("DELETE FROM pointsman_journal; DELETE FROM pointsman_mark")?;
    if unseen > 0 {
        conn.execute("INSERT INTO pointsman_mark (n, id) VALUES (?1, ?2)", [unseen, forgotten])?;
    }
    conn.execute("DELETE FROM sqlite_sequence WHERE name = 'pointsman_node'", [])?;
    conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('pointsman_node', ?1)", [nodes])?;
    Ok(())
}

/// A number that is kept under a name; 0 if there is none.
pub(super) fn number(conn: &Connection, name: &str) -> Result<i64> {
    Ok(numbers::meta(conn, name)?.unwrap_or(0))
}
