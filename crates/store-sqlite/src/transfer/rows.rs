//! The rows of the file, a section at a time.

use pointsman_store::transfer::{Cell, MARK_EVERY, Page, Place, Row, Section};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::counters::number;
use crate::error::{Fault, Result};
use crate::tables::numbers;

/// Where the rows of a section lie: the table, what they are ordered by, and which of the table's rows they are.
struct Lying {
    table: &'static str,
    key: &'static [&'static str],
    which: &'static str,
}

/// Events that nobody needs any more lie there until they are swept away.
const NEEDED: &str = "id > (SELECT coalesce((SELECT value FROM pointsman_meta WHERE name = 'forgotten'), 0))
    OR EXISTS (SELECT 1 FROM pointsman_task WHERE seq >= first_task AND seq < first_task + tasks)
    OR EXISTS (SELECT 1 FROM pointsman_task WHERE late = 1 AND event = pointsman_journal.id)";

/// None if the file has no such section.
fn lying(section: Section) -> Option<Lying> {
    let all = |table, key| Some(Lying { table, key, which: "true" });
    match section {
        // Not rows, but what `counters.rs` makes of many things.
        Section::Counters => all("(SELECT 1)", &[]),
        // Numbers are not what is kept under a name here.
        Section::Texts => Some(Lying {
            table: "pointsman_meta",
            key: &["name"],
            which: "typeof(value) = 'text' AND name <> 'move'",
        }),
        Section::Handlers => all("pointsman_handler", &["id"]),
        Section::Queues => all("pointsman_queue", &["id"]),
        Section::Chains => all("pointsman_chain", &["path"]),
        Section::Rules => all("pointsman_rule", &["kind", "space", "name", "tenant"]),
        Section::Files => all("pointsman_file", &["key"]),
        Section::Nodes => all("pointsman_node", &["id"]),
        Section::Schedules => all("pointsman_schedule", &["name"]),
        Section::Journal => Some(Lying { table: "pointsman_journal", key: &["id"], which: NEEDED }),
        Section::Objects => all("pointsman_object", &["tenant", "key"]),
        Section::Tasks => all("pointsman_task", &["seq"]),
        Section::Orders => all("pointsman_order", &["n"]),
        Section::EndedOrders => all("pointsman_ended_order", &["key", "tenant"]),
        Section::History => all("pointsman_history", &["seq"]),
        Section::Attempts => all("pointsman_attempt", &["task", "number"]),
        Section::Logs => all("pointsman_log", &["task", "n"]),
        // In the order of time, in which the oldest are found again.
        Section::Answers => all("pointsman_idempotency", &["n"]),
        Section::Fires => all("pointsman_fire", &["n"]),
        Section::Deeds => all("pointsman_deed", &["n"]),
        Section::Receipts | Section::Keys | Section::Refused | Section::Ahead => None,
    }
}

pub(super) fn count(conn: &Connection, section: Section) -> Result<Option<u64>> {
    let Some(Lying { table, which, .. }) = lying(section) else { return Ok(None) };
    let sql = format!("SELECT count(*) FROM {table} WHERE {which}");
    let rows: i64 = conn.query_row(&sql, [], |row| row.get(0))?;
    Ok(Some(rows.unsigned_abs()))
}

pub(super) fn read(conn: &Connection, section: Section, after: Option<&Place>) -> Result<Page> {
    let mut page = Page::default();
    let Some(Lying { table, key, which }) = lying(section) else { return Ok(page) };
    let (columns, keys) = (expressions(section), key.join(", "));
    let behind = after.map_or("true".into(), |place| format!("({keys}) > ({})", marks(place.len())));
    let sql = format!("SELECT {keys}, {columns} FROM {table} WHERE ({which}) AND {behind} ORDER BY {keys}");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(after.into_iter().flatten().map(value)))?;
    let width = key.len() + section.columns().len();
    while !page.is_full()
        && let Some(row) = rows.next()?
    {
        let cells: Result<Vec<Cell>> = (0..width).map(|at| cell(row.get_ref(at)?)).collect();
        let mut place = cells?;
        let row = place.split_off(key.len());
        page.push(place, row);
    }
    Ok(page)
}

/// What is read for each column.
fn expressions(section: Section) -> String {
    let column = |name: &&'static str| match (section, *name) {
        (Section::Nodes, "heard") => "CASE WHEN gone THEN heard ELSE 0 END",
        (_, name) => own_name(section, name),
    };
    section.columns().iter().map(column).collect::<Vec<_>>().join(", ")
}

/// What a column is called here.
fn own_name(section: Section, name: &'static str) -> &'static str {
    match (section, name) {
        (Section::Texts, "text") => "value",
        (_, name) => name,
    }
}

pub(super) fn write(conn: &Connection, section: Section, rows: Vec<Row>) -> Result<()> {
    let Some(Lying { table, .. }) = lying(section) else {
        return Err(Fault::damaged(format!("no place for {section}")));
    };
    let columns: Vec<_> = section.columns().iter().map(|name| own_name(section, name)).collect();
    let sql = format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(", "), marks(columns.len()));
    let mut insert = conn.prepare_cached(&sql)?;
    for row in rows {
        insert.execute(params_from_iter(row.into_iter().map(owned)))?;
    }
    Ok(())
}

/// Writes events, and marks some of them, so that they are found by their numbers.
pub(super) fn write_journal(conn: &Connection, rows: Vec<Row>) -> Result<()> {
    let (forgotten, mut journaled) = (number(conn, "forgotten")?, numbers::journaled(conn)?);
    let mut marks = Vec::new();
    for id in rows.iter().filter_map(|row| row.first()?.number()).filter(|id| *id > forgotten) {
        journaled += 1;
        if journaled % MARK_EVERY == 0 {
            marks.push((journaled, id));
        }
    }
    write(conn, Section::Journal, rows)?;
    let mut insert = conn.prepare_cached("INSERT INTO pointsman_mark (n, id) VALUES (?1, ?2)")?;
    marks.into_iter().try_for_each(|mark| insert.execute(mark).map(drop))?;
    Ok(())
}

/// So many question marks.
fn marks(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn cell(value: ValueRef<'_>) -> Result<Cell> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Number(number),
        ValueRef::Text(_) => Cell::Text(value.as_str()?.into()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.into()),
        ValueRef::Real(_) => return Err(Fault::damaged("a number with a fraction")),
    })
}

fn value(cell: &Cell) -> Value {
    owned(cell.clone())
}

fn owned(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(number) => Value::Integer(number),
        Cell::Text(text) => Value::Text(text),
        Cell::Bytes(bytes) => Value::Blob(bytes),
    }
}
