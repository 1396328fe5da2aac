//! Reads and writes the rows of the file, one table at a time.

use pointsman_store::transfer::{Cell, MARK_EVERY, Page, Place, Row, Section};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::counter_row::read_number;
use crate::error::{Fault, Result};
use crate::tables::counters;

/// The source of a table's rows: the SQL table, the columns that order them, and the condition that selects them.
struct TableSource {
    table: &'static str,
    key: &'static [&'static str],
    condition: &'static str,
}

/// Selects events that are visible or have unfinished tasks. Others only wait for their deletion.
const NEEDED_EVENTS: &str =
    "id > (SELECT coalesce((SELECT value FROM pointsman_meta WHERE name = 'forgotten'), 0))
    OR EXISTS (SELECT 1 FROM pointsman_task WHERE seq >= first_task AND seq < first_task + tasks)
    OR EXISTS (SELECT 1 FROM pointsman_task WHERE late = 1 AND event = pointsman_journal.id)";

/// Returns the SQL table of a table kind; None if the file has no such table.
fn table_source(section: Section) -> Option<TableSource> {
    let all = |table, key| Some(TableSource { table, key, condition: "true" });
    match section {
        // Not rows of a table; see `counter_row.rs`.
        Section::Counters => all("(SELECT 1)", &[]),
        // Texts only: named numbers are counters.
        Section::Texts => Some(TableSource {
            table: "pointsman_meta",
            key: &["name"],
            condition: "typeof(value) = 'text' AND name <> 'move'",
        }),
        Section::Handlers => all("pointsman_handler", &["id"]),
        Section::Queues => all("pointsman_queue", &["id"]),
        Section::Chains => all("pointsman_chain", &["path"]),
        Section::Rules => all("pointsman_rule", &["kind", "space", "name", "tenant"]),
        Section::Files => all("pointsman_file", &["key"]),
        Section::Nodes => all("pointsman_node", &["id"]),
        Section::Schedules => all("pointsman_schedule", &["name"]),
        Section::Journal => {
            Some(TableSource { table: "pointsman_journal", key: &["id"], condition: NEEDED_EVENTS })
        }
        Section::Objects => all("pointsman_object", &["tenant", "key"]),
        Section::Tasks => all("pointsman_task", &["seq"]),
        Section::Orders => all("pointsman_order", &["n"]),
        Section::EndedOrders => all("pointsman_ended_order", &["key", "tenant"]),
        Section::History => all("pointsman_history", &["seq"]),
        Section::Attempts => all("pointsman_attempt", &["task", "number"]),
        Section::Logs => all("pointsman_log", &["task", "n"]),
        // In the order of time, by which retention finds the oldest.
        Section::Answers => all("pointsman_idempotency", &["n"]),
        Section::Fires => all("pointsman_fire", &["n"]),
        Section::Deeds => all("pointsman_deed", &["n"]),
        Section::Receipts | Section::Keys | Section::Refused | Section::Ahead => None,
    }
}

pub(super) fn count_rows(conn: &Connection, section: Section) -> Result<Option<u64>> {
    let Some(TableSource { table, condition, .. }) = table_source(section) else { return Ok(None) };
    let sql = format!("SELECT count(*) FROM {table} WHERE {condition}");
    let rows: i64 = conn.query_row(&sql, [], |row| row.get(0))?;
    Ok(Some(rows.unsigned_abs()))
}

pub(super) fn read_rows(conn: &Connection, section: Section, after: Option<&Place>) -> Result<Page> {
    let mut page = Page::default();
    let Some(TableSource { table, key, condition }) = table_source(section) else { return Ok(page) };
    let (columns, keys) = (select_expressions(section), key.join(", "));
    let after_condition =
        after.map_or("true".into(), |place| format!("({keys}) > ({})", placeholders(place.len())));
    let sql = format!(
        "SELECT {keys}, {columns} FROM {table} WHERE ({condition}) AND {after_condition} ORDER BY {keys}"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(after.into_iter().flatten().map(value_from_cell_ref)))?;
    let width = key.len() + section.columns().len();
    while !page.is_full()
        && let Some(row) = rows.next()?
    {
        let cells: Result<Vec<Cell>> = (0..width).map(|at| cell_from_value(row.get_ref(at)?)).collect();
        let mut place = cells?;
        let row = place.split_off(key.len());
        page.push(place, row);
    }
    Ok(page)
}

/// Returns the expressions that are selected for the columns.
fn select_expressions(section: Section) -> String {
    let column = |name: &&'static str| match (section, *name) {
        (Section::Nodes, "heard") => "CASE WHEN gone THEN heard ELSE 0 END",
        (_, name) => column_name(section, name),
    };
    section.columns().iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Returns the name of a column in the file.
fn column_name(section: Section, name: &'static str) -> &'static str {
    match (section, name) {
        (Section::Texts, "text") => "value",
        (_, name) => name,
    }
}

pub(super) fn insert_rows(conn: &Connection, section: Section, rows: Vec<Row>) -> Result<()> {
    let Some(TableSource { table, .. }) = table_source(section) else {
        return Err(Fault::damaged(format!("the embedded store has no table for {section}")));
    };
    let columns: Vec<_> = section.columns().iter().map(|name| column_name(section, name)).collect();
    let sql =
        format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(", "), placeholders(columns.len()));
    let mut insert = conn.prepare_cached(&sql)?;
    for row in rows {
        insert.execute(params_from_iter(row.into_iter().map(value_from_cell)))?;
    }
    Ok(())
}

/// Inserts events, and marks every thousandth, so that events are found by their numbers.
pub(super) fn insert_journal_rows(conn: &Connection, rows: Vec<Row>) -> Result<()> {
    let (forgotten, mut journaled) =
        (read_number(conn, "forgotten")?, counters::count_journaled_events(conn)?);
    let mut marks = Vec::new();
    for id in rows.iter().filter_map(|row| row.first()?.number()).filter(|id| *id > forgotten) {
        journaled += 1;
        if journaled % MARK_EVERY == 0 {
            marks.push((journaled, id));
        }
    }
    insert_rows(conn, Section::Journal, rows)?;
    let mut insert = conn.prepare_cached("INSERT INTO pointsman_mark (n, id) VALUES (?1, ?2)")?;
    marks.into_iter().try_for_each(|mark| insert.execute(mark).map(drop))?;
    Ok(())
}

/// Returns this many SQL placeholders.
fn placeholders(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn cell_from_value(value: ValueRef<'_>) -> Result<Cell> {
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Number(number),
        ValueRef::Text(_) => Cell::Text(value.as_str()?.into()),
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.into()),
        ValueRef::Real(_) => return Err(Fault::damaged("a column has a floating-point number")),
    })
}

fn value_from_cell_ref(cell: &Cell) -> Value {
    value_from_cell(cell.clone())
}

fn value_from_cell(cell: Cell) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(number) => Value::Integer(number),
        Cell::Text(text) => Value::Text(text),
        Cell::Bytes(bytes) => Value::Blob(bytes),
    }
}
