//! Archived tasks, attempts and logs.

use pointsman_core::TaskSeq;
use pointsman_core::task::{AttemptOutcome, LogLine, Task};
use pointsman_store::columns::ArchivedTaskColumns;
use pointsman_store::error::TableResult;
use pointsman_store::row::{ArchivedTaskRow, AttemptRow, decode_attempt_outcome};
use pointsman_store::tables::ArchivedTaskTable;

use super::PgTables;
use crate::rows::{read_column, read_columns};
use crate::session::query;
use crate::writer_connection::params;

impl ArchivedTaskTable for PgTables {
    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        if let Some(archived_row) = self.write_batch.find_archived_task(seq) {
            return Ok(Some(archived_row.clone()));
        }
        let expired_archive_number = self.commit_version_row.expired_archive_number;
        self.query_and_decode_first(
            query!("history/read_archived_task", INT8, INT8),
            params![seq.0, expired_archive_number],
            |row| read_columns::<ArchivedTaskColumns<'_>>(row, 0)?.into_row(),
        )
    }

    fn insert_archived_task(&mut self, archived_row: &ArchivedTaskRow) -> TableResult<()> {
        self.commit_version_row.last_archive_number += 1;
        self.write_batch.insert_archived_task(self.commit_version_row.last_archive_number, archived_row);
        Ok(())
    }

    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()> {
        if self.write_batch.delete_archived_task(seq) {
            return Ok(());
        }
        self.query_rows(query!("history/delete_archived_task", INT8), params![seq.0]).map(drop)
    }

    fn write_attempt(&mut self, attempt: &AttemptRow<'_>) -> TableResult<()> {
        self.write_batch.insert_attempt(attempt);
        Ok(())
    }

    fn list_attempt_outcomes(&mut self, task: TaskSeq) -> TableResult<Vec<AttemptOutcome>> {
        self.query_and_decode_rows(query!("attempt/list_attempt_outcomes", INT8), params![task.0], |row| {
            decode_attempt_outcome(read_column(row, 0)?)
        })
    }

    fn append_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()> {
        self.write_batch.add_log_lines(task, lines);
        Ok(())
    }

    /// Sends the buffered writes, and reads a task with its attempts.
    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>> {
        let commands = self.take_batch_commands()?;
        self.connection.send_commands(&commands)?;
        self.connection.run_on_session(|session| Box::pin(crate::read::find_task(session, seq)))
    }
}
