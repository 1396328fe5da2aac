//! Reads and writes the rows of the file, one table at a time.

use pointsman_store::store_copy::{
    CopyCursor, CopyPage, CopyRow, CopyValue, JOURNAL_SPARSE_INDEX_INTERVAL, TableKind,
};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};

use super::counter_row::read_named_number;
use crate::error::{Fault, TableResult};
use crate::tables::meta;

/// The source of a table's rows: the SQL table, the columns that order them, and the condition that selects them.
struct TableSource {
    sql_table: &'static str,
    key_columns: &'static [&'static str],
    condition: &'static str,
}

/// Selects events that are visible or have unfinished tasks. The other events only wait for their deletion.
const NEEDED_EVENTS_CONDITION: &str =
    "id > (SELECT coalesce((SELECT value FROM pointsman_meta WHERE name = 'expired_up_to'), 0))
    OR EXISTS (SELECT 1 FROM pointsman_task WHERE seq >= first_task AND seq < first_task + tasks)
    OR EXISTS (SELECT 1 FROM pointsman_task WHERE late = 1 AND event = pointsman_journal.id)";

/// Returns the SQL table of a table kind; None if the file has no such table.
fn find_table_source(table_kind: TableKind) -> Option<TableSource> {
    let whole_table =
        |sql_table, key_columns| Some(TableSource { sql_table, key_columns, condition: "true" });
    match table_kind {
        // Not rows of a table; see `counter_row.rs`.
        TableKind::Counters => whole_table("(SELECT 1)", &[]),
        // Texts only: named numbers are counters.
        TableKind::NamedTexts => Some(TableSource {
            sql_table: "pointsman_meta",
            key_columns: &["name"],
            condition: "typeof(value) = 'text' AND name <> 'move'",
        }),
        TableKind::Handlers => whole_table("pointsman_handler", &["id"]),
        TableKind::Queues => whole_table("pointsman_queue", &["id"]),
        TableKind::Chains => whole_table("pointsman_chain", &["path"]),
        TableKind::Rules => whole_table("pointsman_rule", &["kind", "space", "name", "tenant"]),
        TableKind::FileDigests => whole_table("pointsman_configured_object_digest", &["key"]),
        TableKind::Nodes => whole_table("pointsman_node", &["id"]),
        TableKind::Schedules => whole_table("pointsman_schedule", &["name"]),
        TableKind::Journal => Some(TableSource {
            sql_table: "pointsman_journal",
            key_columns: &["id"],
            condition: NEEDED_EVENTS_CONDITION,
        }),
        TableKind::Objects => whole_table("pointsman_object", &["tenant", "key"]),
        TableKind::Tasks => whole_table("pointsman_task", &["seq"]),
        TableKind::Orders => whole_table("pointsman_order", &["n"]),
        TableKind::EndedOrders => whole_table("pointsman_ended_order", &["key", "tenant"]),
        TableKind::History => whole_table("pointsman_history", &["seq"]),
        TableKind::Attempts => whole_table("pointsman_attempt", &["task", "number"]),
        TableKind::Logs => whole_table("pointsman_log", &["task", "n"]),
        // In the order of writing, so that retention finds the oldest rows.
        TableKind::IdempotencyRecords => whole_table("pointsman_idempotency_record", &["n"]),
        TableKind::Fires => whole_table("pointsman_fire", &["n"]),
        TableKind::AuditEntries => whole_table("pointsman_audit_entry", &["n"]),
        TableKind::OutboxReceipts
        | TableKind::OutboxKeys
        | TableKind::OutboxRefusals
        | TableKind::UnknownTenantRules => None,
    }
}

pub(super) fn count_rows(conn: &Connection, table_kind: TableKind) -> TableResult<Option<u64>> {
    let Some(TableSource { sql_table, condition, .. }) = find_table_source(table_kind) else {
        return Ok(None);
    };
    let sql = format!("SELECT count(*) FROM {sql_table} WHERE {condition}");
    let rows: i64 = conn.query_row(&sql, [], |row| row.get(0))?;
    Ok(Some(rows.unsigned_abs()))
}

