//! Archived tasks, attempts and logs.

use pointsman_core::TaskSeq;
use pointsman_core::task::{AttemptOutcome, LogLine, Task};
use pointsman_store::columns::{ArchivedTaskColumns, AttemptColumns, Columns, LogLineColumns};
use pointsman_store::expand_sql;
use pointsman_store::row::{ArchivedTaskRow, AttemptRow, decode_attempt_outcome};
use pointsman_store::tables::ArchivedTaskTable;
use rusqlite::{Connection, Row};

use super::SqliteTables;
use super::queries::{query_all, query_first, read_columns, write_columns};
use crate::cells::ParameterWriter;
use crate::error::TableResult;
use crate::read_tasks;

impl ArchivedTaskTable for SqliteTables {
    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        read_archived_task(&self.conn, seq)
    }

    fn insert_archived_task(&mut self, archived_task: &ArchivedTaskRow) -> TableResult<()> {
        let sql = expand_sql!(
            "INSERT INTO pointsman_history (:archived_task_columns) VALUES (:archived_task_parameters)"
        );
        write_columns(&self.conn, sql, &ArchivedTaskColumns::from_row(archived_task))
    }

    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()> {
        self.conn.prepare_cached("DELETE FROM pointsman_history WHERE seq = ?1")?.execute([seq.0])?;
        Ok(())
    }

    fn write_attempt(&mut self, attempt: &AttemptRow<'_>) -> TableResult<()> {
        let sql = expand_sql!(
            "INSERT OR REPLACE INTO pointsman_attempt (:attempt_columns) VALUES (:attempt_parameters)"
        );
        write_columns(&self.conn, sql, &AttemptColumns::from_row(attempt))
    }

    fn list_attempt_outcomes(&mut self, task: TaskSeq) -> TableResult<Vec<AttemptOutcome>> {
        let sql = "SELECT outcome FROM pointsman_attempt WHERE task = ?1";
        query_all(&self.conn, sql, [task.0], |row| decode_attempt_outcome(row.get(0)?))
    }

    fn append_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let sql = "SELECT coalesce(max(n), -1) + 1 FROM pointsman_log WHERE task = ?1";
        let next_number: i64 = self.conn.prepare_cached(sql)?.query_row([task.0], |r| r.get(0))?;
        let sql = expand_sql!("INSERT INTO pointsman_log (:log_line_columns) VALUES (:log_line_parameters)");
        let mut insert = self.conn.prepare_cached(sql)?;
        for (n, line) in (next_number..).zip(&lines) {
            let mut parameters = ParameterWriter::new(&mut insert);
            LogLineColumns::from_line(task, n, line).write_cells(&mut parameters);
            parameters.execute()?;
        }
        Ok(())
    }

    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>> {
        read_tasks::read_task(&self.conn, seq)
    }
}

pub(crate) fn read_archived_task(conn: &Connection, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
    let sql = expand_sql!("SELECT :archived_task_columns FROM pointsman_history WHERE seq = ?1");
    query_first(conn, sql, [seq.0], archived_task_from_row)
}

pub(crate) fn archived_task_from_row(row: &Row<'_>) -> TableResult<ArchivedTaskRow> {
    read_columns::<ArchivedTaskColumns>(row)?.into_row()
}
