//! The table of active tasks.

use pointsman_core::store::NodeId;
use pointsman_core::{EventId, TaskSeq, Timestamp};

use crate::error::TableResult;
use crate::row::{ActiveTaskRow, HandlerId, QueueId, SyncGatedTask, TaskPhase, WaitingTask};

/// Active tasks: those that are not finished.
pub trait ActiveTaskTable {
    fn read_active_task(&mut self, seq: TaskSeq) -> TableResult<Option<ActiveTaskRow>>;

    fn insert_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    fn delete_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    /// Writes only the phase and the rank of a task.
    fn set_task_phase(&mut self, seq: TaskSeq, phase: TaskPhase, rank: i64) -> TableResult<()>;

    /// Writes the columns of a task that a lock changes: phase, attempt, node, fence, end of the lease and start time.
    fn write_task_lock(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    /// Writes all columns that may change while a task is unfinished: all except its numbers, event, order, grouping
    /// and score.
    fn update_active_task(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    /// Writes only the lane, the concurrency group and the key bucket of a task.
    fn set_task_grouping(&mut self, task_row: &ActiveTaskRow) -> TableResult<()>;

    /// Writes only the concurrency group of a task.
    fn set_concurrency_group(&mut self, seq: TaskSeq, concurrency_group: Option<i64>) -> TableResult<()>;

    fn set_task_score(&mut self, seq: TaskSeq, score: i64) -> TableResult<()>;

    /// Sets when a worker's lease ends.
    fn set_lease_end(&mut self, seq: TaskSeq, until: Timestamp) -> TableResult<()>;

    /// Invalidates the cached copy of a changed task on other nodes.
    fn invalidate_task_on_peers(&mut self, seq: TaskSeq);

    /// Lists all scheduled tasks by score, rank and age.
    fn list_scheduled_tasks(&mut self) -> TableResult<Vec<ActiveTaskRow>>;

    /// Lists delayed tasks whose due time has come, the earliest first.
    fn list_due_tasks(&mut self, now: Timestamp, limit: usize) -> TableResult<Vec<WaitingTask>>;

    /// Returns the earliest due time of the delayed tasks.
    fn read_earliest_due_time(&mut self) -> TableResult<Option<Timestamp>>;

    /// Lists the gated tasks of an event, which wait for its synchronous tasks, by sync stage and age.
    fn list_sync_gated_tasks(&mut self, event: EventId) -> TableResult<Vec<SyncGatedTask>>;

    /// Lists the active tasks that were created with an event, by age. Their sync stages ascend with their numbers.
    fn list_active_tasks_of_event(&mut self, event: EventId) -> TableResult<Vec<ActiveTaskRow>>;

    /// Lists the tasks that a node has locked, by age.
    fn list_tasks_locked_by_node(&mut self, node: NodeId) -> TableResult<Vec<ActiveTaskRow>>;

    /// Lists tasks locked by workers since `since` whose leases ended before `now`.
    fn list_expired_worker_leases(
        &mut self,
        since: Timestamp,
        now: Timestamp,
    ) -> TableResult<Vec<ActiveTaskRow>>;

    /// Lists tasks of a queue in these phases, by age.
    fn list_tasks_in_phases(
        &mut self,
        queue: QueueId,
        phases: &[TaskPhase],
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>>;

    /// Lists locked tasks of a handler.
    fn list_running_tasks_of_handler(
        &mut self,
        handler: HandlerId,
        limit: usize,
    ) -> TableResult<Vec<TaskSeq>>;

    /// Lists the unfinished tasks of a queue, each with its priority and creation time.
    fn list_tasks_to_rescore(&mut self, queue: QueueId) -> TableResult<Vec<(TaskSeq, i64, Timestamp)>>;

    /// Lists tasks of a queue, up to locked, that have an object and no lane, with the object's key: scheduled and
    /// locked tasks first, then by age.
    fn list_tasks_to_regroup(&mut self, queue: QueueId)
    -> TableResult<Vec<(WaitingTask, TaskPhase, String)>>;

    /// Prefetches events and orders that will be read one by one, where each read would cost a round trip.
    fn prefetch_task_subjects(&mut self, _events: &[EventId], _orders: &[i64]) -> TableResult<()> {
        Ok(())
    }
}
