//! The table of queues, and their ready tasks.

use pointsman_core::task::QueueSubject;
use pointsman_core::{TaskSeq, Tenant};

use crate::error::TableResult;
use crate::row::{ActiveTaskRow, HandlerId, QueueCounts, QueueId, QueueRow, RankRange};

/// Queues with their counts, and the ready tasks of each in the order in which they run.
pub trait QueueTable {
    fn list_queues(&mut self) -> TableResult<Vec<QueueRow>>;

    /// Creates a queue without tasks; returns its id.
    fn create_queue(
        &mut self,
        handler: HandlerId,
        tenant: &Tenant,
        subject: &QueueSubject,
    ) -> TableResult<QueueId>;

    fn write_queue_counts(&mut self, counts: &[(QueueId, QueueCounts)]) -> TableResult<()>;

    /// Returns the score and the number of the task that a queue would run next.
    fn read_queue_head(&mut self, queue: QueueId) -> TableResult<Option<(i64, TaskSeq)>>;

    /// Lists the smallest and the largest rank for each score and key bucket of a queue's ready tasks.
    fn list_rank_ranges(&mut self, queue: QueueId) -> TableResult<Vec<RankRange>>;

    /// Lists the first ready tasks of each queue by score, rank and age, as many as its share.
    fn list_first_ready_tasks_of_queues(
        &mut self,
        shares: &[(QueueId, i64)],
    ) -> TableResult<Vec<ActiveTaskRow>>;

    /// Counts the ready tasks of its queue that come before a task, up to `limit`.
    fn count_ready_tasks_before(&mut self, task_row: &ActiveTaskRow, limit: u64) -> TableResult<u64>;
}
