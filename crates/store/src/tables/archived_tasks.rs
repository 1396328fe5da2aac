//! The tables of archived tasks, attempts and log lines.

use pointsman_core::TaskSeq;
use pointsman_core::task::{AttemptOutcome, LogLine, Task};

use crate::error::TableResult;
use crate::row::{ArchivedTaskRow, AttemptRow};

/// Archived tasks, and the attempts and the log lines of all tasks.
pub trait ArchivedTaskTable {
    fn read_archived_task(&mut self, seq: TaskSeq) -> TableResult<Option<ArchivedTaskRow>>;

    fn insert_archived_task(&mut self, archived_row: &ArchivedTaskRow) -> TableResult<()>;

    fn delete_archived_task(&mut self, seq: TaskSeq) -> TableResult<()>;

    fn write_attempt(&mut self, attempt: &AttemptRow<'_>) -> TableResult<()>;

    /// Lists the outcomes of a task's recorded attempts, in any order.
    fn list_attempt_outcomes(&mut self, task: TaskSeq) -> TableResult<Vec<AttemptOutcome>>;

    /// Appends lines to a task's log.
    fn append_log_lines(&mut self, task: TaskSeq, lines: Vec<LogLine>) -> TableResult<()>;

    /// Returns a task, active or archived, with its attempts, as readers see it.
    fn read_task_with_attempts(&mut self, seq: TaskSeq) -> TableResult<Option<Task>>;
}
