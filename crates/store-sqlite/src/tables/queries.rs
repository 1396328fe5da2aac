//! Queries and inserts, and the decoding of single columns.

use pointsman_core::{EventId, TaskSeq, Timestamp};
use pointsman_store::columns::Columns;
use pointsman_store::row::{TaskPhase, WaitingTask};
use rusqlite::{Connection, Params, Row};

use crate::cells::{ParameterWriter, RowReader};
use crate::error::{Fault, TableResult};

/// Executes a statement whose parameters are the columns of a row.
pub(crate) fn write_columns<'a, C: Columns<'a>>(
    conn: &Connection,
    sql: &str,
    columns: &C,
) -> TableResult<()> {
    let mut statement = conn.prepare_cached(sql)?;
    debug_assert_eq!(
        statement.parameter_count(),
        C::COLUMNS.len(),
        "the statement does not have one parameter per column"
    );
    let mut parameters = ParameterWriter::new(&mut statement);
    columns.write_cells(&mut parameters);
    parameters.execute()
}

/// Returns all rows of a statement.
pub(crate) fn query_all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    decode: impl FnMut(&Row<'_>) -> TableResult<T>,
) -> TableResult<Vec<T>> {
    query_up_to(conn, sql, params, usize::MAX, decode)
}

/// Returns at most `limit` rows of a statement. A bound LIMIT could make SQLite prepare the statement again each time.
pub(crate) fn query_up_to<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    limit: usize,
    mut decode: impl FnMut(&Row<'_>) -> TableResult<T>,
) -> TableResult<Vec<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        found.push(decode(row)?);
    }
    Ok(found)
}

/// Returns the first row of a statement.
pub(crate) fn query_first<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    decode: impl FnOnce(&Row<'_>) -> TableResult<T>,
) -> TableResult<Option<T>> {
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(decode).transpose()
}

/// Reads the columns with which a row begins.
pub(crate) fn read_columns<'r, C: Columns<'r>>(row: &'r Row<'_>) -> TableResult<C> {
    C::read_cells(&mut RowReader::new(row))
}

pub(crate) fn read_text<'r>(row: &'r Row<'_>, index: usize) -> TableResult<&'r str> {
    row.get_ref(index)?.as_str().map_err(Fault::damaged)
}

pub(crate) fn read_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Timestamp> {
    row.get(index).map(Timestamp::from_micros)
}

pub(crate) fn read_optional_time(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(Timestamp::from_micros))
}

pub(crate) fn read_optional_event_id(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<EventId>> {
    Ok(row.get::<_, Option<i64>>(index)?.map(EventId::from_i64))
}

pub(crate) fn read_phase(row: &Row<'_>, index: usize) -> TableResult<TaskPhase> {
    TaskPhase::from_code(row.get(index)?).ok_or_else(|| Fault::damaged("a task has an unknown phase"))
}

pub(crate) fn task_seq_from_row(row: &Row<'_>) -> TableResult<TaskSeq> {
    Ok(TaskSeq(row.get(0)?))
}

/// Reads the columns seq, queue, key_bucket, concurrency_group, score and due.
pub(crate) fn waiting_task_from_row(row: &Row<'_>) -> TableResult<WaitingTask> {
    Ok(WaitingTask {
        seq: TaskSeq(row.get(0)?),
        queue: row.get(1)?,
        key_bucket: row.get(2)?,
        concurrency_group: row.get(3)?,
        score: row.get(4)?,
        due: read_time(row, 5)?,
    })
}
