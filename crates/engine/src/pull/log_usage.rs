//! How much of its allowance an attempt has used that another node gave out, or this one before it was started anew.
//!
//! The store numbers the lines of a task and does not tell its attempts apart. Those of the last attempt are at the end:
//! so the end is sought, in a few steps, and no more is read from there than an attempt may log.

use pointsman_core::store::{Store, StoreError, StoredLine};
use pointsman_core::{TaskId, Timestamp};

use crate::claim_summary::ClaimSummary;
use crate::log_writer::{LogQuota, MAX_ATTEMPT_LINES};

/// How many lines are read at a time.
const PAGE_SIZE: usize = 1000;

pub(super) async fn read_log_quota(
    store: &dyn Store,
    task: &ClaimSummary,
    since: Timestamp,
) -> Result<LogQuota, StoreError> {
    let mut allowance = LogQuota::default();
    let mut from = find_log_end(store, &task.id).await?.saturating_sub(MAX_ATTEMPT_LINES as u64 + 1);
    while !allowance.is_used_up() {
        let lines = read_log_page(store, &task.id, from, PAGE_SIZE).await?;
        let Some(last) = lines.last() else { break };
        from = last.number + 1;
        // What was written before the attempt began was written by another, if there was another.
        let own = lines.iter().filter(|stored| task.attempt <= 1 || stored.line.time >= since);
        own.for_each(|stored| allowance.count_stored_line(&stored.line));
    }
    Ok(allowance)
}

/// A number that no line has reached, and not many more than there are lines.
async fn find_log_end(store: &dyn Store, id: &TaskId) -> Result<u64, StoreError> {
    let (mut there, mut beyond) = (0, 1);
    while !read_log_page(store, id, beyond, 1).await?.is_empty() {
        (there, beyond) = (beyond, beyond * 2);
    }
    while beyond - there > 1 {
        let middle = there + (beyond - there) / 2;
        match read_log_page(store, id, middle, 1).await?.is_empty() {
            true => beyond = middle,
            false => there = middle,
        }
    }
    Ok(beyond)
}

async fn read_log_page(
    store: &dyn Store,
    id: &TaskId,
    from: u64,
    limit: usize,
) -> Result<Vec<StoredLine>, StoreError> {
    Ok(store.logs(id, from, limit).await?.map(|page| page.lines).unwrap_or_default())
}
