//! Reads and writes the rows of the file, one table at a time.

use pointsman_store::columns::Column;
use pointsman_store::store_copy::{
    CopyCursor, CopyPage, CopyRow, CursorValue, JOURNAL_SPARSE_INDEX_INTERVAL, TableKind,
};
use rusqlite::types::{FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::counter_row::read_named_number;
use crate::cells::{ParameterWriter, RowReader};
use crate::error::{Fault, TableResult};
use crate::tables::meta;

/// Returns the SQL table of a table kind; `None` if the file has no such table.
fn find_sql_table(table_kind: TableKind) -> Option<&'static str> {
    Some(match table_kind {
        // Not rows of a table; see `counter_row.rs`.
        TableKind::Counters => "(SELECT 1)",
        TableKind::NamedTexts => "pointsman_meta",
        TableKind::Handlers => "pointsman_handler",
        TableKind::Queues => "pointsman_queue",
        TableKind::Chains => "pointsman_chain",
        TableKind::Rules => "pointsman_rule",
        TableKind::FileDigests => "pointsman_configured_object_digest",
        TableKind::Nodes => "pointsman_node",
        TableKind::ScheduleProgress => "pointsman_schedule",
        TableKind::Journal => "pointsman_journal",
        TableKind::Objects => "pointsman_object",
        TableKind::Tasks => "pointsman_task",
        TableKind::Orders => "pointsman_order",
        TableKind::EndedOrders => "pointsman_ended_order",
        TableKind::ArchivedTasks => "pointsman_history",
        TableKind::Attempts => "pointsman_attempt",
        TableKind::Logs => "pointsman_log",
        TableKind::IdempotencyRecords => "pointsman_idempotency_record",
        TableKind::Fires => "pointsman_fire",
        TableKind::AuditEntries => "pointsman_audit_entry",
        TableKind::OutboxReceipts
        | TableKind::OutboxKeys
        | TableKind::OutboxRefusals
        | TableKind::UnknownTenantRules => return None,
    })
}

/// Returns the condition that selects the rows to copy.
fn row_condition(table_kind: TableKind) -> &'static str {
    match table_kind {
        // Texts only: named numbers are counters.
        TableKind::NamedTexts => "typeof(text) = 'text' AND name <> 'move'",
        // Unexpired events, and expired ones that unfinished tasks need. The others are deleted later.
        TableKind::Journal => {
            "id > (SELECT coalesce((SELECT text FROM pointsman_meta WHERE name = 'expired_up_to'), 0))
             OR EXISTS (SELECT 1 FROM pointsman_task WHERE seq >= first_task AND seq < first_task + tasks)
             OR EXISTS (SELECT 1 FROM pointsman_task WHERE late = 1 AND event = pointsman_journal.id)"
        }
        _ => "true",
    }
}

/// Returns the columns by which the rows are ordered.
fn sort_columns(table_kind: TableKind) -> Vec<&'static str> {
    match table_kind {
        // In the order of writing, so that retention finds the oldest rows.
        TableKind::IdempotencyRecords | TableKind::Fires => vec!["n"],
        _ => table_kind.key_columns().iter().map(|column| column.name).collect(),
    }
}

/// Returns the SQL expression that selects a column.
fn select_expression(table_kind: TableKind, column: &Column) -> &'static str {
    match (table_kind, column.name) {
        (TableKind::Nodes, "last_heartbeat") => "CASE WHEN gone THEN last_heartbeat ELSE 0 END",
        (_, name) => name,
    }
}

pub(super) fn count_rows(conn: &Connection, table_kind: TableKind) -> TableResult<Option<u64>> {
    let Some(sql_table) = find_sql_table(table_kind) else { return Ok(None) };
    let sql = format!("SELECT count(*) FROM {sql_table} WHERE {}", row_condition(table_kind));
    let rows: i64 = conn.query_row(&sql, [], |row| row.get(0))?;
    Ok(Some(rows.unsigned_abs()))
}

pub(super) fn read_page(
    conn: &Connection,
    table_kind: TableKind,
    after: Option<&CopyCursor>,
) -> TableResult<CopyPage> {
    let mut page = CopyPage::default();
    let Some(sql_table) = find_sql_table(table_kind) else { return Ok(page) };
    let (key_columns, condition) = (sort_columns(table_kind), row_condition(table_kind));
    let keys = key_columns.join(", ");
    let columns = table_kind.columns().iter().map(|column| select_expression(table_kind, column));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let after_condition =
        after.map_or("true".into(), |cursor| format!("({keys}) > ({})", format_placeholders(cursor.len())));
    let sql = format!(
        "SELECT {keys}, {columns} FROM {sql_table} WHERE ({condition}) AND {after_condition} ORDER BY {keys}"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(after.into_iter().flatten().map(cursor_parameter)))?;
    while !page.is_full()
        && let Some(row) = rows.next()?
    {
        let mut cells = RowReader::new(row);
        let cursor: TableResult<_> =
            key_columns.iter().map(|_| cells.decode_next(decode_cursor_value)).collect();
        page.push_row(cursor?, CopyRow::read_cells(table_kind, &mut cells)?);
    }
    Ok(page)
}

fn cursor_parameter(value: &CursorValue) -> &dyn ToSql {
    match value {
        CursorValue::Number(number) => number,
        CursorValue::Text(text) => text,
        CursorValue::Bytes(bytes) => bytes,
    }
}

fn decode_cursor_value(cell: ValueRef<'_>) -> FromSqlResult<CursorValue> {
    match cell {
        ValueRef::Integer(number) => Ok(CursorValue::Number(number)),
        ValueRef::Text(_) => Ok(CursorValue::Text(cell.as_str()?.into())),
        ValueRef::Blob(bytes) => Ok(CursorValue::Bytes(bytes.into())),
        ValueRef::Null | ValueRef::Real(_) => Err(FromSqlError::InvalidType),
    }
}

pub(super) fn insert_rows(conn: &Connection, table_kind: TableKind, rows: &[CopyRow]) -> TableResult<()> {
    let Some(sql_table) = find_sql_table(table_kind) else {
        return Err(Fault::damaged(format!("the embedded store has no table for {table_kind}")));
    };
    let columns: Vec<_> = table_kind.columns().iter().map(|column| column.name).collect();
    let (columns, placeholders) = (columns.join(", "), format_placeholders(columns.len()));
    let mut insert =
        conn.prepare_cached(&format!("INSERT INTO {sql_table} ({columns}) VALUES ({placeholders})"))?;
    for row in rows {
        let mut parameters = ParameterWriter::new(&mut insert);
        row.write_cells(&mut parameters);
        parameters.execute()?;
    }
    Ok(())
}

/// Inserts events, and adds every thousandth to the sparse index, by which an event is found by its number.
pub(super) fn insert_journal_rows(conn: &Connection, rows: &[CopyRow]) -> TableResult<()> {
    let (expired_up_to, mut journaled) =
        (read_named_number(conn, "expired_up_to")?, meta::count_journaled_events(conn)?);
    insert_rows(conn, TableKind::Journal, rows)?;
    let mut insert =
        conn.prepare_cached("INSERT INTO pointsman_journal_sparse_index (number, id) VALUES (?1, ?2)")?;
    for row in rows {
        if let CopyRow::Journal(event) = row
            && event.id > expired_up_to
        {
            journaled += 1;
            if journaled % JOURNAL_SPARSE_INDEX_INTERVAL == 0 {
                insert.execute((journaled, event.id))?;
            }
        }
    }
    Ok(())
}

/// Returns this many SQL placeholders.
fn format_placeholders(count: usize) -> String {
    vec!["?"; count].join(", ")
}
