//! Archived tasks, attempts and logs.

use pointsman_core::TaskSeq;
use pointsman_core::task::{AttemptOutcome, LogLine, Task};
use pointsman_store::columns::{ArchivedTaskColumns, AttemptColumns};
use pointsman_store::error::{Fault, TableResult};
use pointsman_store::row::{ArchivedTaskRow, AttemptRow};
use pointsman_store::tables::ArchivedTaskTable;

use super::RedisTables;
use crate::cells::encode_row;
use crate::connection::{CommandArgs, args, to_arg};
use crate::keys::{Table, task_bucket_and_field};
use crate::task_indexes;

impl ArchivedTaskTable for RedisTables {
    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>> {
        self.overlay.read_archived_task(seq)
    }

    fn insert_archived_task(&mut self, archived: &ArchivedTaskRow) -> TableResult<()> {
        let (bucket, field) = task_bucket_and_field(archived.seq);
        let row = encode_row(&ArchivedTaskColumns::from_row(archived));
        self.overlay.write_row(Table::ArchivedTasks(bucket), field, row);
        for (index, member) in task_indexes::archived_task_entries(archived) {
            self.overlay.add_member(index, member);
        }
        self.write_archived_source_task_keys(archived)
    }

    /// Deletes an archived task; its attempts and its log stay.
    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()> {
        let Some(archived) = self.overlay.read_archived_task(seq)? else { return Ok(()) };
        let (bucket, field) = task_bucket_and_field(seq);
        self.overlay.delete_row(Table::ArchivedTasks(bucket), field);
        for (index, member) in task_indexes::archived_task_entries(&archived) {
            self.overlay.remove_member(index, member);
        }
        Ok(())
    }

    fn write_attempt(&mut self, attempt: &AttemptRow<'_>) -> TableResult<()> {
        self.write_attempt_columns(&AttemptColumns::from_row(attempt));
        Ok(())
    }

    fn list_attempt_outcomes(&mut self, task: TaskSeq) -> TableResult<Vec<AttemptOutcome>> {
        Ok(self.overlay.read_attempts(task)?.iter().map(|attempt| attempt.outcome).collect())
    }

    /// Appends log lines to the log of a task. `commit.lua` numbers them, so the end of the log is not read here.
    fn append_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()> {
        match self.read_task_log_key(task)?.filter(|_| !lines.is_empty()) {
            Some(key) => self.append_log_lines_to_key(&key, lines),
            None => Ok(()),
        }
    }

    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>> {
        self.overlay.read_task_with_attempts(seq)
    }
}

impl RedisTables {
    pub(crate) fn write_attempt_columns(&mut self, attempt: &AttemptColumns<'_>) {
        let table = Table::Attempts(TaskSeq(attempt.task));
        self.overlay.write_row(table, attempt.number.to_string(), encode_row(attempt));
    }

    /// Appends lines to the log at a key.
    pub(crate) fn append_log_lines_to_key(&mut self, key: &[u8], lines: Vec<LogLine>) -> TableResult<()> {
        let mut command: CommandArgs = args!["log", key];
        for line in lines {
            let micros = line.time.micros();
            let seconds = format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
            let json = serde_json::to_string(&line).map_err(Fault::damaged)?;
            command.extend([to_arg(seconds), to_arg(json.strip_prefix('{').unwrap_or(&json))]);
        }
        for lines in command.get(2..).unwrap_or_default().chunks(super::MAX_ARGS_PER_LOG_COMMAND) {
            self.overlay.add_extra_command([&command[..2], lines].concat());
        }
        Ok(())
    }

    /// Returns the key of a task's log: `sync_tasks#ID:logs` of document 002, which tasks of all kinds have.
    pub(super) fn read_task_log_key(&mut self, seq: TaskSeq) -> TableResult<Option<Vec<u8>>> {
        Ok(self.overlay.read_task_id(seq)?.map(|id| self.overlay.keys.task_log_key(&id)))
    }
}