pub(super) fn read_page(
    conn: &Connection,
    table_kind: TableKind,
    after: Option<&CopyCursor>,
) -> TableResult<CopyPage> {
    let mut page = CopyPage::default();
    let Some(TableSource { sql_table, key_columns, condition }) = find_table_source(table_kind) else {
        return Ok(page);
    };
    let (columns, keys) = (select_expressions(table_kind), key_columns.join(", "));
    let after_condition =
        after.map_or("true".into(), |cursor| format!("({keys}) > ({})", format_placeholders(cursor.len())));
    let sql = format!(
        "SELECT {keys}, {columns} FROM {sql_table} WHERE ({condition}) AND {after_condition} ORDER BY {keys}"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows =
        statement.query(params_from_iter(after.into_iter().flatten().map(sqlite_value_from_copy_ref)))?;
    let cell_count = key_columns.len() + table_kind.columns().len();
    while !page.is_full()
        && let Some(row) = rows.next()?
    {
        let cells: TableResult<Vec<CopyValue>> =
            (0..cell_count).map(|index| copy_value_from_sqlite(row.get_ref(index)?)).collect();
        let mut cursor = cells?;
        let row = cursor.split_off(key_columns.len());
        page.push_row(cursor, row);
    }
    Ok(page)
}

/// Returns the SQL expressions that select the columns of a table.
fn select_expressions(table_kind: TableKind) -> String {
    let column = |name: &&'static str| match (table_kind, *name) {
        (TableKind::Nodes, "last_heartbeat") => "CASE WHEN gone THEN last_heartbeat ELSE 0 END",
        (_, name) => sqlite_column_name(table_kind, name),
    };
    table_kind.columns().iter().map(column).collect::<Vec<_>>().join(", ")
}

/// Returns the name of a column in the file.
fn sqlite_column_name(table_kind: TableKind, name: &'static str) -> &'static str {
    match (table_kind, name) {
        (TableKind::NamedTexts, "text") => "value",
        (_, name) => name,
    }
}

pub(super) fn insert_rows(conn: &Connection, table_kind: TableKind, rows: Vec<CopyRow>) -> TableResult<()> {
    let Some(TableSource { sql_table, .. }) = find_table_source(table_kind) else {
        return Err(Fault::damaged(format!("the embedded store has no table for {table_kind}")));
    };
    let columns: Vec<_> =
        table_kind.columns().iter().map(|name| sqlite_column_name(table_kind, name)).collect();
    let sql = format!(
        "INSERT INTO {sql_table} ({}) VALUES ({})",
        columns.join(", "),
        format_placeholders(columns.len())
    );
    let mut insert = conn.prepare_cached(&sql)?;
    for row in rows {
        insert.execute(params_from_iter(row.into_iter().map(sqlite_value_from_copy)))?;
    }
    Ok(())
}

/// Inserts events, and adds every thousandth to the sparse index, by which an event is found by its number.
pub(super) fn insert_journal_rows(conn: &Connection, rows: Vec<CopyRow>) -> TableResult<()> {
    let (expired_up_to, mut journaled) =
        (read_named_number(conn, "expired_up_to")?, meta::count_journaled_events(conn)?);
    let mut index_entries = Vec::new();
    for id in rows.iter().filter_map(|row| row.first()?.as_number()).filter(|id| *id > expired_up_to) {
        journaled += 1;
        if journaled % JOURNAL_SPARSE_INDEX_INTERVAL == 0 {
            index_entries.push((journaled, id));
        }
    }
    insert_rows(conn, TableKind::Journal, rows)?;
    let mut insert =
        conn.prepare_cached("INSERT INTO pointsman_journal_sparse_index (number, id) VALUES (?1, ?2)")?;
    index_entries.into_iter().try_for_each(|index_entry| insert.execute(index_entry).map(drop))?;
    Ok(())
}

/// Returns this many SQL placeholders.
fn format_placeholders(count: usize) -> String {
    vec!["?"; count].join(", ")
}

fn copy_value_from_sqlite(value: ValueRef<'_>) -> TableResult<CopyValue> {
    Ok(match value {
        ValueRef::Null => CopyValue::Null,
        ValueRef::Integer(number) => CopyValue::Number(number),
        ValueRef::Text(_) => CopyValue::Text(value.as_str()?.into()),
        ValueRef::Blob(bytes) => CopyValue::Bytes(bytes.into()),
        ValueRef::Real(_) => return Err(Fault::damaged("a column has a floating-point number")),
    })
}

fn sqlite_value_from_copy_ref(cell: &CopyValue) -> Value {
    sqlite_value_from_copy(cell.clone())
}

fn sqlite_value_from_copy(cell: CopyValue) -> Value {
    match cell {
        CopyValue::Null => Value::Null,
        CopyValue::Number(number) => Value::Integer(number),
        CopyValue::Text(text) => Value::Text(text),
        CopyValue::Bytes(bytes) => Value::Blob(bytes),
    }
}
