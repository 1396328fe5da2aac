//! Reads how much of its log quota an attempt has used, if its lease was granted by another node or before a restart.
//!
//! The store numbers the lines of a task without separating its attempts. Those of the last attempt are at the end, so
//! the end is found by binary search, and at most as many lines are read before it as an attempt may log.

use pointsman_core::store::{Store, StoreError, StoredLine};
use pointsman_core::{TaskId, Timestamp};

use crate::claim_summary::ClaimSummary;
use crate::log_writer::{LogQuota, MAX_ATTEMPT_LINES};

/// The number of lines that are read at a time.
const PAGE_SIZE: usize = 1000;

pub(super) async fn read_log_quota(
    store: &dyn Store,
    task: &ClaimSummary,
    since: Timestamp,
) -> Result<LogQuota, StoreError> {
    let mut quota = LogQuota::default();
    let mut from = find_log_end(store, &task.id).await?.saturating_sub(MAX_ATTEMPT_LINES as u64 + 1);
    while !quota.is_used_up() {
        let lines = read_log_page(store, &task.id, from, PAGE_SIZE).await?;
        let Some(last) = lines.last() else { break };
        from = last.number + 1;
        // Lines older than the attempt belong to an earlier attempt, if there was one.
        let own = lines.iter().filter(|stored| task.attempt <= 1 || stored.line.time >= since);
        own.for_each(|stored| quota.count_stored_line(&stored.line));
    }
    Ok(quota)
}

/// Finds the number after the last line.
async fn find_log_end(store: &dyn Store, id: &TaskId) -> Result<u64, StoreError> {
    let (mut existing, mut missing) = (0, 1);
    while !read_log_page(store, id, missing, 1).await?.is_empty() {
        (existing, missing) = (missing, missing * 2);
    }
    while missing - existing > 1 {
        let middle = existing + (missing - existing) / 2;
        match read_log_page(store, id, middle, 1).await?.is_empty() {
            true => missing = middle,
            false => existing = middle,
        }
    }
    Ok(missing)
}

async fn read_log_page(
    store: &dyn Store,
    id: &TaskId,
    from: u64,
    limit: usize,
) -> Result<Vec<StoredLine>, StoreError> {
    Ok(store.logs(id, from, limit).await?.map(|page| page.lines).unwrap_or_default())
}
