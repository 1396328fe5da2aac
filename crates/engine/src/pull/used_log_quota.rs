//! Reads how much of its log quota an attempt has used, if its lease was granted by another node or before a restart.
//!
//! The store numbers the lines of a task without separating its attempts. Those of the last attempt are at the end, so
//! the end is found by binary search, and at most as many lines are read before it as an attempt may log.

use pointsman_core::store::{StoreError, StoredLogLine, Tasks};
use pointsman_core::{TaskId, Timestamp};

use crate::claimed_task_summary::ClaimedTaskSummary;
use crate::log_writer::{LogQuota, MAX_LOG_LINES_PER_ATTEMPT};

/// The number of lines that are read at a time.
const LOG_LINES_PER_READ: usize = 1000;

/// Computes the log quota of an attempt from the lines that the attempt has already stored.
pub(super) async fn read_used_log_quota(
    tasks: &dyn Tasks,
    task: &ClaimedTaskSummary,
    leased_at: Timestamp,
) -> Result<LogQuota, StoreError> {
    let mut quota = LogQuota::default();
    let mut from = find_next_log_line_number(tasks, &task.id)
        .await?
        .saturating_sub(MAX_LOG_LINES_PER_ATTEMPT as u64 + 1);
    while !quota.is_used_up() {
        let lines = read_log_page(tasks, &task.id, from, LOG_LINES_PER_READ).await?;
        let Some(last) = lines.last() else { break };
        from = last.number + 1;
        // Lines older than the attempt belong to an earlier attempt, if there was one.
        let own_lines = lines.iter().filter(|stored| task.attempt <= 1 || stored.line.time >= leased_at);
        own_lines.for_each(|stored| quota.count_stored_line(&stored.line));
    }
    Ok(quota)
}

/// Finds the number of the task's next log line, which follows its last one, by binary search.
async fn find_next_log_line_number(tasks: &dyn Tasks, id: &TaskId) -> Result<u64, StoreError> {
    let (mut existing_number, mut absent_number) = (0, 1);
    while !read_log_page(tasks, id, absent_number, 1).await?.is_empty() {
        (existing_number, absent_number) = (absent_number, absent_number * 2);
    }
    while absent_number - existing_number > 1 {
        let middle = existing_number + (absent_number - existing_number) / 2;
        match read_log_page(tasks, id, middle, 1).await?.is_empty() {
            true => absent_number = middle,
            false => existing_number = middle,
        }
    }
    Ok(absent_number)
}

async fn read_log_page(
    tasks: &dyn Tasks,
    id: &TaskId,
    from: u64,
    limit: usize,
) -> Result<Vec<StoredLogLine>, StoreError> {
    Ok(tasks.read_logs(id, from, limit).await?.map(|page| page.lines).unwrap_or_default())
}
