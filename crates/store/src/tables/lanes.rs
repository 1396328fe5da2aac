//! Lanes and concurrency groups: indexes of the active tasks.

use pointsman_core::TaskSeq;

use crate::error::TableResult;
use crate::row::{LaneHead, QueueId, WaitingTask};

/// Active tasks by lane, and by concurrency group.
pub trait LaneTable {
    /// Returns the task of a lane with the smallest position.
    fn read_lane_head(&mut self, lane: i64) -> TableResult<Option<LaneHead>>;

    /// Lists the tasks in a lane by position.
    fn list_lane_tasks(&mut self, lane: i64) -> TableResult<Vec<(TaskSeq, QueueId)>>;

    /// Lists the tasks that count against the limit of a concurrency group: those that are ready, scheduled or locked.
    fn list_counted_tasks_of_concurrency_group(
        &mut self,
        concurrency_group: i64,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>>;

    /// Returns the oldest blocked task of a concurrency group.
    fn find_oldest_blocked_in_concurrency_group(
        &mut self,
        concurrency_group: i64,
    ) -> TableResult<Option<WaitingTask>>;
}
